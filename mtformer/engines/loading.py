"""Loading a model to search with: on torch, or on CTranslate2, which runs exported models and most bundles.

Bundles are converted for CTranslate2 once, in the user's cache. Nothing here imports torch until it is needed.
"""

import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.bundle.header import Header
from mtformer.bundle.peek import is_exported, peek
from mtformer.config import SearchOptions
from mtformer.engines.ctranslate2 import require_supported, unsupported
from mtformer.engines.ctranslate2.cached import converted
from mtformer.engines.ctranslate2.folder import ExportedModel, read_folder
from mtformer.search.engine import Engine, EngineError
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.tokenizer.tokenizer import Tokenizer

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

log = logging.getLogger(__name__)
Changes = Mapping[str, float | str | None]  # of search options

ENGINES = ("auto", "torch", "ctranslate2")
_NOT_INSTALLED = "is not installed; pip install ctranslate2"


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

    def with_adapter(self, adapter: Path) -> "LoadedModel":
        """Return the model with a LoRA adapter; models with different adapters share all other weights.

        The adapter is not merged, which takes more time for each translation than one that :func:`load_model` merges.

        Raises:
            UserError: this is no single bundle on torch, or the adapter cannot be used or is another model's.
        """
        from mtformer.bundle.adapter import load_adapted
        from mtformer.bundle.format import Bundle
        from mtformer.engines.torch import TorchEngine

        if not isinstance(self.engine, TorchEngine) or len(self.engine.models) > 1:
            raise UserError(f"{adapter} is an adapter of one model, on torch: load its bundle with --engine torch")
        base = Bundle(self.engine.model, self.tokenizer, self.header, self.digest)
        bundle = load_adapted(base, adapter, merge=False)
        engine = self.engine.for_twin(bundle.model, bundle.header.alignment_group)
        return replace(self, engine=engine, header=bundle.header, digest=bundle.digest)


def load_model(
    models: "Sequence[Path | Bundle]",
    engine: str | None = None,
    device: str = "auto",
    *,
    adapter: Path | None = None,
    needs_torch: str | None = None,
    n_threads: int | None = None,
    **changes: float | str | None,
) -> LoadedModel:
    """Load a bundle, the folder of an exported model, or the bundles of an ensemble.

    CTranslate2 runs a bundle by converting it once, into the user's cache. What runs a model, by ``engine``::

                                          torch   None          auto                       ctranslate2
        what needs torch, in memory       torch   torch         torch                      an error
        a bundle                          torch   torch         CTranslate2 if it suits    CTranslate2
        an exported model                 error   CTranslate2   CTranslate2                CTranslate2
        an exported one that needs torch  error   error         error                      an error

    Args:
        models: a bundle or folder; or several bundles. Bundles may be in memory already, which torch runs.
        engine: ``torch``; ``ctranslate2``; ``auto``, which takes CTranslate2 where it is installed, there is no GPU,
            and it supports all options; or None for torch. An exported model always takes CTranslate2.
        device: ``cpu``, ``cuda``, ``mps``, or ``auto``, which takes ``cuda`` when there is one.
        adapter: what LoRA has trained on top of the bundle; see :mod:`mtformer.bundle.adapter`.
        needs_torch: what, besides the search options, only torch can do; None for nothing.
        n_threads: how many batches of one call a CPU computes at once; None for one on each core. Threads that share
            the model each compute on one core with 1.
        changes: search options that replace the model's own; None leaves an option as it is.

    Raises:
        UserError: the model, the engine or an option cannot be used, the bundles of an ensemble differ in their
            languages or vocabulary or are the same, or the adapter is another model's.
        MtformerError: the cache cannot be written.
    """
    if engine is not None and engine not in ENGINES:
        raise UserError(f"engine {engine}: it is {', '.join(ENGINES[:-1])} or {ENGINES[-1]}")
    path = models[0] if isinstance(models[0], Path) else None
    needs_torch = _what_needs_torch(models, adapter) or needs_torch
    if needs_torch is not None and (engine == "ctranslate2" or (path is not None and is_exported(path))):
        raise UserError(f"CTranslate2 does not support {needs_torch}: use --engine torch, with a bundle")
    if adapter is not None:
        from mtformer.bundle.adapter import load_adapted

        models = [load_adapted(models[0], adapter)]
    if path is None or needs_torch is not None:
        return _load_on_torch(models, device, n_threads, changes)
    if is_exported(path):
        return _load_exported(path, engine, device, n_threads, changes)
    if engine == "ctranslate2":
        _require_ctranslate2("--engine ctranslate2 needs the package ctranslate2, which")
        return _on_ctranslate2(converted(path, _quantization(changes)), device, n_threads, changes)
    suited = _load_converted(path, device, n_threads, changes) if engine == "auto" else None
    return suited or _load_on_torch(models, device, n_threads, changes)


