"""The application: all interfaces on one service."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import AsyncIterator, Awaitable, Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

from mtformer.data.clean.language import identifier
from mtformer.serve import deepl, libretranslate, own, page
from mtformer.serve.errors import ServiceError
from mtformer.serve.http import HANDLERS, Gate
from mtformer.serve.origins import Origins
from mtformer.serve.results import BEAT_SECONDS
from mtformer.serve.service import Service

log = logging.getLogger(__name__)

_WATCH_SECONDS = 2
_DRAIN_SECONDS = 10  # that documents may take when all requests are answered


def make_app(service: Service, *, cors: Sequence[str] = (), is_local: bool = False, watch: bool = False) -> Starlette:
    """Return the application.

    Args:
        service: the service; it is closed when the application shuts down.
        cors: the origins of pages that may use it from browsers.
        is_local: whether all on this machine, and nobody else, may use it.
        watch: whether to look for changed models every two seconds. SIGHUP makes it look once, where there is one.
    """
    cors = [origin.rstrip("/").lower() for origin in cors]  # as browsers write them
    routes = [*libretranslate.ROUTES, *deepl.ROUTES, *own.ROUTES, *page.ROUTES]
    middleware = [
        Middleware(Gate, service=service, routes=routes),
        Middleware(Origins, allowed=cors, is_local=is_local),
    ]
    if cors:
        middleware.append(Middleware(CORSMiddleware, allow_origins=cors, allow_methods=["*"], allow_headers=["*"]))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        changed = asyncio.Event()
        if hasattr(signal, "SIGHUP"):
            with contextlib.suppress(ValueError, RuntimeError):  # not in the main thread
                asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, changed.set)
        tasks = [asyncio.create_task(_remember(service)), asyncio.create_task(_refresh(service, changed, watch))]
        await asyncio.to_thread(identifier)  # which takes a second to load
        service.is_ready = True
        yield
        service.is_ready = False
        await service.results.drain(_DRAIN_SECONDS)
        for task in tasks:
            task.cancel()
        await asyncio.to_thread(service.close)

    app = Starlette(routes=routes, middleware=middleware, exception_handlers=HANDLERS, lifespan=lifespan)
    app.state.service = service
    return app


async def _remember(service: Service) -> None:
    """Write usage, and signal to other servers that this one is running."""
    while True:
        await asyncio.sleep(BEAT_SECONDS)
        await _tried(service.database.run(service.remember))


async def _refresh(service: Service, changed: asyncio.Event, watch: bool) -> None:
    """Replace models whose files have changed."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WATCH_SECONDS if watch else None):
                await changed.wait()
        changed.clear()
        await _tried(asyncio.to_thread(service.models.refresh))


async def _tried(work: Awaitable[object]) -> None:
    """Await periodic work; log errors instead of raising, so that a bug does not end it."""
    try:
        await work
    except ServiceError:
        pass  # the database does not answer, which is logged
    except Exception:
        log.exception("work in the background has failed")
