"""The web pages that may use a server: browsers let any page send requests to any server, local ones included."""

import ipaddress
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from mtformer.serve.http import error_response

_SAFE = ("GET", "HEAD", "OPTIONS")  # nothing is computed for these, and other origins cannot read the answers


class Origins:
    """Refuses requests of pages of other origins, unless these are named.

    A page can also give its own name the address of this machine (DNS rebinding), and so become one of the server's
    own origin. Where only this machine may use the server, and without a key, its name has to be this machine's.
    """

    def __init__(self, app: ASGIApp, allowed: Sequence[str], *, is_local: bool) -> None:
        """Pass accepted requests on to ``app``.

        Args:
            app: the application.
            allowed: origins, as in ``https://example.org``; ``*`` for all.
            is_local: whether all on this machine, and nobody else, may use the server.
        """
        self._app, self._allowed, self._is_local = app, set(allowed), is_local
        self._hosts = {urlsplit(origin).hostname for origin in allowed}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        app = self._app
        if scope["type"] == "http" and (problem := self._problem(scope["method"], Headers(scope=scope))):
            app = error_response(Request(scope), 403, problem)
        await app(scope, receive, send)

    def _problem(self, method: str, headers: Headers) -> str | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if self._is_local and host and not self._is_known(host):
            return "this server is for programs on this machine only; --cors names the address of a proxy before it"
        if method in _SAFE or origin is None or self._allowed & {"*", origin}:
            return None
        if headers.get("sec-fetch-site") == "same-origin" or origin.partition("://")[2] == host:
            return None
        return "pages of other origins may not use this server, unless --cors names their origin"

    def _is_known(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return name in self._hosts or is_loopback(name)


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address is a loopback one."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
