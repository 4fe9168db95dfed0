"""Documents that are translated, and wait in memory to be fetched: nothing of a request becomes a file."""

import asyncio
import contextlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Coroutine
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from mtformer.serve.errors import ServiceError
from mtformer.serve.http import File
from mtformer.serve.keys import Caller
from mtformer.serve.models import Wanted
from mtformer.serve.service import Service
from mtformer.support.errors import MtformerError
from mtformer.translate.documents.formats import FORMATS, format_of, read_document, write_document
from mtformer.translate.documents.seam import Settings

SUFFIXES = [suffix for format in FORMATS for suffix in format.suffixes]

_MOST_BYTES = 128 * 2**20  # of documents that wait: the oldest make room
_SECONDS = 3_600  # that a document waits


@dataclass
class Result:
    """A document, which may still have to be translated.

    Attributes:
        name: that of its file.
        media_type: what it is called on the web.
        content: its bytes, once it is translated.
        n_characters: of its text.
        error: why it cannot be translated.
        made: when it came, by a clock that nobody sets.
    """

    name: str
    media_type: str
    made: float
    content: bytes | None = None
    n_characters: int = 0
    error: str = ""


class Results:
    """The documents of a server that wait to be fetched, each under an id that nobody can guess."""

    def __init__(self) -> None:
        self._results: OrderedDict[str, Result] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, result: Result) -> str:
        """Keep a document for a while, and return its id."""
        id = secrets.token_hex(16)
        self._results[id] = result
        self.make_room()
        return id

    def find(self, id: str) -> Result | None:
        """Return a document; None if it does not wait any more."""
        self.make_room()
        return self._results.get(id)

    def remove(self, id: str) -> None:
        """Forget a document."""
        self._results.pop(id, None)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something in the background."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)  # the loop has weak references only
        task.add_done_callback(self._tasks.discard)

    def make_room(self) -> None:
        """Forget documents that have waited too long, and the oldest ones if there are too many."""
        oldest = time.monotonic() - _SECONDS
        n_bytes = sum(len(result.content or b"") for result in self._results.values())
        for id, result in list(self._results.items()):
            if result.made > oldest and n_bytes <= _MOST_BYTES:
                return
            n_bytes -= len(result.content or b"")
            del self._results[id]


def new_result(name: str, tgt_lang: str) -> Result:
    """Return the place for the translation of a file with this name, as in report.de.docx.

    Raises:
        UserError: it is no document of a known format.
    """
    path = PurePath(PurePath(name.replace("\\", "/")).name)
    format = format_of(path.name)
    suffix = format.written_as or path.suffix
    media_type = "text/plain" if format.written_as else format.media_type
    return Result(f"{path.stem}.{tgt_lang.lower()}{suffix}", media_type, time.monotonic())


async def translate_into(
    result: Result,
    service: Service,
    caller: Caller,
    file: File,
    wanted: Wanted,
    request: Request | None = None,
) -> None:
    """Translate a document.

    Args:
        result: gets the translation, or the reason why there is none, which is raised as well.
        service: translates.
        caller: whose document it is.
        file: the document.
        wanted: how to translate its texts.
        request: the one that waits for it; None if none does.

    Raises:
        UserError: it cannot be read.
        ServiceError: it exceeds a limit, or the server fails.
    """
    settings = Settings(wanted.pair.tgt_lang, wanted.pair.src_lang, name=PurePath(file.name).name)
    format = format_of(file.name)
    try:
        async with service.reading(caller):
            document = await asyncio.to_thread(read_document, file.content, format, settings)
            units = await asyncio.to_thread(lambda: list(document.units))
        result.n_characters = sum(map(len, units))
        results = await service.translate(request, caller, units, wanted, is_bulk=True)
        texts = [best.text for best, *_ in results]
        result.content = await asyncio.to_thread(write_document, document, texts, format, settings)
    except MtformerError as error:
        result.error = str(error)
        raise
    except Exception:
        result.error = f"{settings.name} cannot be translated"
        raise


async def translate_later(result: Result, *args: Any) -> None:
    """Do what :func:`translate_into` does, and leave errors to the result."""
    with contextlib.suppress(MtformerError):
        await translate_into(result, *args)


def fetched(result: Result | None) -> Result:
    """Return a document that must be there.

    Raises:
        ServiceError: it is not, or not yet.
    """
    if result is None:
        raise ServiceError(404, "there is no such document, or not any more")
    if result.error:
        raise ServiceError(400, result.error)
    if result.content is None:
        raise ServiceError(503, "the document is being translated", retry_after=1)
    return result


def as_file(result: Result) -> Response:
    """Return a document as a file to save."""
    disposition = f"attachment; filename*=UTF-8''{quote(result.name)}"
    return Response(result.content, media_type=result.media_type, headers={"Content-Disposition": disposition})
