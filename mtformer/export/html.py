"""A translator as a web page: one HTML file that translates offline, or a folder for a server to install it from."""

import hashlib
import json
from collections.abc import Iterator
from functools import partial
from importlib import resources
from pathlib import Path
from typing import get_args

from mtformer.browser.assets import TRANSLATOR_ASSETS
from mtformer.browser.pack import ENGINE_ASSETS, Quantization, pack, weights_element
from mtformer.bundle.format import Bundle
from mtformer.model.weights import count_parameters
from mtformer.runs.description import describe_model
from mtformer.support import __version__
from mtformer.support.errors import UserError
from mtformer.support.files import write_new_folder
from mtformer.support.page import BASE64, assemble

MAX_BYTES = 200_000_000  # of a page
_WEIGHT_BYTES = {"int8": 1, "float32": 4}

_ASSETS = [*ENGINE_ASSETS, *TRANSLATOR_ASSETS]  # the engine first: its worker runs the scripts up to its own
_MANIFEST = "manifest.webmanifest"
_ICON = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 512 512">
<rect width="512" height="512" fill="#1f5fbf"/>
<path d="M136 208h240l-64-64M376 304H136l64 64" fill="none" stroke="#fff" stroke-width="36"/>
</svg>
"""


def parse_quantization(name: str | None) -> Quantization:
    """Return the format in which a page stores weights: as named, or else int8.

    Raises:
        UserError: a page does not store them so.
    """
    for known in get_args(Quantization):
        if name in (known, None):
            return known
    raise UserError(f"--quantization {name}: a page stores weights as {' or '.join(get_args(Quantization))}")


def write_app(output: Path, bundle: Bundle, quantization: Quantization = "int8") -> Path:
    """Write a folder with the page of a model, ``index.html``, which browsers can install from any web server.

    Returns:
        ``output``, a new folder; or the one beside it that has the files, if something is at ``output`` by now.

    Raises:
        UserError: a page cannot run the model, the model is too large for a page, or ``output`` exists.
        MtformerError: the files cannot be written.
    """
    page = render_page(bundle, quantization, is_app=True).encode()
    return write_new_folder(output, partial(_write_app, title=bundle.header.title, page=page), "--output")


def render_page(bundle: Bundle, quantization: Quantization = "int8", *, is_app: bool = False) -> str:
    """Return the page of a model.

    Args:
        bundle: the model.
        quantization: how the page stores the weights.
        is_app: whether a manifest and a service worker are beside it.

    Raises:
        UserError: a page cannot run the model, or the model is too large for a page.
    """
    _require_small(bundle, quantization)
    packed = pack(bundle, quantization=quantization)
    body = resources.files("mtformer.browser").joinpath("translator.html").read_text(encoding="utf-8")
    title, manifest = f"{bundle.header.title} · mtformer", _MANIFEST if is_app else ""
    data = {"engine": packed.header, "about": list(_describe(bundle, quantization)), "isApp": is_app}
    body += weights_element(packed)
    return assemble(title, body, data=data, assets=_ASSETS, computes=True, manifest=manifest)


def _require_small(bundle: Bundle, quantization: Quantization) -> None:
    n_parameters = count_parameters(bundle.model)
    n_bytes = n_parameters * _WEIGHT_BYTES[quantization] * BASE64
    if n_bytes <= MAX_BYTES:
        return
    advice = "" if quantization == "int8" else "store its weights with --quantization int8, "
    raise UserError(
        f"the model has {n_parameters / 1e6:,.0f} million parameters: its page would take {n_bytes / 1e6:,.0f} MB, and "
        f"a page may take {MAX_BYTES / 1e6:,.0f} MB; {advice}train a smaller one (model.preset), or export it with "
        "--to ctranslate2"
    )


def _describe(bundle: Bundle, quantization: Quantization) -> Iterator[tuple[str, str]]:
    """Yield a page's description of its model, as names and texts."""
    yield from describe_model(
        bundle.header, f"{count_parameters(bundle.model):,} parameters; the page has its weights in {quantization}"
    )
    yield "SHA-256", bundle.digest
    yield "Made with", f"mtformer {__version__}, Apache-2.0"


def _write_app(folder: Path, *, title: str, page: bytes) -> None:
    """Fill a folder with a page, and with the files that make it an app."""
    manifest = {
        "name": title,
        "short_name": title[:12],
        "start_url": "./",
        "display": "standalone",
        "background_color": "#fdfdfc",
        "theme_color": "#1f5fbf",
        "icons": [{"src": "icon.svg", "sizes": "any", "type": "image/svg+xml", "purpose": "any"}],
    }
    worker = resources.files("mtformer.browser").joinpath("service-worker.js").read_text(encoding="utf-8")
    version = hashlib.sha256(page).hexdigest()
    (folder / "index.html").write_bytes(page)
    for name, text in {
        _MANIFEST: json.dumps(manifest, indent=2) + "\n",
        "service-worker.js": f'const VERSION = "{version}";\n{worker}',
        "icon.svg": _ICON,
    }.items():
        (folder / name).write_text(text, encoding="utf-8", newline="\n")