def _what_needs_torch(models: "Sequence[Path | Bundle]", adapter: Path | None) -> str | None:
    """Return the feature of the models or the adapter that requires torch; None if CTranslate2 supports them.

    Raises:
        UserError: they cannot be combined.
    """
    if len(models) > 1 and adapter is not None:
        raise UserError(f"{adapter} is an adapter of one model, and {len(models)} are given: merge it with its own")
    if len(models) > 1:
        return "ensembles"
    if adapter is not None:
        return "adapters that are not merged (mtformer merge)"
    return None if isinstance(models[0], Path) else "bundles in memory"


def _load_on_torch(
    models: "Sequence[Path | Bundle]", device: str, n_threads: int | None, changes: Changes
) -> LoadedModel:
    from mtformer.bundle.format import load_bundle
    from mtformer.engines.torch import TorchEngine
    from mtformer.support.hardware import pick_device

    bundles = [load_bundle(model) if isinstance(model, Path) else model for model in models]
    # A model that was tuned to some directions of another one shares those with it.
    first = min(bundles, key=lambda bundle: len(bundle.header.languages or bundle.header.language_pairs))
    _require_alike(models, bundles, first)
    engine = TorchEngine(
        *(bundle.model.to(pick_device(device)) for bundle in bundles),
        alignment_heads=[bundle.header.alignment_group for bundle in bundles],
        n_threads=n_threads,
    )
    max_length = min(bundle.header.architecture.max_length for bundle in bundles)
    options = _options(first.header, changes)
    digest = first.digest
    if len(bundles) > 1:
        digest = hashlib.sha256("\n".join(bundle.digest for bundle in bundles).encode()).hexdigest()
    return LoadedModel(engine, first.tokenizer, first.header, digest, options, max_length, "torch", options.precision)


def _require_alike(models: "Sequence[Path | Bundle]", bundles: "Sequence[Bundle]", first: "Bundle") -> None:
    """Refuse an ensemble of one model twice, or of models that differ from the first in vocabulary or directions."""
    names = [str(model) if isinstance(model, Path) else f"model {i}" for i, model in enumerate(models, 1)]
    of_first = names[bundles.index(first)]
    for (one, ours), (other, theirs) in combinations(zip(names, bundles, strict=True), 2):
        if ours is theirs or ours.digest == theirs.digest != "":
            raise UserError(f"{one} and {other} are the same model: an ensemble needs different ones")
    for name, bundle in zip(names, bundles, strict=True):
        if not first.header.translates_alike(bundle.header):
            differs = "languages"
        elif bundle.tokenizer.models != first.tokenizer.models:
            differs = "tokenizers"
        else:
            continue
        raise UserError(f"{name} and {of_first} have different {differs}: they cannot translate together")


