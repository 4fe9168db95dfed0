"""Which engine runs a model: torch, or CTranslate2 for an exported model and for a bundle that it can take."""

import hashlib
import importlib.util
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.bundle.header import Header
from mtformer.bundle.peek import is_exported, peek
from mtformer.config import SearchConfig, SearchOptions
from mtformer.engines.ctranslate2.cache import converted
from mtformer.engines.ctranslate2.folder import ExportedModel, read_folder
from mtformer.search.engine import Engine, EngineError
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

log = logging.getLogger(__name__)

ENGINES = ("auto", "torch", "ctranslate2")


@dataclass(frozen=True)
class LoadedModel:
    """A model that can be searched.

    Attributes:
        engine: what computes it.
        tokenizer: the one that it was trained with.
        header: its languages, architecture, search settings and provenance.
        digest: that of the bundle's contents, or of the digests of an ensemble's bundles.
        options: the search options that it asks for, with those of the caller.
        max_length: the most tokens, EOS included, that it takes at once.
        engine_name: ``torch`` or ``ctranslate2``.
        precision: the type of its products, as the engine calls it: ``bf16``, or CTranslate2's ``int8_float32``.
        tag: that of the training text that it translates like; None for no tag.
    """

    engine: Engine
    tokenizer: Tokenizer
    header: Header
    digest: str
    options: SearchOptions
    max_length: int
    engine_name: str
    precision: str
    tag: str | None = None

    def toward(self, src_lang: str | None = None, tgt_lang: str | None = None, tag: str | None = None) -> "LoadedModel":
        """Return the model for one of its directions; see :meth:`Header.toward`.

        Raises:
            UserError: the model has no such direction or tag.
        """
        header, tokenizer = self.header.toward(self.tokenizer, src_lang, tgt_lang, tag)
        return replace(self, header=header, tokenizer=tokenizer, tag=tag)


