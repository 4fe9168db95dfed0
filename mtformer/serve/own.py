"""The server's own interface, which offers all that the models can do."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from mtformer.serve import metrics
from mtformer.serve.errors import ServiceError
from mtformer.serve.http import caller_of, fields, service_of, text_of, texts_of
from mtformer.serve.keys import Caller
from mtformer.serve.models import Wanted
from mtformer.serve.service import Service, wanted
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.glossary import Glossary
from mtformer.text.languages import english_name
from mtformer.translate.translation import Translation

_FIELDS = ("text", "source", "target", "options", "alignments", "glossary", "stream", "api_key")
_EXPLAIN_FIELDS = ("text", "source", "target", "prefix", "why_not", "api_key")
_NDJSON = "application/x-ndjson"


async def translate(request: Request) -> Response:
    """Translate a text or a list of texts, with all that is known about the translations."""
    given, caller = await _asked(request, _FIELDS)
    service = service_of(request)
    texts = texts_of(given, "text")
    if not all(isinstance(given.get(name, False), bool) for name in ("alignments", "stream")):
        raise ServiceError(400, "Invalid request: alignments and stream are true or false")
    source, probability = _source(service, given, texts)
    want = wanted(
        service.pair(source, text_of(given, "target")),
        _options(given),
        alignments=given.get("alignments", False),
        glossary=await _glossary(service, caller, given.get("glossary")),
    )._replace(token_log_probs=True)
    about: dict[str, Any] = {"source": want.pair.src_lang, "target": want.pair.tgt_lang}
    if probability is not None:
        about["detected"] = {"language": source, "probability": round(probability, 4)}
    if given.get("stream"):
        await service.translator(want)  # so that what cannot be done is refused before the response begins
        lines = _lines(service, request, caller, texts, want)
        return StreamingResponse(lines, media_type=_NDJSON)
    results = await service.translate(request, caller, texts, want)
    return JSONResponse({**about, "translations": list(map(_shown, results))})


async def _asked(request: Request, names: Sequence[str]) -> tuple[dict[str, Any], Caller]:
    """Return the fields of a request, which must be some of these, and who sends it.

    Raises:
        ServiceError: one is unknown, or the key is.
    """
    given = await fields(request)
    caller = caller_of(request, given)
    if unknown := [name for name in given if name not in names]:
        raise ServiceError(400, f"there is no field {unknown[0]}; there are {', '.join(names)}")
    return given, caller


def _source(service: Service, given: Mapping[str, Any], texts: Sequence[str]) -> tuple[str, float | None]:
    """Return the source language, and how probable it is if it had to be detected."""
    source = text_of(given, "source", "auto")
    return (source, None) if source != "auto" else service.source_of("\n".join(texts), text_of(given, "target"))


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    options = given.get("options") or {}
    if not isinstance(options, dict):
        raise ServiceError(400, "Invalid request: options is no JSON object")
    return options


async def _glossary(service: Service, caller: Caller, given: Any) -> Glossary | None:
    """Return a glossary that is given as the id of a stored one, or as an object of terms and translations.

    Raises:
        ServiceError: it is neither.
        UserError: a term is empty.
    """
    if not given:
        return None
    if isinstance(given, str):
        stored = await service.database.run(service.store.glossary, caller.name, given)
        if stored is None:
            raise ServiceError(404, f"there is no glossary {given}")
        return stored.glossary
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise ServiceError(400, "Invalid request: glossary is neither an id nor an object of terms and translations")
    return Glossary(given.items())


async def _lines(
    service: Service, request: Request, caller: Caller, texts: Sequence[str], want: Wanted
) -> AsyncIterator[str]:
    """Yield a line of JSON for each text, in order, as soon as it is translated."""
    index = 0
    try:
        async for outcome in service.stream(request, caller, texts, want):
            failed = isinstance(outcome, MtformerError)
            result = {"error": str(outcome)} if failed else {"translations": _shown(outcome)}  # type: ignore[arg-type]
            yield json.dumps({"index": index, **result}, ensure_ascii=False) + "\n"
            index += 1
    except MtformerError as error:  # the status is sent by now
        yield json.dumps({"index": index, "error": str(error)}, ensure_ascii=False) + "\n"


def _shown(translations: Sequence[Translation]) -> list[dict[str, object]]:
    return [translation.to_dict() for translation in translations]


async def explain(request: Request) -> Response:
    """Return how a sentence is translated, as ``mtformer explain --format json`` prints it."""
    given, caller = await _asked(request, _EXPLAIN_FIELDS)
    service = service_of(request)
    text = text_of(given, "text")
    source, _ = _source(service, given, [text])
    pair = service.pair(source, text_of(given, "target"))
    prefix = text_of(given, "prefix", "") or None
    why_not = texts_of(given, "why_not") if given.get("why_not") else []
    if len(why_not) > 10:
        raise UserError("why_not: ask for 10 words at most")
    async with service.admitted(caller, [text]):
        return JSONResponse(await service.explain(pair, text, prefix=prefix, why_not=why_not))


async def models(request: Request) -> Response:
    """List the directions."""
    caller_of(request, request.query_params)
    pairs = service_of(request).models.pairs
    names = [
        {"source": pair.src_lang, "target": pair.tgt_lang, "name": " → ".join(map(english_name, pair))}
        for pair in pairs
    ]
    return JSONResponse({"directions": names})


async def ready(request: Request) -> Response:
    """Say whether the server takes requests."""
    is_ready = service_of(request).is_ready
    return JSONResponse({"ready": is_ready}, 200 if is_ready else 503)


async def show_metrics(request: Request) -> Response:
    """Return the metrics for Prometheus."""
    return PlainTextResponse(service_of(request).metrics.text(), media_type=metrics.CONTENT_TYPE)


async def openapi(request: Request) -> Response:
    """Return the description of all interfaces."""
    return Response(_openapi(), media_type="application/json")


@cache
def _openapi() -> str:
    text = resources.files("mtformer.serve").joinpath("openapi.yaml").read_text(encoding="utf-8")
    return json.dumps(yaml.safe_load(text), ensure_ascii=False)


ROUTES = [
    Route("/v1/translate", translate, methods=["POST"]),
    Route("/v1/explain", explain, methods=["POST"]),
    Route("/v1/models", models),
    Route("/ready", ready),
    Route("/metrics", show_metrics),
    Route("/openapi.json", openapi),
]