def _load_exported(path: Path, engine: str | None, device: str, n_threads: int | None, changes: Changes) -> LoadedModel:
    """Load the folder of an exported model, which CTranslate2 alone can run."""
    if engine == "torch":
        raise UserError(f"{path} is exported for CTranslate2: --engine torch needs the bundle that it was made from")
    _require_ctranslate2(f"{path} is a model for CTranslate2, which")
    model = read_folder(path)
    refused = unsupported(_options(model.header, changes))
    if changes.get("precision") == "fp32" and model.quantization.startswith("int"):
        refused.append("precision = fp32")
    if refused:
        raise UserError(
            f"{path} is exported for CTranslate2, with weights as {model.quantization}, and does not support "
            f"{', '.join(refused)}: use the bundle that it was made from, with --engine torch"
        )
    return _on_ctranslate2(model, device, n_threads, changes)


def _load_converted(path: Path, device: str, n_threads: int | None, changes: Changes) -> LoadedModel | None:
    """Load a bundle on CTranslate2 if ``auto`` takes it; None if torch has to translate."""
    if not suits_ctranslate2(path, device, **changes):
        return None
    try:
        model = converted(path, _quantization(changes))
        _require_positions(model, changes)
        return _on_ctranslate2(model, "cpu", n_threads, changes)
    except EngineError as error:
        log.info("torch translates with this model: %s", error)
    except UserError:
        raise
    except MtformerError:
        pass  # the cache cannot be written, which torch does not need
    return None


def _on_ctranslate2(model: ExportedModel, device: str, n_threads: int | None, changes: Changes) -> LoadedModel:
    from mtformer.engines.ctranslate2.engine import CTranslate2Engine
    from mtformer.engines.ctranslate2.model import pick_device

    options = _options(model.header, changes)
    require_supported(options)
    engine = CTranslate2Engine(model, device=pick_device(device), precision=options.precision, n_threads=n_threads)
    stored, computed = model.quantization.partition("_")[0], engine.compute_type.partition("_")[0]
    if options.precision == "fp32" and stored != computed:
        log.info("the weights are stored as %s, and computed as %s on this device", stored, computed)
    max_length = model.header.architecture.max_length
    return LoadedModel(
        engine, model.tokenizer, model.header, model.digest, options, max_length, "ctranslate2", engine.compute_type
    )


def _require_positions(model: ExportedModel, changes: Changes) -> None:
    """Refuse a model with too few positions for the longest translations that the options allow.

    Raises:
        EngineError: it has too few.
    """
    longest = _options(model.header, changes).limit(model.header.architecture.max_length) + 1
    if model.n_positions is not None and longest > model.n_positions:
        raise EngineError(f"a translation may take {longest:,} tokens, and CTranslate2's tables {model.n_positions:,}")


def suits_ctranslate2(path: Path, device: str, **changes: float | str | None) -> bool:
    """Tell whether ``auto`` takes CTranslate2 for a bundle; it does not for a damaged one, which torch then reports."""
    peeked = peek(path)
    if peeked is None or device not in ("auto", "cpu") or unsupported(_options(peeked.header, changes)):
        return False
    if problem := _import_problem():
        if problem != _NOT_INSTALLED:
            log.info("torch translates with this model: the package ctranslate2 %s", problem)
        return False
    from mtformer.engines.ctranslate2.model import pick_device

    return device == "cpu" or pick_device("auto") == "cpu"


def _options(header: Header, changes: Changes) -> SearchOptions:
    return header.search.to_config().updated(**changes)


def _quantization(changes: Changes) -> str:
    """Return the type of the weights that are kept in the cache."""
    return "int8" if changes.get("precision") == "int8" else "float32"


def _require_ctranslate2(subject: str) -> None:
    if problem := _import_problem():
        raise UserError(f"{subject} {problem}")


def _import_problem() -> str | None:
    """Return the reason why CTranslate2 cannot be imported, as the end of a sentence; None if it can."""
    try:
        import ctranslate2  # noqa: F401
    except (ImportError, OSError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name == "ctranslate2":
            return _NOT_INSTALLED
        if isinstance(error.__cause__, KeyboardInterrupt):  # Ctrl-C while pybind11 initializes the package
            raise error.__cause__ from None
        return f"cannot be imported: {error}; install it again, or use --engine torch"
    return None
