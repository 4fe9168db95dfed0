"""The interface of LibreTranslate: https://docs.libretranslate.com. Its clients work with this server unchanged."""

import asyncio
from functools import partial
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mtformer.serve.documents import SUFFIXES, fetched, new_name, translate_document
from mtformer.serve.errors import ServiceError
from mtformer.serve.http import ParsedRequest, service_of
from mtformer.serve.models import Requirements
from mtformer.serve.protection import plan_markup
from mtformer.serve.query import Query
from mtformer.text.languages import english_name
from mtformer.translate.translator import Translator

_MOST_ALTERNATIVES = 10
_FORMATS = ("text", "html")


async def translate(request: Request) -> Response:
    """Translate a text or a list of texts."""
    asked = await ParsedRequest.read(request)
    texts = asked.texts("q")
    if asked.fields["q"] == "":
        raise ServiceError(400, "Invalid request: missing q parameter")
    source, target = asked.source(), asked.text("target")
    format = asked.text("format", "text")
    if format not in _FORMATS:
        raise ServiceError(400, f"Invalid request: the format is {' or '.join(_FORMATS)}, not {format}")
    n_alternatives = asked.whole_number("alternatives", _MOST_ALTERNATIVES)
    query = Query(
        texts=texts,
        source=source,
        target=target,
        wanted=Requirements((("n_best", n_alternatives + 1),) if n_alternatives else ()),
        plan=partial(plan_markup, is_html=True, joins_lines=True) if format == "html" else Translator.plan,
    )
    answers = await asked.service.translate(request, asked.caller, query)
    shown: dict[str, Any] = {"translatedText": [answer.text for answer in answers]}
    if source is None:
        shown["detectedLanguage"] = [_shown(answer.source, answer.probability) for answer in answers]
    if n_alternatives:
        shown["alternatives"] = [[each.text for each in answer.translations[1:]] for answer in answers]
    if isinstance(asked.fields["q"], str):
        shown = {name: value[0] for name, value in shown.items()}
    return JSONResponse(shown)


def _shown(code: str, probability: float) -> dict[str, Any]:
    return {"confidence": round(100 * probability, 1), "language": code}


async def translate_file(request: Request) -> Response:
    """Translate a document, and return the address of the result."""
    asked = await ParsedRequest.read(request)
    service, caller = asked.service, asked.caller
    query = Query(texts=(), source=asked.source(), target=asked.text("target"), is_one_language=True)
    name, media_type = new_name(asked.file.name, service.pair(query.source, query.target).tgt_lang)
    outcome = await translate_document(service, caller, asked.file, query, request)
    id = await service.database.run(service.results.add, name, media_type, outcome, caller.name)
    address = f"{request.base_url}download_file/{id}.{quote(name)}"
    return JSONResponse({"translatedFileUrl": address})


async def download_file(request: Request) -> Response:
    """Return a translated document."""
    id, _, _ = request.path_params["name"].partition(".")
    return await fetched(service_of(request), id)


async def detect_language(request: Request) -> Response:
    """Detect the possible languages of a text."""
    asked = await ParsedRequest.read(request)
    service, text = asked.service, " ".join(asked.texts("q"))
    if not text.strip():
        raise ServiceError(400, "Invalid request: missing q parameter")
    async with service.admitted(asked.caller) as admission, admission.in_time():
        found = await asyncio.to_thread(service.detect, text)
    return JSONResponse([_shown(guess.language, guess.probability) for guess in found])


async def languages(request: Request) -> Response:
    """List the source languages, each with its target languages."""
    pairs = service_of(request).models.pairs
    codes = dict.fromkeys(code for pair in pairs for code in pair)
    targets = {code: [pair.tgt_lang for pair in pairs if pair.src_lang == code] for code in codes}
    return JSONResponse([{"code": code, "name": english_name(code), "targets": targets[code]} for code in codes])


async def settings(request: Request) -> Response:
    """Return the settings of the server that pages use."""
    service = service_of(request)
    first = service.models.pairs[0]
    language = {
        side: {"code": code, "name": english_name(code)} for side, code in zip(("source", "target"), first, strict=True)
    }
    return JSONResponse(
        {
            "apiKeys": service.keys is not None,
            "charLimit": service.settings.max_characters,
            "filesTranslation": True,
            "frontendTimeout": 500,
            "keyRequired": service.keys is not None,
            "language": language,
            "suggestions": False,
            "supportedFilesFormat": SUFFIXES,
        }
    )


async def health(request: Request) -> Response:
    """Report that the server is alive."""
    return JSONResponse({"status": "ok"})


ROUTES = [
    Route("/translate", translate, methods=["POST"]),
    Route("/translate_file", translate_file, methods=["POST"]),
    Route("/download_file/{name}", download_file),
    Route("/detect", detect_language, methods=["POST"]),
    Route("/languages", languages),
    Route("/frontend/settings", settings),
    Route("/health", health),
]
