"""Common to all interfaces: reading requests within limits, and error responses."""

import asyncio
import json
import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qs

from python_multipart.exceptions import FormParserError
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartParser
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mtformer.serve.errors import ClientGoneError, ServiceError
from mtformer.serve.keys import Caller
from mtformer.serve.service import Service
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.lines import without_surrogates

log = logging.getLogger(__name__)

MOST_BYTES = 16 * 2**20  # of a request
_MOST_HELD = 256 * 2**20  # of all requests that are not answered yet
_MOST_TEXTS = 1_000  # of a request
_LONGEST_MESSAGE = 1_000  # characters of an error: some have a part of the request
_BODY_SECONDS = 30  # until all of a request must be there
_MOST_FIELDS = 2_000  # of a form
_MOST_BRACKETS = 200_000  # of JSON, each of which may begin a list or an object
_SMALL = 2**16  # bytes of a body that is read at once; larger ones are read in a thread
_SCHEMES = ("bearer", "deepl-auth-key")  # of the header Authorization
_KEYS = ("api_key", "auth_key")  # the fields that may have a key
_QUIET = ("/health", "/ready", "/metrics")  # which programs ask for all the time


class File(NamedTuple):
    """A file in a form.

    Attributes:
        name: its name, given by the client.
        content: its bytes.
    """

    name: str
    content: bytes


def service_of(request: Request) -> Service:
    """Return the service that a request is for."""
    service: Service = request.app.state.service
    return service


class ParsedRequest(NamedTuple):
    """The content of a request, independent of its interface.

    Attributes:
        service: the service that answers it.
        caller: its sender.
        fields: the fields of a JSON object, a form or the query string, by name; repeated fields are lists.
    """

    service: Service
    caller: Caller
    fields: Mapping[str, Any]

    @classmethod
    async def read(cls, request: Request) -> "ParsedRequest":
        """Read a request, whose key may be in the header Authorization, or in one of its fields.

        Raises:
            ServiceError: it cannot be read, or it needs a key, and has none or a wrong one.
        """
        service = service_of(request)
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        caller = service.caller(key.strip()) if scheme.lower() in _SCHEMES else None  # before the body is read
        fields = await _fields(request)
        if caller is None:
            given = (values.get(name) for values in (fields, request.query_params) for name in _KEYS)
            caller = service.caller(str(next(filter(None, given), "")).strip())
        request.state.caller = caller.name  # for the log
        return cls(service, caller, fields)

    def text(self, name: str, default: str | None = None) -> str:
        """Return a field that must be a text.

        Raises:
            ServiceError: it is missing, or not a text.
        """
        value = self.fields.get(name, default)
        if value is None or value == "":
            if default is not None:
                return default
            raise ServiceError(400, f"Invalid request: missing {name} parameter")
        if not isinstance(value, str):
            raise ServiceError(400, f"Invalid request: {name} is not text")
        return value

    def texts(self, name: str) -> list[str]:
        """Return a field that must be a text or a list of texts.

        Raises:
            ServiceError: it is missing, has another type, or the list is too long.
        """
        value = self.fields.get(name)
        if value is None or value == []:
            raise ServiceError(400, f"Invalid request: missing {name} parameter")
        values = value if isinstance(value, list) else [value]
        if len(values) > _MOST_TEXTS:
            raise ServiceError(413, f"a request may have {_MOST_TEXTS:,} texts, not {len(values):,}")
        if not all(isinstance(each, str) for each in values):
            raise ServiceError(400, f"Invalid request: {name} is neither a text nor a list of texts")
        return values

    def source(self, default: str | None = None) -> str | None:
        """Return the source language; None to detect it.

        Raises:
            ServiceError: it is missing, or not a text.
        """
        source = self.text("source", default)
        return None if source == "auto" else source

    def whole_number(self, name: str, most: int) -> int:
        """Return a field that must be a number from 0 to ``most``; 0 if it is missing.

        Raises:
            ServiceError: it is not such a number.
        """
        value = self.fields.get(name) or 0
        text = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
        if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and int(text) <= most):
            raise ServiceError(400, f"Invalid request: {name} is not a whole number from 0 to {most}")
        return int(text)

    @property
    def file(self) -> File:
        """The file in a form.

        Raises:
            ServiceError: there is no file, or it has no name.
        """
        file = self.fields.get("file")
        if not isinstance(file, File):
            raise ServiceError(400, "Invalid request: missing file parameter")
        if not file.name:
            raise ServiceError(400, "Invalid request: empty file")
        return file