def load_model(
    paths: Sequence[Path],
    engine: str | None,
    device: str,
    *,
    needs_torch: str | None = None,
    **changes: float | str | None,
) -> LoadedModel:
    """Load a bundle, the folder of an exported model, or the bundles of an ensemble.

    CTranslate2 runs a bundle by converting it once, into the user's cache.

    Args:
        paths: the bundle or folder; or the bundles.
        engine: ``torch``; ``ctranslate2``; ``auto``, which takes CTranslate2 where it is installed, there is no GPU,
            and it supports all options; or None for torch. An exported model always takes CTranslate2.
        device: ``cpu``, ``cuda``, or ``auto``, which takes a GPU when there is one.
        needs_torch: what, besides the search options, only torch can do; None for nothing.
        changes: search options that replace the model's own; None leaves an option as it is.

    Raises:
        UserError: the model, the engine or an option cannot be used.
        MtformerError: the cache cannot be written.
    """
    if engine is not None and engine not in ENGINES:
        raise UserError(f"engine {engine}: it is {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    path = paths[0]
    if len(paths) > 1:
        needs_torch = "ensembles"
    if needs_torch is not None and (is_exported(path) or engine == "ctranslate2"):
        raise UserError(f"CTranslate2 cannot do {needs_torch}: use --engine torch, with a bundle")
    if is_exported(path):
        return _load_exported(path, engine, device, **changes)
    if engine == "ctranslate2":
        _require_ctranslate2("--engine ctranslate2 needs the package ctranslate2, which")
        return _on_ctranslate2(converted(path, _quantization(changes)), device, **changes)
    if engine == "auto" and needs_torch is None:
        model = _load_converted(path, device, **changes)
        if model is not None:
            return model

    from mtformer.bundle.format import load_ensemble

    return on_torch(load_ensemble(paths), device, **changes)


def on_torch(bundles: Sequence["Bundle"], device: str, **changes: float | str | None) -> LoadedModel:
    """Run a bundle that is loaded already, or those of an ensemble; see :func:`load_model`."""
    from mtformer.engines.torch import TorchEngine
    from mtformer.support.hardware import pick_device

    first = bundles[0]
    engine = TorchEngine(
        *(one.model.to(pick_device(device)) for one in bundles),
        alignment_heads=[one.header.alignment_heads for one in bundles],
    )
    max_length = min(one.header.architecture.max_length for one in bundles)
    options = _options(first.header, **changes)
    digest = first.digest
    if len(bundles) > 1:
        digest = hashlib.sha256("\n".join(one.digest for one in bundles).encode()).hexdigest()
    return LoadedModel(engine, first.tokenizer, first.header, digest, options, max_length, "torch", options.precision)


def _load_exported(path: Path, engine: str | None, device: str, **changes: float | str | None) -> LoadedModel:
    """Load the folder of an exported model, which CTranslate2 alone can run."""
    if engine == "torch":
        raise UserError(f"{path} is exported for CTranslate2: --engine torch takes the bundle that it was made from")
    _require_ctranslate2(f"{path} is a model for CTranslate2, which")
    model = read_folder(path)
    _require_possible(model, **changes)
    return _on_ctranslate2(model, device, **changes)


def _load_converted(path: Path, device: str, **changes: float | str | None) -> LoadedModel | None:
    """Load a bundle for CTranslate2 if that is what ``auto`` takes; None if torch has to translate."""
    if not _suits_ctranslate2(path, device, **changes):
        return None
    try:
        model = converted(path, _quantization(changes))
        _require_positions(model, **changes)
        return _on_ctranslate2(model, "cpu", **changes)
    except EngineError as error:
        log.info("torch translates with this model: %s", error)
    except UserError:
        raise
    except MtformerError:
        pass  # the cache cannot be written, which torch does not need
    return None


def _on_ctranslate2(model: ExportedModel, device: str, **changes: float | str | None) -> LoadedModel:
    from mtformer.engines.ctranslate2.engine import CTranslate2Engine
    from mtformer.engines.ctranslate2.support import pick_device, require_supported

    options = _options(model.header, **changes)
    require_supported(options)
    engine = CTranslate2Engine(
        model.path,
        model.tokenizer,
        device=pick_device(device),
        n_positions=model.n_positions,
        aligns_reading=model.header.alignment_group[0].reading,
        precision=options.precision,
    )
    stored, computed = model.quantization.partition("_")[0], engine.compute_type.partition("_")[0]
    if options.precision == "fp32" and stored != computed:
        log.info("the weights are stored as %s, and computed as %s on this device", stored, computed)
    max_length = model.header.architecture.max_length
    return LoadedModel(
        engine, model.tokenizer, model.header, model.digest, options, max_length, "ctranslate2", engine.compute_type
    )


def _require_possible(model: ExportedModel, **changes: float | str | None) -> None:
    """Refuse options that an exported model cannot do, but the bundle that it was made from can."""
    from mtformer.engines.ctranslate2.support import unsupported

    refused = unsupported(_options(model.header, **changes))
    if changes.get("precision") == "fp32" and model.quantization.startswith("int"):
        refused.append("precision = fp32")
    if refused:
        raise UserError(
            f"{model.path} is exported for CTranslate2, with weights as {model.quantization}, and has no "
            f"{', '.join(refused)}; the bundle that it was made from has, with --engine torch"
        )


def _require_positions(model: ExportedModel, **changes: float | str | None) -> None:
    """Refuse a model with too few positions for the longest translations that the options allow.

    Raises:
        EngineError: it has too few.
    """
    longest = _options(model.header, **changes).limit(model.header.architecture.max_length) + 1
    if model.n_positions is not None and longest > model.n_positions:
        raise EngineError(f"a translation may take {longest:,} tokens, and CTranslate2's tables {model.n_positions:,}")


def _suits_ctranslate2(path: Path, device: str, **changes: float | str | None) -> bool:
    """Tell whether ``auto`` takes CTranslate2 for a bundle; it does not for a damaged one, which torch then reports."""
    peeked = peek(path)
    if peeked is None or device not in ("auto", "cpu") or not _has_ctranslate2():
        return False
    from mtformer.engines.ctranslate2.support import pick_device, unsupported

    return not unsupported(_options(peeked.header, **changes)) and (device == "cpu" or pick_device("auto") == "cpu")


def _options(header: Header, **changes: float | str | None) -> SearchOptions:
    return SearchConfig(**header.search.model_dump()).updated(**changes)


def _quantization(changes: Mapping[str, float | str | None]) -> str:
    """Return the type of the weights that are kept in the cache."""
    return "int8" if changes.get("precision") == "int8" else "float32"


def _has_ctranslate2() -> bool:
    return importlib.util.find_spec("ctranslate2") is not None


def _require_ctranslate2(subject: str) -> None:
    if not _has_ctranslate2():
        raise UserError(f"{subject} is not installed; pip install 'mtformer[ctranslate2]'")
