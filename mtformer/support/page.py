"""Put a page together."""

import html
import json
from collections.abc import Sequence
from importlib import resources
from typing import Any

Asset = tuple[str, str] | str  # the package and the name of a file, or the text of a script

MAX_PAGE_BYTES = 2_000_000
BASE64 = 4 / 3  # characters for each byte

# The page may use what it contains and nothing else: the browser itself refuses everything that would need a network.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; script-src 'unsafe-inline'"
# A page that runs a model does so in a worker made of its own scripts, and in WebAssembly; still without eval.
_COMPUTING_POLICY = POLICY + " 'wasm-unsafe-eval'; worker-src blob:"
# Its server may also give it a service worker, and a manifest with an icon.
_APP_POLICY = _COMPUTING_POLICY.replace("blob:", "blob: 'self'") + "; manifest-src 'self'"


def assemble(
    title: str,
    body: str,
    *,
    language: str = "en",
    data: Any = None,
    assets: Sequence[Asset] = (),
    computes: bool = False,
    connects: bool = False,
    manifest: str = "",
) -> str:
    """Return a whole HTML page, self-contained, with the style that all our pages share.

    Args:
        title: plain text.
        body: HTML.
        language: of the page, as in "zh".
        data: what scripts find, parsed, as ``pageData``; anything that JSON can express.
        assets: style sheets and scripts, each as the package that contains it and its name, as in
            ``("mtformer.explain", "explain.js")``; or the text of a script.
        computes: whether its scripts may start workers and WebAssembly that the page itself contains.
        connects: whether its scripts may send requests to the server that the page comes from.
        manifest: of an app that a browser can install from a server, the name of the file beside the page that
            describes it; the app may also have a service worker.
    """
    policy = _APP_POLICY if manifest else _COMPUTING_POLICY if computes else POLICY
    policy += "; connect-src 'self'" * connects
    app = f'<link rel="manifest" href="{manifest}">\n' if manifest else ""
    all_assets: Sequence[Asset] = [("mtformer.support", "page.css"), *assets]
    styles = "\n".join(_read(asset) for asset in all_assets if _is_style(asset))
    scripts = "\n".join(f"<script>\n{_read(asset)}</script>" for asset in all_assets if not _is_style(asset))
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n{app}'
        f'<link rel="icon" href="data:,">\n<title>{html.escape(title)}</title>\n<style>\n{styles}</style>\n</head>\n'
        f"<body>\n{body}\n<script>const pageData = {to_script(data)};</script>\n{scripts}\n</body>\n</html>\n"
    )


def to_script(data: Any) -> str:
    """Return ``data`` as JSON that can stand inside a ``<script>`` element, whatever text it contains.

    Raises:
        ValueError: a number is not finite, which JSON cannot express.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _is_style(asset: Asset) -> bool:
    return not isinstance(asset, str) and asset[1].endswith(".css")


def _read(asset: Asset) -> str:
    if isinstance(asset, str):
        return asset
    package, name = asset
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")
