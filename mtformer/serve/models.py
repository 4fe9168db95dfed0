"""The models of a server: found by direction, loaded when first asked for, and replaced while requests go on."""

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from mtformer.bundle.peek import is_exported
from mtformer.config import LanguagePair, SearchConfig, SearchPrecision
from mtformer.engines.ctranslate2 import unsupported
from mtformer.engines.loading import LoadedModel, load_model, suits_ctranslate2
from mtformer.runs.description import describe_model
from mtformer.serve.errors import ServiceError
from mtformer.serve.versions import COPIES, ChangedError, Stamp, Version, stamp_of
from mtformer.support.errors import MtformerError, UserError
from mtformer.support.hardware import Device, pick_device, require_precision, usable_cores
from mtformer.text.glossary import Glossary
from mtformer.text.languages import matches_language
from mtformer.translate.terms import Terms
from mtformer.translate.translator import Translator

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle

log = logging.getLogger(__name__)

_MOST_TRANSLATORS = 64  # of a model, for different options: they share its weights
_MOST_DIRECTIONS = 10_000
_ATTEMPTS = 2  # to load a model whose file is replaced meanwhile
LONGEST_CODE = 35  # of a language, in characters: RFC 5646 asks for so many

T = TypeVar("T")


class Requirements(NamedTuple):
    """The requirements of a request on a model.

    Attributes:
        options: search options that replace the model's own, as sorted names and values.
        alignments: whether translations come with their alignments.
        token_log_probs: whether translations need the log probabilities of their tokens, and so their confidence.
        glossary: the translations of terms.
    """

    options: tuple[tuple[str, Any], ...] = ()
    alignments: bool = False
    token_log_probs: bool = False
    glossary: Glossary | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """A key that identifies it."""
        return *self[:-1], "" if self.glossary is None else self.glossary.digest


USUAL = Requirements()


