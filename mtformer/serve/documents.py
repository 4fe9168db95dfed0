"""Documents: no part of a request is written to a file."""

import asyncio
import contextlib
import logging
from dataclasses import replace
from pathlib import PurePath
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from mtformer.serve.errors import ServiceError
from mtformer.serve.http import File
from mtformer.serve.keys import Caller
from mtformer.serve.query import Query
from mtformer.serve.results import ENDED, Outcome
from mtformer.serve.service import Service
from mtformer.support.errors import MtformerError
from mtformer.translate.documents.formats import FORMATS, format_of, read_document, write_document
from mtformer.translate.documents.seam import DocumentSettings
from mtformer.translate.documents.tasks import translated_name

log = logging.getLogger(__name__)

_MOST_PARTS = 1_000_000  # each may be a text, which takes a kilobyte of memory
SUFFIXES = [suffix for format in FORMATS for suffix in format.suffixes]


def new_name(name: str, tgt_lang: str) -> tuple[str, str]:
    """Return the name of the translation of a file, as in report.de.docx, and its media type.

    Raises:
        UserError: the file is not a document of a known format.
    """
    written = translated_name(PurePath(name.replace("\\", "/")), tgt_lang.lower())
    return written, format_of(written).media_type


async def translate_document(
    service: Service, caller: Caller, file: File, query: Query, request: Request | None = None
) -> Outcome:
    """Translate a document.

    Args:
        service: translates.
        caller: the owner of the document.
        file: the document.
        query: the translation settings, without texts.
        request: the request that waits for the document; None if none does.

    Raises:
        UserError: it cannot be read.
        ServiceError: it exceeds a limit, or the server fails.
    """
    pair = service.pair(query.source, query.target)
    settings, format = DocumentSettings(pair.tgt_lang, name=PurePath(file.name).name), format_of(file.name)
    if query.source is not None:
        settings = replace(settings, src_lang=pair.src_lang)
    async with service.admitted(caller, is_bulk=True) as admission:
        await admission.require_left()
        if sum(map(file.content.count, (b"\n", b"\r", b"<", b","))) > _MOST_PARTS:
            raise ServiceError(413, f"a document may have {_MOST_PARTS:,} line ends, tags and commas in all")
        async with service.places_to_read:
            document = await asyncio.to_thread(read_document, file.content, format, settings)
        await admission.charge(document.units)
        answers = await service.translated(request, admission, replace(query, texts=document.units))
        translations = [answer.text for answer in answers]
        content = await asyncio.to_thread(write_document, document, translations, format, settings)
    return Outcome(content, admission.n_characters)


async def translate_later(id: str, service: Service, caller: Caller, file: File, query: Query) -> None:
    """Translate a stored document in the background."""
    try:
        outcome = await translate_document(service, caller, file, query)
    except MtformerError as error:
        outcome = Outcome(error=str(error))
    except asyncio.CancelledError:
        outcome = Outcome(error=ENDED)
    except Exception:
        log.exception("a document cannot be translated")
        outcome = Outcome(error=f"{PurePath(file.name).name} cannot be translated")
    with contextlib.suppress(ServiceError):  # which is logged, and tried again
        await service.database.run(service.results.finish, id, outcome)


async def fetched(service: Service, id: str) -> Response:
    """Return a translated document as a file to save.

    Raises:
        ServiceError: it does not exist, or is not translated yet.
    """
    gone = ServiceError(404, "there is no such document, or not any more")
    result = await service.database.run(service.results.find, id)
    if result is None:
        raise gone
    if result.error:
        raise ServiceError(400, result.error)
    if not result.is_done:
        raise ServiceError(503, "the document is being translated", retry_after=1)
    content = await service.database.run(service.results.content, id)
    if content is None:  # another request has removed it meanwhile
        raise gone
    disposition = f"attachment; filename*=UTF-8''{quote(result.name)}"
    return Response(content, media_type=result.media_type, headers={"Content-Disposition": disposition})
