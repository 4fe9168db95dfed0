"""The interface of DeepL's API, version 2: https://developers.deepl.com/docs. Its clients work with this server."""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from mtformer.serve.documents import fetched, new_name, translate_later
from mtformer.serve.errors import ServiceError
from mtformer.serve.glossaries import parsed_entries, read_glossary, stored_glossary
from mtformer.serve.http import ParsedRequest
from mtformer.serve.models import Requirements
from mtformer.serve.protection import plan_joined, plan_markup
from mtformer.serve.query import Query
from mtformer.serve.results import Outcome, Result
from mtformer.serve.service import Service
from mtformer.serve.store import StoredGlossary
from mtformer.text.glossary import Glossary
from mtformer.text.languages import english_name, matches_language
from mtformer.translate.plan import Plan
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

_UNLIMITED = 1_000_000_000_000  # DeepL's number for a key without a limit
_TAG_HANDLING = ("xml", "html")
_AS_USUAL = ("default", "prefer_more", "prefer_less")  # of formality: what a model without it may do


async def translate(request: Request) -> Response:
    """Translate texts, with a glossary or without."""
    asked = await ParsedRequest.read(request)
    texts, tag_handling = asked.texts("text"), asked.text("tag_handling", "")
    _refuse_unsupported(asked.fields, tag_handling)
    target, source = asked.text("target_lang"), asked.text("source_lang", "") or None
    wanted, plan = Requirements(glossary=await _glossary(asked)), _plan(asked.fields, tag_handling)
    query = Query(texts=texts, target=target, source=source, wanted=wanted, plan=plan)
    answers = await asked.service.translate(request, asked.caller, query)
    shown = [
        {"detected_source_language": answer.source.upper(), "text": answer.text, "billed_characters": len(text)}
        for text, answer in zip(texts, answers, strict=True)
    ]
    return JSONResponse({"translations": shown})


def _plan(given: Mapping[str, Any], tag_handling: str) -> Callable[[Translator, str], Plan[list[Translation]]]:
    """Return the plan for translating a text; in HTML, a sentence may continue on the next line by default."""
    is_html = tag_handling == "html"
    joins_lines = given.get("split_sentences", "nonewlines" if is_html else "1") == "nonewlines"
    if tag_handling:
        return partial(plan_markup, tags=_names(given, "ignore_tags"), is_html=is_html, joins_lines=joins_lines)
    return plan_joined if joins_lines else Translator.plan


def _refuse_unsupported(given: Mapping[str, Any], tag_handling: str) -> None:
    """Refuse unsupported options that would change the translation.

    Raises:
        ServiceError: the message names it.
    """
    formality = given.get("formality") or "default"
    if formality not in _AS_USUAL:
        raise ServiceError(400, f"formality: {formality} is not supported by this server's models")
    if tag_handling and tag_handling not in _TAG_HANDLING:
        raise ServiceError(400, f"tag_handling: {tag_handling} is not supported; it is xml or html")
    for name in ("style_id", "custom_instructions", "translation_memory_id"):
        if given.get(name):
            raise ServiceError(400, f"{name} is not supported by this server")


def _names(given: Mapping[str, Any], name: str) -> list[str]:
    """Return the names in a list or a text, with commas between them."""
    value = given.get(name) or []
    values = value if isinstance(value, list) else [value]
    return [name.strip() for each in values for name in str(each).split(",") if name.strip()]


async def _glossary(asked: ParsedRequest) -> Glossary | None:
    """Return the glossary of a request.

    Raises:
        ServiceError: it does not exist, or is for other languages.
    """
    id, source = asked.fields.get("glossary_id"), asked.text("source_lang", "")
    if not id:
        return None
    if not source:
        raise ServiceError(400, "a glossary needs source_lang")
    stored, target = await stored_glossary(asked, str(id)), asked.text("target_lang")
    if not (matches_language(source, stored.src_lang) and matches_language(target, stored.tgt_lang)):
        pair = f"from {stored.src_lang} to {stored.tgt_lang}"
        raise ServiceError(400, f"the glossary {stored.name} is for translations {pair}")
    return await read_glossary(stored.terms)


async def upload_document(request: Request) -> Response:
    """Start translating a document."""
    asked = await ParsedRequest.read(request)
    service, caller = asked.service, asked.caller
    _refuse_unsupported(asked.fields, "")
    file = asked.file._replace(name=asked.text("filename", asked.file.name))
    source, target = asked.text("source_lang", "") or None, asked.text("target_lang")
    wanted = Requirements(glossary=await _glossary(asked))
    query = Query(texts=(), target=target, source=source, is_one_language=True, wanted=wanted)
    name, media_type = new_name(file.name, service.pair(query.source, target).tgt_lang)
    format = asked.text("output_format", "")
    if format and PurePath(name).suffix.lower() != f".{format.lower()}":
        raise ServiceError(400, f"output_format: {format} is not supported: this document becomes {name}")
    async with service.admitted(caller, is_bulk=True) as admission:  # or it would be accepted, and fail later
        await admission.require_left()
        key = await service.database.run(service.results.add, name, media_type, Outcome(), caller.name)
    service.results.start(translate_later(key, service, caller, file, query))
    return JSONResponse({"document_id": _document_id(key), "document_key": key})