class Models:
    """The models of a server. Threads may share it."""

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        engine: str = "auto",
        device: Device = "auto",
        precision: SearchPrecision | None = None,
        max_bytes: int | None = None,
    ) -> None:
        """Read the directions of models; the first model with a direction translates it.

        Args:
            paths: bundles, and folders of exported models.
            engine: the engine, as for :func:`.load_model`.
            device: the device.
            precision: the format of matrix products, as in :class:`.SearchOptions`; None for fp32.
            max_bytes: the maximum memory for the weights of loaded models; None for no limit.

        Raises:
            UserError: a model cannot be read or is larger than ``max_bytes``, or torch lacks the precision.
        """
        if engine == "torch" and precision is not None:
            require_precision(precision, pick_device(device))
        self._engine, self._device, self._precision, self._max_bytes = engine, device, precision, max_bytes
        self._versions: list[Version] = []
        for path in paths:
            version = Version.read(path)
            if set(version.header.language_pairs) <= set(self.pairs):
                log.warning("%s is not used: models before it have its directions", path)
            else:
                self._versions.append(version)
        self._directions: dict[tuple[str, str], LanguagePair | None] = {}  # by what requests call their languages
        self._refused: dict[Path, Stamp | None] = {}
        self._used: OrderedDict[Version, None] = OrderedDict()  # loaded ones, the last used last
        self._lock = Lock()  # of what is loaded, and of which versions there are
        self._refreshing = Lock()
        for version in self._versions:
            if max_bytes is not None and (needed := self._usual_bytes(version)) > max_bytes:
                raise UserError(f"{version.path} needs {needed / 1e6:,.0f} MB, which is more than --max-memory allows")

    @property
    def n_threads(self) -> int:
        """The number of batches to compute in parallel: one on each core, or one on a GPU."""
        is_cpu = self._device == "cpu" or pick_device(self._device).type == "cpu"  # the latter imports torch
        return usable_cores() if is_cpu else 1

    @property
    def loaded_bytes(self) -> int:
        """The approximate memory of the weights."""
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

    def describe(self) -> Iterator[tuple[str, str]]:
        """Yield the descriptions of the models by their files, as names and texts; each starts with its directions."""
        for version in list(self._versions):
            if len(self._versions) > 1:
                yield "Translates", version.header.title
            yield from describe_model(version.header, version.size)

    def direction(self, src_lang: str, tgt_lang: str) -> LanguagePair | None:
        """Return the direction of two language codes in any spelling; None if no model has it."""
        key, known = (src_lang, tgt_lang), self._directions
        if max(map(len, key)) > LONGEST_CODE:
            return None
        if key not in known:
            if len(known) >= _MOST_DIRECTIONS:
                known.clear()
            fitting = [
                (matches_language(tgt_lang, pair.tgt_lang), matches_language(src_lang, pair.src_lang), -place, pair)
                for place, pair in enumerate(self.pairs)
            ]
            fits = max(fitting, key=lambda fit: (min(fit[:2]), fit[:3]))
            known[key] = fits[-1] if all(fits[:2]) else None
        return known[key]

    def ready(self, pair: LanguagePair, wanted: Requirements = USUAL) -> Translator | None:
        """Return the translator for a request if it is already loaded; never wait."""
        with self._lock:
            version, key = self._version_of(pair), (pair, *wanted.key)
            translator = version.translators.get(key)
            if translator is not None:
                version.translators.move_to_end(key)
                self._used.move_to_end(version)
            return translator

    def translator(self, pair: LanguagePair, wanted: Requirements = USUAL) -> Translator:
        """Return the translator for a request; this may load a model, and unload others.

        Raises:
            UserError: the model cannot do what is wanted.
            ServiceError: the model cannot be loaded.
        """
        version, model = self._up_to_date(pair, lambda version: self._model(version, wanted))
        translator = _make_translator(model, pair, wanted)
        with self._lock:
            if any(model is each for each in version.models.values()):  # or it has been unloaded by now
                version.translators[pair, *wanted.key] = translator
                while len(version.translators) > _MOST_TRANSLATORS:
                    version.translators.popitem(last=False)
        return translator

    def bundle(self, pair: LanguagePair) -> "Bundle":
        """Read the bundle of a direction.

        Raises:
            UserError: the model is an exported one.
            ServiceError: it cannot be read.
        """
        if is_exported(self._version_of(pair).path):
            raise UserError("this model is exported for CTranslate2, and only a bundle can explain its translations")
        _, bundle = self._up_to_date(pair, Version.bundle)
        return bundle.toward(*pair)

    def load_first(self) -> None:
        """Load models, in order, as long as there is memory for them.

        Raises:
            UserError: one cannot be loaded.
        """
        for place in range(len(self._versions)):
            try:
                self._load_if_it_fits(self._versions[place])
            except ChangedError:  # while the server starts
                self.refresh()
                self._load_if_it_fits(self._versions[place])

    def _load_if_it_fits(self, version: Version) -> None:
        if self._max_bytes is None or self.loaded_bytes + self._usual_bytes(version) <= self._max_bytes:
            self._loaded(version, self._usual_engine(version))

    def refresh(self) -> list[Path]:
        """Replace models whose files have changed, and return their paths; keep those whose new file is unusable."""
        with self._refreshing:
            return [version.path for place, version in enumerate(list(self._versions)) if self._replace(place, version)]

    def _replace(self, place: int, version: Version) -> bool:
        """Replace a model if its file has changed, and return whether it was replaced."""
        path, stamp = version.path, stamp_of(version.path)
        if stamp in (version.stamp, self._refused.get(path, version.stamp)):
            return False
        try:
            new = Version.read(path)
            new.models = {engine: self._load(new, engine) for engine in list(version.models)}
        except (MtformerError, OSError) as error:
            log.error("the old model stays in use, since the new one cannot be used: %s", error)
            self._refused[path] = stamp
            return False
        with self._lock:
            self._versions[place] = new
            self._directions = {}
            self._used.pop(version, None)
            if new.models:
                self._used[new] = None
                self._make_room(kept=new)
        log.info("the model has been replaced: %s", path)
        return True

    def _up_to_date(self, pair: LanguagePair, load: Callable[[Version], T]) -> tuple[Version, T]:
        """Load a part of the model of a direction. If its file has been replaced, switch to the new model first.

        Raises:
            ServiceError: it cannot be loaded.
        """
        for _ in range(_ATTEMPTS):
            version = self._version_of(pair)
            try:
                return version, load(version)
            except ChangedError:
                self.refresh()
            except ServiceError:
                raise
            except MtformerError as error:
                log.error("a model cannot be loaded: %s", error)
                message = f"the model {_named(pair)} cannot be loaded; the log of the server says why"
                raise ServiceError(503, message) from None
        raise ServiceError(503, f"the model {_named(pair)} has just been replaced; try again")

    def _version_of(self, pair: LanguagePair) -> Version:
        for version in self._versions:
            if pair in version.header.matching(*pair):
                return version
        raise ServiceError(503, f"the model {_named(pair)} has just been replaced; try again")

    def _model(self, version: Version, wanted: Requirements) -> LoadedModel:
        """Return the loaded model that computes a request.

        Raises:
            ServiceError: the model does not support the request.
            ChangedError: its file has been replaced.
            MtformerError: it cannot be loaded.
        """
        engine = self._engine_for(version, wanted)
        if engine == "torch" and is_exported(version.path):
            problem = "this model is exported for CTranslate2, which has no glossaries and does not sample"
            raise ServiceError(400, problem)
        return self._loaded(version, engine)

    def _usual_engine(self, version: Version) -> str:
        """Return the engine of requests that CTranslate2 supports."""
        return "ctranslate2" if is_exported(version.path) else self._engine

    def _engine_for(self, version: Version, wanted: Requirements) -> str:
        """Return the engine of a request: torch, if CTranslate2 would be used but does not support it."""
        usual = self._usual_engine(version)
        loaded = version.models.get(usual)
        if loaded is not None and loaded.engine_name == "torch":
            return usual
        needs_torch = wanted.glossary is not None or unsupported(SearchConfig().updated(**dict(wanted.options)))
        return "torch" if needs_torch else usual

    def _loaded(self, version: Version, engine: str) -> LoadedModel:
        """Return a model on an engine, loading it if necessary.

        Raises:
            ChangedError: its file is another one by now.
            MtformerError: it cannot be loaded.
        """
        with version.loading:
            with self._lock:
                model = version.models.get(engine)
                if model is None:
                    self._make_room(kept=version, n_bytes=self._needed_bytes(version, engine))
            model = model or self._load(version, engine)
            with self._lock:
                if version in self._versions:  # or it has been replaced by now
                    version.models[engine] = model
                    self._used[version] = None
                    self._used.move_to_end(version)
                    self._make_room(kept=version)
        return model

    def _load(self, version: Version, engine: str) -> LoadedModel:
        """Load a model on an engine.

        Raises:
            ChangedError: its file is another one by now.
            MtformerError: it cannot be loaded.
        """
        precision = "fp32" if engine == "torch" and self._precision == "int8" else self._precision  # which torch lacks
        model = load_model([version.path], engine, self._device, n_threads=1, precision=precision)
        version.require_unchanged()
        if model.engine_name == "torch":
            import torch

            torch.set_num_threads(1)  # of each thread that computes: others have batches of their own
        return model

    def _usual_bytes(self, version: Version) -> int:
        return self._needed_bytes(version, self._usual_engine(version))

    def _needed_bytes(self, version: Version, engine: str) -> int:
        """Return the approximate memory that the weights of a model will take on an engine."""
        is_on_torch = engine == "torch" or (
            engine == "auto" and not suits_ctranslate2(version.path, self._device, precision=self._precision)
        )
        return version.n_bytes * COPIES["torch" if is_on_torch else "ctranslate2"]

    def _make_room(self, *, kept: Version, n_bytes: int = 0) -> None:
        """Unload the least recently used models. Running requests keep theirs until they are done.

        Args:
            kept: the model that is not unloaded.
            n_bytes: the memory needed in addition to loaded models.
        """
        for version in list(self._used):
            if self._max_bytes is None or self.loaded_bytes + n_bytes <= self._max_bytes:
                return
            if version is not kept:
                log.info("unloading a model, to make room for another: %s", version.path)
                version.models.clear()
                version.translators.clear()
                del self._used[version]


def _named(pair: LanguagePair) -> str:
    return f"from {pair.src_lang} to {pair.tgt_lang}"


def _make_translator(model: LoadedModel, pair: LanguagePair, wanted: Requirements) -> Translator:
    """Return the translator for a request.

    Raises:
        UserError: the model cannot do what is wanted.
    """
    translator = Translator.load(model, src_lang=pair.src_lang, tgt_lang=pair.tgt_lang)
    if wanted.options:
        translator = translator.with_options(**dict(wanted.options))
    if wanted.glossary is not None:
        src_lang, tgt_lang = translator.src_lang, translator.tgt_lang
        terms = Terms(wanted.glossary, translator.tokenizer, src_lang=src_lang, tgt_lang=tgt_lang)
        translator = translator.with_terms(terms)
    return replace(translator, alignments=wanted.alignments, token_log_probs=wanted.token_log_probs)