async def _fields(request: Request) -> dict[str, Any]:
    """Read the fields of a request.

    Raises:
        ServiceError: they cannot be read.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return await _form(request)
    body = await request.body()
    is_form = not body or kind == "application/x-www-form-urlencoded"
    read, content = (_form_fields, body or request.url.query.encode()) if is_form else (_json_fields, body)
    return read(content) if len(content) <= _SMALL else await asyncio.to_thread(read, content)


def _form_fields(content: bytes) -> dict[str, Any]:
    try:
        values = parse_qs(content.decode(), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
    except ValueError:
        raise ServiceError(400, "Invalid request: the body is no form in UTF-8") from None
    return _single(values)


def _json_fields(content: bytes) -> dict[str, Any]:
    if content.count(b"[") + content.count(b"{") > _MOST_BRACKETS:  # it would take seconds, during which nothing runs
        raise ServiceError(413, f"a request in JSON may have {_MOST_BRACKETS:,} brackets")
    try:
        read = _as_unicode(json.loads(content))
    except (ValueError, RecursionError):
        raise ServiceError(400, "Invalid request: the body is not JSON in UTF-8") from None
    if not isinstance(read, dict):
        raise ServiceError(400, "Invalid request: the body is not a JSON object")
    return read


def _single(values: Mapping[str, list[Any]]) -> dict[str, Any]:
    """Return the fields of a form: those that occur once are no lists."""
    return {name: each[0] if len(each) == 1 else each for name, each in values.items()}


def _as_unicode(value: Any) -> Any:
    """Return a JSON value without the surrogates that its texts may have."""
    match value:
        case str():
            return without_surrogates(value)
        case list():
            return list(map(_as_unicode, value))
        case dict():
            return {_as_unicode(name): _as_unicode(each) for name, each in value.items()}
    return value


async def _form(request: Request) -> dict[str, Any]:
    MultiPartParser.spool_max_size = MOST_BYTES  # what is in a form stays in memory
    try:
        form = await request.form(max_files=1, max_fields=_MOST_FIELDS, max_part_size=MOST_BYTES)
    except HTTPException as error:
        raise ServiceError(400, f"Invalid request: {error.detail}") from None
    except (FormParserError, UnicodeError) as error:  # of encodings that are none of texts
        raise ServiceError(400, f"Invalid request: {error}") from None
    read: dict[str, list[Any]] = {}
    for name, value in form.multi_items():
        text = _as_unicode(value.filename or "" if isinstance(value, UploadFile) else value)
        field = File(text, await value.read()) if isinstance(value, UploadFile) else text
        read.setdefault(_as_unicode(name), []).append(field)
    await form.close()
    return _single(read)


def error_response(request: Request, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error in the shape that the clients of an interface expect."""
    name = "message" if request.url.path.startswith("/v2/") else "error"
    return JSONResponse({name: without_surrogates(message[:_LONGEST_MESSAGE])}, status, headers=headers)


async def on_error(request: Request, error: Exception) -> Response:
    """Answer a request that has raised an expected error."""
    status = error.status if isinstance(error, ServiceError) else 400 if isinstance(error, UserError) else 500
    headers = {}
    if isinstance(error, ServiceError) and error.retry_after is not None:
        headers["Retry-After"] = str(error.retry_after)
    if status in (408, 413):
        headers["Connection"] = "close"  # what is left of the request is not read
    if status >= 500:  # without its path, which may contain a secret id
        log.error("%s: %s", getattr(request.scope.get("endpoint"), "__name__", "a request"), error)
    return error_response(request, status, str(error), headers)


async def on_http_error(request: Request, error: Exception) -> Response:
    """Answer a request for which there is no route."""
    assert isinstance(error, HTTPException)
    return error_response(request, error.status_code, error.detail, error.headers)


async def on_bug(request: Request, error: Exception) -> Response:
    """Answer a request that has raised an unexpected error, and log the traceback."""
    return error_response(request, 500, "the server failed; its log says why")


HANDLERS: dict[Any, Any] = {MtformerError: on_error, HTTPException: on_http_error, Exception: on_bug}


class Gate:
    """Limits the size and the arrival time of requests, and logs and counts responses."""

    def __init__(self, app: ASGIApp, service: Service, routes: Sequence[Route]) -> None:
        self._app, self._service = app, service
        self.n_bytes = 0  # of all requests that are not answered yet
        self._paths: dict[Any, str] = {route.endpoint: route.path for route in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.monotonic(), 499

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message.setdefault("headers", []).append((b"x-content-type-options", b"nosniff"))
            await send(message)

        body = _Body(self, scope, receive)
        try:
            await self._app(scope, body.receive, answer)
        except Exception:  # which is answered outside
            status = 500
            raise
        finally:
            self.n_bytes -= body.n_bytes
            self._record(scope, status, time.monotonic() - start)

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        """Log and count a response. Nothing of the texts is logged, nor are keys and queries."""
        route = self._paths.get(scope.get("endpoint"), "other")
        metrics = self._service.metrics
        metrics.requests.labels(route, status).inc()
        metrics.seconds.labels(route).observe(seconds)
        if route not in _QUIET:
            shown = {"method": scope["method"], "route": route, "status": status, "ms": round(seconds * 1000, 1)}
            if caller := scope.get("state", {}).get("caller"):
                shown["key"] = caller
            log.info("%s %s %d", scope["method"], route, status, extra={"metrics": shown})


class _Body:
    """The body of a request, as it arrives.

    Attributes:
        n_bytes: the number of bytes received.
    """

    def __init__(self, gate: Gate, scope: Scope, receive: Receive) -> None:
        self._gate, self._receive = gate, receive
        self._until = time.monotonic() + _BODY_SECONDS
        self._declared = dict(scope["headers"]).get(b"content-length", b"0")
        self._is_whole = False
        self.n_bytes = 0

    async def receive(self) -> Message:
        """Receive a part.

        Raises:
            ServiceError: the body is too large or too slow, or the client has disconnected.
        """
        if self._is_whole:
            return await self._receive()  # which waits until the client goes
        if self._declared.isdigit() and int(self._declared) > MOST_BYTES:
            raise _too_large()
        try:
            async with asyncio.timeout(self._until - time.monotonic()):
                message = await self._receive()
        except TimeoutError:
            raise ServiceError(408, f"the request did not arrive within {_BODY_SECONDS} s") from None
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        n_bytes = len(message.get("body", b""))
        self.n_bytes += n_bytes
        self._gate.n_bytes += n_bytes
        if self.n_bytes > MOST_BYTES:
            raise _too_large()
        if self._gate.n_bytes > _MOST_HELD:
            raise ServiceError(503, "too many large requests at a time; try again later", retry_after=1)
        self._is_whole = not message.get("more_body", False)
        return message


def _too_large() -> ServiceError:
    return ServiceError(413, f"the request is larger than {MOST_BYTES / 2**20:.0f} MiB")
