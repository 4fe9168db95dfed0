"""The models of a server: found by direction, loaded when first asked for, and replaced while requests go on."""

import logging
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from mtformer.bundle.header import Header
from mtformer.bundle.peek import is_exported, peek
from mtformer.config import LanguagePair, SearchConfig
from mtformer.engines.ctranslate2 import unsupported
from mtformer.engines.ctranslate2.folder import read_folder
from mtformer.engines.loading import LoadedModel, load_model
from mtformer.serve.errors import ServiceError
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.hardware import Device, usable_cores
from mtformer.text.glossary import Glossary
from mtformer.text.languages import matches_language
from mtformer.translate.terms import Terms
from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

_MOST_TRANSLATORS = 64  # of a model, for different options: they share its weights
_MOST_DIRECTIONS = 10_000
LONGEST_CODE = 35  # of a language, in characters: RFC 5646 asks for so many
_COPIES = {"torch": 2, "ctranslate2": 1}  # of the weights in memory: torch prepares some for inference

Stamp = tuple[int, int, int]  # tells whether a file has changed


class Wanted(NamedTuple):
    """What a request wants of a model.

    Attributes:
        pair: a direction that the model has.
        options: search options that replace the model's own, as sorted names and values.
        alignments: whether translations come with their alignments.
        token_log_probs: whether translations need the log probabilities of their tokens, and so their confidence.
        glossary: how terms are to be translated.
    """

    pair: LanguagePair
    options: tuple[tuple[str, Any], ...] = ()
    alignments: bool = False
    token_log_probs: bool = False
    glossary: Glossary | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells it from others."""
        return *self[:-1], "" if self.glossary is None else self.glossary.digest


@dataclass(eq=False)
class _Version:
    """The contents of a model's file at some time. Requests that have begun keep theirs when it is replaced.

    Attributes:
        path: the bundle or the folder.
        stamp: when it was read.
        header: its description.
        n_bytes: the size of its weights.
        engines: what computes it, by whether torch has to.
        translators: for the latest requests.
        loading: held by the thread that loads it.
    """

    path: Path
    stamp: Stamp
    header: Header
    n_bytes: int
    engines: dict[bool, LoadedModel] = field(default_factory=dict)
    translators: OrderedDict[tuple[Any, ...], Translator] = field(default_factory=OrderedDict)
    loading: Any = field(default_factory=Lock)

    @classmethod
    def read(cls, path: Path) -> "_Version":
        """Read the description of a model.

        Raises:
            UserError: there is none, or it is damaged.
        """
        stamp = _stamp(path)
        if stamp is None:
            raise UserError(f"there is no model at {path}")
        if is_exported(path):
            return cls(path, stamp, read_folder(path).header, (path / "model.bin").stat().st_size)
        peeked = peek(path)
        if peeked is None:
            from mtformer.bundle.format import load_bundle

            load_bundle(path)  # says what is wrong with it
            raise UserError(f"{path} has changed while it was read")
        return cls(path, stamp, peeked.header, path.stat().st_size)

    @property
    def loaded_bytes(self) -> int:
        """How much memory its weights take, about."""
        return sum(self.n_bytes * _COPIES[model.engine_name] for model in self.engines.values())


def _stamp(path: Path) -> Stamp | None:
    """Return what changes with a model's file; None if there is no file."""
    try:
        stat = (path / "mtformer.json" if path.is_dir() else path).stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino


