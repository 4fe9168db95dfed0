"""The interface of LibreTranslate: https://docs.libretranslate.com. Its clients work with this server unchanged."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from mtformer.serve.documents import SUFFIXES, fetched, new_name, translate_document
from mtformer.serve.errors import ServiceError
from mtformer.serve.http import caller_of, fields, file_of, service_of, text_of, texts_of, whole_number_of
from mtformer.serve.keys import Caller
from mtformer.serve.protection import Protected
from mtformer.serve.service import wanted
from mtformer.text.languages import english_name, matches_language
from mtformer.translate.translation import Translation

_MOST_ALTERNATIVES = 10
_FORMATS = ("text", "html")


async def translate(request: Request) -> Response:
    """Translate a text or a list of texts."""
    given = await fields(request)
    caller = caller_of(request, given)
    texts = texts_of(given, "q")
    if given["q"] == "":
        raise ServiceError(400, "Invalid request: missing q parameter")
    source, target = text_of(given, "source"), text_of(given, "target")
    format = text_of(given, "format", "text")
    if format not in _FORMATS:
        raise ServiceError(400, f"Invalid request: the format is {' or '.join(_FORMATS)}, not {format}")
    n_alternatives = whole_number_of(given, "alternatives", _MOST_ALTERNATIVES)
    detections = [_detect(request, text, source, target) for text in texts]
    protected = [Protected(text) for text in texts] if format == "html" else None
    read = texts if protected is None else [each.text for each in protected]
    results = await _translated(request, caller, read, [code for code, _ in detections], target, n_alternatives)
    shown = [[translation.text for translation in translations] for translations in results]
    if protected is not None:
        shown = [list(map(each.restore, of_text)) for each, of_text in zip(protected, shown, strict=True)]
    answer: dict[str, Any] = {"translatedText": [best for best, *_ in shown]}
    if source == "auto":
        answer["detectedLanguage"] = [_shown(*detection) for detection in detections]
    if n_alternatives:
        answer["alternatives"] = [others for _, *others in shown]
    if isinstance(given["q"], str):
        answer = {name: value[0] for name, value in answer.items()}
    return JSONResponse(answer)


def _detect(request: Request, text: str, source: str, target: str) -> tuple[str, float]:
    """Return the source language of a text, and how probable it is."""
    if source != "auto":
        return source, 1.0
    return service_of(request).source_of(text, target)


def _shown(code: str, probability: float) -> dict[str, Any]:
    return {"confidence": round(100 * probability, 1), "language": code}


async def _translated(
    request: Request, caller: Caller, texts: Sequence[str], sources: Sequence[str], target: str, n_alternatives: int
) -> list[list[Translation]]:
    """Translate texts, those of each language together; those in the target language stay as they are."""
    service = service_of(request)
    options = {"n_best": n_alternatives + 1} if n_alternatives else {}
    results = [[Translation(text, 0.0, 0.0)] for text in texts]
    for source in dict.fromkeys(sources):
        places = [place for place, code in enumerate(sources) if code == source]
        if matches_language(source, target):
            continue
        want = wanted(service.pair(source, target), options)
        translated = await service.translate(request, caller, [texts[place] for place in places], want)
        for place, translations in zip(places, translated, strict=True):
            results[place] = translations
    return results


async def translate_file(request: Request) -> Response:
    """Translate a document, and return the address of the result."""
    given = await fields(request)
    caller = caller_of(request, given)
    service = service_of(request)
    file = file_of(given)
    source, target = text_of(given, "source"), text_of(given, "target")
    pair = service.pair(source, target)
    name, media_type = new_name(file.name, pair.tgt_lang)
    outcome = await translate_document(service, caller, file, wanted(pair), request)
    id = await service.database.run(service.results.add, name, media_type, outcome)
    address = f"{request.base_url}download_file/{id}.{quote(name)}"
    return JSONResponse({"translatedFileUrl": address})


async def download_file(request: Request) -> Response:
    """Return a translated document."""
    id, _, _ = request.path_params["name"].partition(".")
    return await fetched(service_of(request), id)


async def detect(request: Request) -> Response:
    """Say which languages a text may be in."""
    given = await fields(request)
    caller_of(request, given)
    text = " ".join(texts_of(given, "q"))
    if not text.strip():
        raise ServiceError(400, "Invalid request: missing q parameter")
    found = service_of(request).detect(text)
    return JSONResponse([_shown(*each) for each in found if each[1] >= 0.01] or [_shown(*found[0])])


async def languages(request: Request) -> Response:
    """List the languages, each with those that it can be translated to."""
    pairs = service_of(request).models.pairs
    codes = dict.fromkeys(code for pair in pairs for code in pair)
    return JSONResponse(
        [
            {
                "code": code,
                "name": english_name(code),
                "targets": [pair.tgt_lang for pair in pairs if pair.src_lang == code],
            }
            for code in codes
        ]
    )


async def settings(request: Request) -> Response:
    """Return what a page needs to know of the server."""
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
    """Say that the server is alive."""
    return JSONResponse({"status": "ok"})


ROUTES = [
    Route("/translate", translate, methods=["POST"]),
    Route("/translate_file", translate_file, methods=["POST"]),
    Route("/download_file/{name}", download_file),
    Route("/detect", detect, methods=["POST"]),
    Route("/languages", languages),
    Route("/frontend/settings", settings),
    Route("/health", health),
]