def _document_id(key: str) -> str:
    """Return the public id of a document; it is stored under its key, which cannot be guessed."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


async def document_status(request: Request) -> Response:
    """Report the progress of the translation of a document."""
    _, key, result = await _document(request)
    shown: dict[str, Any] = {"document_id": _document_id(key), "status": "translating", "seconds_remaining": 1}
    if result.error:
        shown |= {"status": "error", "error_message": result.error}
    elif result.is_done:
        shown |= {"status": "done", "billed_characters": result.n_characters}
    return JSONResponse(shown)


async def download_document(request: Request) -> Response:
    """Return a translated document, once."""
    service, key, _ = await _document(request)
    answer = await fetched(service, key)
    await service.database.run(service.results.remove, key)
    return answer


async def _document(request: Request) -> tuple[Service, str, Result]:
    """Return the service, and the document that a request is about, with its key.

    Raises:
        ServiceError: it does not exist, or the key is wrong.
    """
    asked = await ParsedRequest.read(request)
    id, key, service = request.path_params["id"], asked.text("document_key"), asked.service
    result = await service.database.run(service.results.find, key) if _document_id(key) == id else None
    if result is None:
        raise ServiceError(404, "there is no such document with this document_key, or not any more")
    return service, key, result


async def languages(request: Request) -> Response:
    """List the source or the target languages."""
    asked = await ParsedRequest.read(request)  # DeepL's own client puts the type into the body of a GET
    pairs, kind = asked.service.models.pairs, asked.text("type", "source")
    if kind not in ("source", "target"):
        raise ServiceError(400, f"type: {kind} is neither source nor target")
    codes = dict.fromkeys(pair.src_lang if kind == "source" else pair.tgt_lang for pair in pairs)
    formality = {} if kind == "source" else {"supports_formality": False}
    return JSONResponse([{"language": code.upper(), "name": english_name(code), **formality} for code in codes])


async def usage(request: Request) -> Response:
    """Return the characters that a key has used this month, and its quota."""
    service, caller, _ = await ParsedRequest.read(request)
    quota = caller.limits.characters_per_month
    n_characters = await service.database.run(service.store.used, caller.name)
    return JSONResponse({"character_count": n_characters, "character_limit": _UNLIMITED if quota is None else quota})


async def glossary_pairs(request: Request) -> Response:
    """List the directions that glossaries can be for."""
    pairs = (await ParsedRequest.read(request)).service.models.pairs
    shown = [{"source_lang": pair.src_lang.lower(), "target_lang": pair.tgt_lang.lower()} for pair in pairs]
    return JSONResponse({"supported_languages": shown})


async def create_glossary(request: Request) -> Response:
    """Store a glossary."""
    asked = await ParsedRequest.read(request)
    service, name, entries = asked.service, asked.text("name"), asked.text("entries")
    pair = service.pair(asked.text("source_lang"), asked.text("target_lang"))
    glossary = await read_glossary(await parsed_entries(entries, asked.text("entries_format", "tsv")))
    stored = await service.database.run(service.store.add_glossary, asked.caller.name, name, pair, glossary)
    return JSONResponse(_described(stored), 201)


async def list_glossaries(request: Request) -> Response:
    """List the glossaries of a key."""
    service, caller, _ = await ParsedRequest.read(request)
    stored = await service.database.run(service.store.glossaries, caller.name)
    return JSONResponse({"glossaries": list(map(_described, stored))})


async def get_glossary(request: Request) -> Response:
    """Describe a glossary."""
    return JSONResponse(_described(await _of_path(request)))


async def glossary_entries(request: Request) -> Response:
    """Return the entries of a glossary."""
    return PlainTextResponse((await _of_path(request)).entries, media_type="text/tab-separated-values")


async def delete_glossary(request: Request) -> Response:
    """Delete a glossary."""
    (service, caller, _), id = await ParsedRequest.read(request), request.path_params["id"]
    if not await service.database.run(service.store.delete_glossary, caller.name, id):
        raise ServiceError(404, f"there is no glossary {id}")
    return Response(status_code=204)


async def _of_path(request: Request) -> StoredGlossary:
    return await stored_glossary(await ParsedRequest.read(request), request.path_params["id"])


def _described(stored: StoredGlossary) -> dict[str, Any]:
    return {
        "glossary_id": stored.id,
        "ready": True,
        "name": stored.name,
        "source_lang": stored.src_lang.lower(),
        "target_lang": stored.tgt_lang.lower(),
        "creation_time": stored.created,
        "entry_count": stored.n_entries,
    }


ROUTES = [
    Route("/v2/translate", translate, methods=["POST"]),
    Route("/v2/document", upload_document, methods=["POST"]),
    Route("/v2/document/{id}", document_status, methods=["GET", "POST"]),
    Route("/v2/document/{id}/result", download_document, methods=["GET", "POST"]),
    Route("/v2/languages", languages),
    Route("/v2/usage", usage),
    Route("/v2/glossary-language-pairs", glossary_pairs),
    Route("/v2/glossaries", create_glossary, methods=["POST"]),
    Route("/v2/glossaries", list_glossaries),
    Route("/v2/glossaries/{id}", get_glossary),
    Route("/v2/glossaries/{id}", delete_glossary, methods=["DELETE"]),
    Route("/v2/glossaries/{id}/entries", glossary_entries),
]