class Models:
    """The models of a server. Threads may share it."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        engine: str = "auto",
        device: Device = "auto",
        precision: str | None = None,
        max_bytes: int | None = None,
    ) -> None:
        """Read which directions some models have; the first that has one translates it.

        Args:
            paths: bundles, and folders of exported models.
            engine: what computes, as for :func:`.load_model`.
            device: where.
            precision: the format of matrix products, as in :class:`.SearchOptions`; None for fp32.
            max_bytes: how much memory the weights of loaded models may take; None for any.

        Raises:
            UserError: a model cannot be read, or is larger than ``max_bytes``.
        """
        self._engine, self._device, self._precision, self._max_bytes = engine, device, precision, max_bytes
        self._versions = [_Version.read(path) for path in dict.fromkeys(paths)]
        self._directions: dict[tuple[str, str], LanguagePair | None] = {}  # by what requests call their languages
        self._refused: dict[Path, Stamp | None] = {}
        self._used: OrderedDict[_Version, None] = OrderedDict()  # loaded ones, the last used last
        self._lock = Lock()
        for version in self._versions:
            if max_bytes is not None and version.n_bytes > max_bytes:
                raise UserError(
                    f"{version.path} has {version.n_bytes / 1e6:,.0f} MB of weights, more than --max-memory allows"
                )

    @property
    def n_threads(self) -> int:
        """How many batches should be computed side by side: one on each core, or one on a GPU."""
        if self._device == "cpu":
            return usable_cores()
        from mtformer.support.hardware import pick_device

        return usable_cores() if pick_device(self._device).type == "cpu" else 1

    @property
    def loaded_bytes(self) -> int:
        """How much memory the weights take, about."""
        return sum(version.loaded_bytes for version in list(self._used))

    @property
    def pairs(self) -> list[LanguagePair]:
        """All directions."""
        return list(dict.fromkeys(pair for version in self._versions for pair in version.header.language_pairs))

    @property
    def languages(self) -> list[str]:
        """All languages, sources first."""
        pairs = self.pairs
        return list(dict.fromkeys([*(pair.src_lang for pair in pairs), *(pair.tgt_lang for pair in pairs)]))

    @property
    def digests(self) -> list[str]:
        """Those of the models that are loaded."""
        return [model.digest for version in list(self._used) for model in version.engines.values()]

    def direction(self, src_lang: str, tgt_lang: str) -> LanguagePair | None:
        """Return the direction that is meant by two codes, in any writing; None if no model has it."""
        key = src_lang, tgt_lang
        if max(map(len, key)) > LONGEST_CODE:
            return None
        if key not in self._directions:
            if len(self._directions) >= _MOST_DIRECTIONS:
                self._directions.clear()
            fitting = [
                (matches_language(tgt_lang, pair.tgt_lang), matches_language(src_lang, pair.src_lang), -place, pair)
                for place, pair in enumerate(self.pairs)
            ]
            fits = max(fitting, key=lambda fit: (min(fit[:2]), fit[:3]))
            self._directions[key] = fits[-1] if all(fits[:2]) else None
        return self._directions[key]

    def ready(self, wanted: Wanted) -> Translator | None:
        """Return the translator for a request if there is one by now: this does not wait."""
        with self._lock:
            version = self._version_of(wanted.pair)
            translator = version.translators.get(wanted.key)
            if translator is not None:
                version.translators.move_to_end(wanted.key)
                self._used.move_to_end(version)
            return translator

    def translator(self, wanted: Wanted) -> Translator:
        """Return the translator for a request; this may load a model, and unload others.

        Raises:
            UserError: the model cannot do what is wanted.
            ServiceError: the model cannot be loaded.
        """
        version = self._version_of(wanted.pair)
        needs_torch = self._needs_torch(version, wanted)
        if needs_torch and is_exported(version.path):
            raise UserError("this model is exported for CTranslate2, which has no glossaries and does not sample")
        try:
            model = self._loaded(version, needs_torch=needs_torch)
        except MtformerError as error:
            log.error("a model cannot be loaded: %s", error)
            pair = " to ".join(wanted.pair)
            raise ServiceError(503, f"the model from {pair} cannot be loaded; the log of the server says why") from None
        translator = _make_translator(model, wanted)
        with self._lock:
            version.translators[wanted.key] = translator
            while len(version.translators) > _MOST_TRANSLATORS:
                version.translators.popitem(last=False)
        return translator

    def bundle(self, pair: LanguagePair) -> Path:
        """Return the bundle of a direction.

        Raises:
            UserError: the model is an exported one.
        """
        path = self._version_of(pair).path
        if path.is_dir():
            raise UserError("this model is exported for CTranslate2, and only a bundle can explain its translations")
        return path

    def load_first(self) -> None:
        """Load models, in order, as long as there is memory for them.

        Raises:
            UserError: one cannot be loaded.
        """
        for version in self._versions:
            if self._max_bytes is None or self.loaded_bytes + version.n_bytes <= self._max_bytes:
                self._loaded(version, needs_torch=False)

    def refresh(self) -> list[Path]:
        """Replace models whose files have changed, and return their paths. One that cannot be loaded is not taken."""
        replaced = []
        for place, version in enumerate(self._versions):
            path, stamp = version.path, _stamp(version.path)
            if stamp in (version.stamp, self._refused.get(path, version.stamp)):
                continue
            try:
                new = _Version.read(path)
                for needs_torch in list(version.engines):
                    self._loaded(new, needs_torch=needs_torch)
            except (MtformerError, OSError) as error:
                log.error("the model goes on as it was, since the new one cannot be used: %s", error)
                self._refused[path] = stamp
                continue
            with self._lock:
                self._versions[place] = new
                if version in self._used:
                    del self._used[version]
                    self._used[new] = None
                self._directions.clear()
            log.info("the model has been replaced: %s", path)
            replaced.append(path)
        return replaced

    def _version_of(self, pair: LanguagePair) -> _Version:
        for version in self._versions:
            if pair in version.header.matching(*pair):
                return version
        raise ServiceError(503, f"the model from {pair.src_lang} to {pair.tgt_lang} has just been replaced; try again")

    def _needs_torch(self, version: _Version, wanted: Wanted) -> bool:
        """Tell whether only torch can do what is wanted, and is not what computes anyway."""
        default = version.engines.get(False)
        if self._engine == "torch" or (default is not None and default.engine_name == "torch"):
            return False
        return wanted.glossary is not None or bool(unsupported(SearchConfig().updated(**dict(wanted.options))))

    def _loaded(self, version: _Version, *, needs_torch: bool) -> LoadedModel:
        """Return a model, which is loaded if it must be.

        Raises:
            MtformerError: it cannot be.
        """
        with version.loading:
            if needs_torch not in version.engines:
                engine = "torch" if needs_torch else None if is_exported(version.path) else self._engine
                model = load_model([version.path], engine, self._device, n_threads=1, precision=self._precision)
                if model.engine_name == "torch":
                    import torch

                    torch.set_num_threads(1)  # of each thread that computes: others have batches of their own
                version.engines[needs_torch] = model
            model = version.engines[needs_torch]
        with self._lock:
            self._used[version] = None
            self._used.move_to_end(version)
            self._make_room(version)
        return model

    def _make_room(self, kept: _Version) -> None:
        """Unload the models that were not used for longest. Requests that use them keep them until they are done."""
        for version in list(self._used):
            if self._max_bytes is None or self.loaded_bytes <= self._max_bytes:
                return
            if version is not kept:
                log.info("unloading a model, to make room for another: %s", version.path)
                version.engines.clear()
                version.translators.clear()
                del self._used[version]


def _make_translator(model: LoadedModel, wanted: Wanted) -> Translator:
    """Return the translator for a request.

    Raises:
        UserError: the model cannot do what is wanted.
    """
    translator = Translator.load(model, src_lang=wanted.pair.src_lang, tgt_lang=wanted.pair.tgt_lang)
    if wanted.options:
        translator = translator.with_options(**dict(wanted.options))
    if wanted.glossary is not None:
        src_lang, tgt_lang = translator.src_lang, translator.tgt_lang
        terms = Terms(wanted.glossary, translator.tokenizer, src_lang=src_lang, tgt_lang=tgt_lang)
        translator = translator.with_terms(terms)
    return replace(translator, alignments=wanted.alignments, token_log_probs=wanted.token_log_probs)
