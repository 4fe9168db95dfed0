"""``mtformer serve``."""

import logging
import sys
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mtformer.cli import options
from mtformer.cli.command import Options, argument, option
from mtformer.support.errors import UserError
from mtformer.support.packages import require_package

if TYPE_CHECKING:
    from mtformer.serve.running import Address

log = logging.getLogger(__name__)

_PACKAGES = ("starlette", "uvicorn", "httptools", "python_multipart", "sqlalchemy", "prometheus_client")
_GIB = 2**30


class ListenOptions(Options):
    """The address of a server, and access to it."""

    panel = "Access"
    host: str = option("The address to listen on; others than this machine's own need --keys.", default="127.0.0.1")
    port: int = option("The port.", default=8000, min=0, max=65_535)
    keys: Path | None = option("A file of keys; each request needs one.")
    new_key: str | None = option("Add a key for NAME to the file of --keys, print it, and exit.", metavar="NAME")
    insecure: bool = option("Accept requests from other machines without keys.")
    cors: list[str] | None = option("Let pages of this origin use the server. Repeatable.", metavar="ORIGIN")


class LimitOptions(Options):
    """The limits of a server."""

    panel = "Limits"
    max_characters: int = option("The maximum number of characters in a request.", default=100_000, min=1)
    timeout: float = option("The maximum time of a request in seconds.", default=60.0, min=1, max=86_400)
    max_memory: float | None = option(
        "The maximum memory for the weights of loaded models in GiB.", min=0.01, max=1_000_000
    )


def serve(
    model: list[Path] | None = argument(
        "Bundles, exported models, runs' folders. Default: $MTFORMER_MODEL, or else runs/.", "MODEL", default=None
    ),
    *,
    listen: ListenOptions,
    limits: LimitOptions,
    demo: bool = option(
        "Serve the built-in phrasebook; train it first if runs/demo has no model.", panel=options.IN_OUT
    ),
    engine: Literal["auto", "torch", "ctranslate2"] = option("The engine.", default="auto", panel=options.SEARCH),
    device: options.Device = options.DEVICE,
    precision: Literal["fp32", "bf16", "int8"] | None = option(
        "The format of matrix products; int8, of CTranslate2, is faster on a CPU. Default: fp32.", panel=options.SEARCH
    ),
    database: str | None = option(
        "A SQLite file or a PostgreSQL URL for glossaries, usage and documents; otherwise a restart loses them.",
        panel=options.IN_OUT,
        metavar="FILE|URL",
    ),
    watch: bool = option("Reload a model when its file changes.", panel=options.IN_OUT),
    log_format: Literal["json", "text"] | None = option(
        "The format of the log. Default: text at a terminal, otherwise JSON.", panel=options.IN_OUT
    ),
) -> None:
    """Translate for other programs, over HTTP.

    Clients of LibreTranslate and DeepL work with it; it has an interface of its own, too.
    """
    for package in _PACKAGES:
        require_package(package, "serve", "serve")
    if listen.new_key is not None:
        _add_key(listen.keys, listen.new_key)
        return
    from mtformer.runs.finding import find_models
    from mtformer.serve.admission import RequestLimits
    from mtformer.serve.models import Models
    from mtformer.serve.running import Address, serve
    from mtformer.support.hardware import keep_freed_memory
    from mtformer.support.logs import log_as_json

    if log_format == "json" or (log_format is None and not sys.stderr.isatty()):
        log_as_json()
    address = Address(listen.host, listen.port, listen.keys, listen.insecure, listen.cors or ())
    paths = _demo(model, address) if demo else find_models(model, "mtformer serve MODEL")
    max_bytes = None if limits.max_memory is None else int(limits.max_memory * _GIB)
    models = Models(paths, engine=engine, device=device, precision=precision, max_bytes=max_bytes)
    keep_freed_memory()
    settings = RequestLimits(limits.max_characters, limits.timeout)
    serve(models, address, database=database, settings=settings, watch=watch)


def _demo(given: list[Path] | None, address: "Address") -> list[Path]:
    """Return the bundle of the phrasebook, which is trained if there is none and the server could then listen.

    Raises:
        UserError: a model is named beside it, or the address is taken.
    """
    import yaml

    from mtformer.config import Config
    from mtformer.runs.folder import RunFolder

    if given:
        raise UserError("--demo serves the built-in phrasebook: name no model beside it")
    demo = resources.files("mtformer.serve").joinpath("demo.yaml").read_text(encoding="utf-8")
    config = Config.model_validate(yaml.safe_load(demo))
    bundle = RunFolder.of(config).bundle
    if not bundle.is_file():
        from mtformer.training.run import train

        address.listen().close()
        log.info("%s is trained first, which takes some minutes", bundle)
        train(config)
    return [bundle]


def _add_key(path: Path | None, name: str) -> None:
    """Add a key to a file, and print it."""
    from mtformer.serve.keys import add_key

    if path is None:
        raise UserError("--new-key NAME needs --keys FILE, to which the key is added")
    options.print_result(add_key(path, name))
