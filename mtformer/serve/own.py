"""The server's own interface, which offers all that the models can do."""

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from functools import cache
from importlib import resources
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from mtformer.serve import metrics
from mtformer.serve.errors import ServiceError
from mtformer.serve.glossaries import read_glossary, stored_glossary
from mtformer.serve.http import ParsedRequest, service_of
from mtformer.serve.keys import Caller
from mtformer.serve.models import Requirements
from mtformer.serve.query import Answer, Query, checked_options
from mtformer.serve.service import Service
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.glossary import Glossary
from mtformer.text.languages import english_name

_FIELDS = ("text", "source", "target", "options", "alignments", "glossary", "stream", "api_key")
_EXPLAIN_FIELDS = ("text", "source", "target", "prefix", "why_not", "api_key")
_NDJSON = "application/x-ndjson"


async def translate(request: Request) -> Response:
    """Translate a text or a list of texts, with all details of the translations."""
    asked = await _read(request, _FIELDS)
    service, caller, given = asked
    if not all(isinstance(given.get(name, False), bool) for name in ("alignments", "stream")):
        raise ServiceError(400, "Invalid request: alignments and stream are true or false")
    texts, target, source = asked.texts("text"), asked.text("target"), asked.source("auto")
    options, alignments = checked_options(_options(given)), given.get("alignments", False)
    wanted = Requirements(options, alignments, token_log_probs=True, glossary=await _glossary(asked))
    query = Query(texts=texts, target=target, source=source, is_one_language=True, wanted=wanted)
    if given.get("stream"):
        lines = _lines(service, caller, query)
        await anext(lines)  # so that what is refused is refused before the response begins
        return StreamingResponse(lines, media_type=_NDJSON)
    answers = await service.translate(request, caller, query)
    [first, *_] = answers
    pair = service.models.direction(first.source, query.target) or (first.source, query.target)
    about: dict[str, Any] = dict(zip(("source", "target"), pair, strict=True))
    if query.source is None:
        about["detected"] = {"language": first.source, "probability": round(first.probability, 4)}
    return JSONResponse({**about, "translations": list(map(_shown, answers))})


async def _read(request: Request, names: Sequence[str]) -> ParsedRequest:
    """Read a request with only these fields.

    Raises:
        ServiceError: a field or the key is unknown.
    """
    asked = await ParsedRequest.read(request)
    if unknown := [name for name in asked.fields if name not in names]:
        raise ServiceError(400, f"there is no field {unknown[0]}; there are {', '.join(names)}")
    return asked


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    options = given.get("options") or {}
    if not isinstance(options, dict):
        raise ServiceError(400, "Invalid request: options is not a JSON object")
    return options


async def _glossary(asked: ParsedRequest) -> Glossary | None:
    """Return a glossary that is given as the id of a stored one, or as an object of terms and translations.

    Raises:
        ServiceError: it is neither.
        UserError: a term is empty.
    """
    given = asked.fields.get("glossary")
    if not given:
        return None
    if isinstance(given, str):
        return await read_glossary((await stored_glossary(asked, given)).terms)
    if not isinstance(given, dict) or not all(isinstance(each, str) for each in given.values()):
        raise ServiceError(400, "Invalid request: glossary is neither an id nor an object of terms and translations")
    return await read_glossary(list(given.items()))


async def _lines(service: Service, caller: Caller, query: Query) -> AsyncGenerator[str, None]:
    """Yield "" once the request is admitted, and then a line of JSON for each text, in order, as it is translated."""
    index = -1
    try:
        async with aclosing(service.stream(caller, query)) as outcomes:
            async for outcome in outcomes:
                if outcome is None:
                    yield ""
                elif isinstance(outcome, MtformerError):
                    yield _line(index, error=str(outcome))
                else:
                    yield _line(index, translations=_shown(outcome))
                index += 1
    except MtformerError as error:
        if index < 0:
            raise
        yield _line(index, error=str(error))  # the status is sent by now


def _line(index: int, **result: Any) -> str:
    return json.dumps({"index": index, **result}, ensure_ascii=False) + "\n"


def _shown(answer: Answer) -> list[dict[str, object]]:
    return [translation.to_dict() for translation in answer.translations]


async def explain(request: Request) -> Response:
    """Return how a sentence is translated, as ``mtformer explain --format json`` prints it."""
    asked = await _read(request, _EXPLAIN_FIELDS)
    service, text = asked.service, asked.text("text")
    prefix = asked.text("prefix", "") or None
    why_not = asked.texts("why_not") if asked.fields.get("why_not") else []
    if len(why_not) > 10:
        raise UserError("why_not: ask for 10 words at most")
    query = Query(texts=[text], target=asked.text("target"), source=asked.source("auto"))
    async with service.admitted(asked.caller) as admission, admission.in_time():
        await admission.charge([text, prefix or "", *why_not])
        [guess] = await service.languages(query.texts, query)
        pair = service.pair(guess.language, query.target)
        return JSONResponse(await service.explanations.explain(pair, text, prefix=prefix, why_not=why_not))


async def models(request: Request) -> Response:
    """List the directions."""
    asked = await ParsedRequest.read(request)
    names = [
        {"source": pair.src_lang, "target": pair.tgt_lang, "name": " → ".join(map(english_name, pair))}
        for pair in asked.service.models.pairs
    ]
    return JSONResponse({"directions": names})


async def ready(request: Request) -> Response:
    """Report whether the server accepts requests."""
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
