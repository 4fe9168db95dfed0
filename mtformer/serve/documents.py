"""Documents: nothing of a request becomes a file of its own."""

import asyncio
import contextlib
import logging
from pathlib import PurePath
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from mtformer.serve.errors import ServiceError
from mtformer.serve.http import File
from mtformer.serve.keys import Caller
from mtformer.serve.models import Wanted
from mtformer.serve.results import Outcome
from mtformer.serve.service import Service
from mtformer.support.errors import MtformerError
from mtformer.translate.documents.formats import FORMATS, format_of, read_document, write_document
from mtformer.translate.documents.seam import Settings

log = logging.getLogger(__name__)

SUFFIXES = [suffix for format in FORMATS for suffix in format.suffixes]


def new_name(name: str, tgt_lang: str) -> tuple[str, str]:
    """Return what the translation of a file is called, as in report.de.docx, and what its kind is called on the web.

    Raises:
        UserError: it is no document of a known format.
    """
    path = PurePath(PurePath(name.replace("\\", "/")).name)
    format = format_of(path.name)
    suffix = format.written_as or path.suffix
    media_type = "text/plain" if format.written_as else format.media_type
    return f"{path.stem}.{tgt_lang.lower()}{suffix}", media_type


async def translate_document(
    service: Service, caller: Caller, file: File, wanted: Wanted, request: Request | None = None
) -> Outcome:
    """Translate a document.

    Args:
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
    async with service.reading(caller):
        document = await asyncio.to_thread(read_document, file.content, format, settings)
        units = await asyncio.to_thread(lambda: list(document.units))
    results = await service.translate(request, caller, units, wanted, is_bulk=True)
    texts = [best.text for best, *_ in results]
    content = await asyncio.to_thread(write_document, document, texts, format, settings)
    return Outcome(content, sum(map(len, units)))


async def translate_later(id: str, service: Service, caller: Caller, file: File, wanted: Wanted) -> None:
    """Translate a document that waits under some id."""
    try:
        outcome = await translate_document(service, caller, file, wanted)
    except MtformerError as error:
        outcome = Outcome(error=str(error))
    except Exception:
        log.exception("a document cannot be translated")
        outcome = Outcome(error=f"{PurePath(file.name).name} cannot be translated")
    with contextlib.suppress(ServiceError):  # which is logged, and tried again
        await service.database.run(service.results.finish, id, outcome)


async def fetched(service: Service, id: str) -> Response:
    """Return a document that must be there, as a file to save.

    Raises:
        ServiceError: it is not, or not yet.
    """
    result = await service.database.run(service.results.find, id)
    if result is None:
        raise ServiceError(404, "there is no such document, or not any more")
    if result.error:
        raise ServiceError(400, result.error)
    if not result.is_done:
        raise ServiceError(503, "the document is being translated", retry_after=1)
    content = await service.database.run(service.results.content, id)
    disposition = f"attachment; filename*=UTF-8''{quote(result.name)}"
    return Response(content, media_type=result.media_type, headers={"Content-Disposition": disposition})
