"""A headless browser for pages: Debian's Chromium, driven by Playwright. Where there is none, its tests are skipped."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


class Opener:
    """A running browser that opens pages."""

    def __init__(self, browser: Browser) -> None:
        """Open pages in ``browser``."""
        self._browser = browser

    @contextmanager
    def __call__(
        self,
        place: Path | str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        touch: bool = False,
        scripts: bool = True,
    ) -> Iterator[Page]:
        """Open a page; at the end, fail if it has logged an error or asked for anything but itself.

        Args:
            place: its file; or its address on a server, from where it may ask for what is beside it.
            width: of the window.
            height: of the window.
            dark: whether pages should be dark.
            touch: whether the screen can be touched.
            scripts: whether JavaScript is turned on.
        """
        address = place if isinstance(place, str) else place.resolve().as_uri()
        itself = "file:" if isinstance(place, Path) else address.partition("#")[0]
        allowed = (itself, "data:", "blob:")
        problems: list[str] = []

        def on_console(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                problems.append(f"console: {message.text}")

        def on_request(request: Request) -> None:
            if not request.url.startswith(allowed) or request.url.endswith(".js"):
                problems.append(f"request: {request.url}")

        context = self._browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            java_script_enabled=scripts,
        )
        try:
            page = context.new_page()
            page.on("console", on_console)
            page.on("pageerror", lambda error: problems.append(f"error: {error}"))
            page.on("request", on_request)
            page.goto(address)
            yield page
        finally:
            context.close()
        assert not problems, problems


@contextmanager
def started() -> Iterator[Opener]:
    """Start a browser, of which Playwright drives one at a time."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        try:
            yield Opener(browser)
        finally:
            browser.close()


@contextmanager
def opened(path: Path, **settings: Any) -> Iterator[Page]:
    """Open one page in a browser of its own; the settings are those of :class:`Opener`."""
    with started() as opener, opener(path, **settings) as page:
        yield page
