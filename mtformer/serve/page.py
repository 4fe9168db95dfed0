"""The translator's page, for which the server computes."""

from collections.abc import Callable
from functools import partial
from importlib import resources
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from mtformer.browser.assets import TRANSLATOR_ASSETS
from mtformer.serve.documents import SUFFIXES
from mtformer.serve.errors import ServiceError
from mtformer.serve.http import ParsedRequest, service_of
from mtformer.serve.models import Requirements
from mtformer.serve.segments import approximate_spans, plan_alternatives, plan_beginning, plan_segments
from mtformer.support import __version__
from mtformer.support.page import assemble
from mtformer.translate.plan import Plan

_OFFLINE, _ONLINE = "Works offline: nothing leaves this page.", "The server of this page translates."
_ASSETS = [("mtformer.browser", "server_engine.js"), *TRANSLATOR_ASSETS]
_N_OTHERS = 3  # tokens beside the one that was chosen
_TASKS: dict[str, Callable[..., Plan[Any]]] = {
    "translate": plan_segments,
    "alternatives": plan_alternatives,
    "begin": plan_beginning,
}


async def show(request: Request) -> Response:
    """Return the page."""
    service = service_of(request)
    body = resources.files("mtformer.browser").joinpath("translator.html").read_text(encoding="utf-8")
    directions = [{"src_lang": pair.src_lang, "tgt_lang": pair.tgt_lang} for pair in service.models.pairs]
    engine = {"texts": {"directions": directions}, "documents": SUFFIXES, "needsKey": service.keys is not None}
    about = [
        ("Texts", "are translated by this server"),
        *service.models.describe(),
        ("Made with", f"mtformer {__version__}, Apache-2.0"),
    ]
    data = {"engine": engine, "about": about, "isApp": False}
    body = body.replace(_OFFLINE, _ONLINE)
    return HTMLResponse(assemble("Translator", body, data=data, assets=_ASSETS, connects=True))


async def why(request: Request) -> Response:
    """Return the probability of each token of a word, and of its alternatives, after ``prefix``."""
    asked = await ParsedRequest.read(request)
    service = asked.service
    text, word, start = asked.text("text"), asked.text("word"), asked.text("prefix", "")
    pair = service.pair(asked.text("source"), asked.text("target"))
    async with service.admitted(asked.caller) as admission, admission.in_time():
        await admission.charge([text, start, word])
        explanation = await service.explanations.explain(pair, text, prefix=start + word)
    [trace] = explanation["traces"]
    spans = approximate_spans(trace["target"]["text"], [token["text"] for token in trace["target"]["tokens"]])
    end = len(start) + len(word)
    steps = zip(spans, trace["steps"], strict=True)
    return JSONResponse([_step(step) for span, step in steps if span[0] < end and len(start) < span[1]])


def _step(step: dict[str, Any]) -> dict[str, Any]:
    """Return the chosen token of a step and its alternatives, with their probabilities."""
    chosen, *others = [
        {"token": candidate["token"]["text"].replace("▁", "") or "␣", "probability": candidate["probability"]}
        for candidate in [step["candidates"][step["chosen"]], *step["candidates"]]
    ]
    return {**chosen, "others": [candidate for candidate in others if candidate != chosen][:_N_OTHERS]}


async def compute(request: Request) -> Response:
    """Run a task of the page's engine."""
    asked = await ParsedRequest.read(request)
    service = asked.service
    text, start, task = asked.text("text"), asked.text("prefix", ""), request.path_params["task"]
    if task not in _TASKS:
        raise ServiceError(404, "Not Found")
    pair = service.pair(asked.text("source"), asked.text("target"))
    begun = {} if task == "translate" else {"start": start}
    async with service.admitted(asked.caller) as admission, admission.in_time():
        await admission.charge([text, start])
        translator = await service.translator(pair, Requirements(token_log_probs=True))
        job = service.job(translator, partial(_TASKS[task], translator, **begun), [text], admission)
        [[answer]] = await service.finished(request, [job])
    return JSONResponse(answer)


ROUTES = [Route("/", show), Route("/page/why", why, methods=["POST"]), Route("/page/{task}", compute, methods=["POST"])]
