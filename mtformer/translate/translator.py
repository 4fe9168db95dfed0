"""Strings to strings: the public Python API."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.engines.loading import LoadedModel, load_model
from mtformer.runs.finding import find_model
from mtformer.search.engine import succeeded
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.glossary import Glossary
from mtformer.text.lines import without_surrogates
from mtformer.translate.guard import Guard
from mtformer.translate.plan import run
from mtformer.translate.planner import Planner
from mtformer.translate.preparation import standard_preparations
from mtformer.translate.terms import Terms
from mtformer.translate.translation import FLAG, Translation

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle
    from mtformer.explain.record import Explainer
    from mtformer.explain.trace import Trace
    from mtformer.translate.alignment import Alignment
    from mtformer.translate.fuzzy import FuzzyMatches
    from mtformer.translate.translation_memory import TranslationMemory

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class Translator(Planner):
    """A model that translates, with its tokenizer and search options; :meth:`load` makes one of a trained model.

    Several threads may share a translator: it does not change once it is made. It runs its own plans; another driver
    may run them as well (:meth:`Planner.plan`).

    Attributes:
        computation: the engine that computes, its version and its precision, as in ``torch 2.12.0, fp32``.
    """

    computation: str = field(default="", kw_only=True)

    @classmethod
    def load(
        cls,
        model: "str | Path | Bundle | LoadedModel | Sequence[str | Path | Bundle]",
        device: str = "auto",
        *,
        engine: str | None = None,
        adapter: str | Path | None = None,
        raw: bool = False,
        terms: Glossary | str | Path | None = None,
        terms_mode: str = "hard",
        memory: "TranslationMemory | str | Path | None" = None,
        fuzzy: float | None = None,
        alignments: bool = False,
        token_log_probs: bool = True,
        src_lang: str | None = None,
        tgt_lang: str | None = None,
        tag: str | None = None,
        **options: float | str | None,
    ) -> "Translator":
        """Load a trained model for translating.

        Args:
            model: a bundle (``model.safetensors``), the folder of a run or that of a model exported for CTranslate2; or
                several bundles with one vocabulary, an ensemble, which averages their probabilities and takes the first
                one's settings. Bundles may be in memory already. A :class:`LoadedModel` stays as it was loaded: its
                device, engine and options count.
            device: ``cpu``, ``cuda``, ``mps``, or ``auto``, which takes ``cuda`` when there is one.
            engine: ``torch``; ``ctranslate2``, for which a bundle is converted once, into the user's cache; ``auto``,
                which takes CTranslate2 where it is installed, there is no GPU, and it supports all options; or None
                for torch. An exported model always takes CTranslate2.
            adapter: what LoRA has trained on top of the bundle (``adapter.safetensors`` of its run). It is merged, but
                not if the model is a :class:`LoadedModel`, all of whose weights are then shared by any number of
                translators; see :meth:`LoadedModel.with_adapter`.
            raw: translate with the model alone, without changes to texts before and checks of translations after.
            terms: a glossary or its file, whose terms are translated as it says.
            terms_mode: ``hard``: the search puts the translations of terms into the text; ``soft``: the model, which
                was trained with ``data.terms``, gets them beside the terms and mostly takes them; ``both``.
            memory: a translation memory or its file, whose translations are reused for the texts and sentences that it
                has; see :meth:`TranslationMemory.read`.
            fuzzy: let the search follow pairs of the memory whose texts are at least so similar, from 0 to 1, where the
                model is not certain; None for none. It needs torch.
            alignments: whether translations come with their alignments.
            token_log_probs: whether translations need the log probabilities of their tokens, and so their confidence.
                CTranslate2 computes these separately, which takes a fifth of its time.
            src_lang: the source language, which a model of several directions need not know; it helps to split
                sentences and to write numbers and capitals as usual.
            tgt_lang: the target language, for a model that has several.
            tag: translate like the training text with this tag.
            options: search options that replace the bundle's own, such as ``beam_size=8`` or ``n_best=3``: the fields
                of :class:`mtformer.config.SearchOptions`. None leaves an option as it is.

        Raises:
            UserError: there is no such model, device, engine, option, direction or tag, the target language is open,
                the adapter is another model's, the bundles of an ensemble do not belong together, or the glossary or
                the memory cannot be used.
            MtformerError: the cache cannot be written.
        """
        if isinstance(model, LoadedModel):
            loaded = model if adapter is None else model.with_adapter(Path(adapter))
        else:
            needs_torch = "hard terms" if terms is not None and terms_mode != "soft" else None
            needs_torch = needs_torch if fuzzy is None else "fuzzy matches"
            path, paths = None if adapter is None else Path(adapter), _found(model)
            loaded = load_model(paths, engine, device, adapter=path, needs_torch=needs_torch, n_threads=None, **options)
        loaded = loaded.toward(src_lang, tgt_lang, tag)
        tokenizer, src_lang, tgt_lang = loaded.tokenizer, loaded.header.src_lang, loaded.header.tgt_lang
        if isinstance(memory, str | Path):
            from mtformer.translate.translation_memory import TranslationMemory  # which imports numpy

            memory = TranslationMemory.read(memory, src_lang, tgt_lang)
        translator = cls(
            loaded.engine,
            tokenizer,
            loaded.options,
            tgt_lang=tgt_lang,
            max_length=loaded.max_length,
            src_lang=src_lang,
            memory=memory,
            fuzzy=None if fuzzy is None else _fuzzy_matches(loaded, memory, fuzzy),
            alignments=alignments,
            token_log_probs=token_log_probs,
            computation=f"{loaded.engine_name} {version(loaded.engine_name)}, {loaded.precision}",
        )
        if not raw:
            preparations = standard_preparations(tokenizer, src_lang, tgt_lang, loaded.header.known_words)
            guard = Guard(tokenizer, src_lang, tgt_lang)
            slots = tokenizer.has_slots
            translator = replace(translator, preparations=preparations, markup=True, guard=guard, slots=slots)
        if terms is not None:
            glossary = terms if isinstance(terms, Glossary) else Glossary.read(terms)
            translator = translator.with_terms(
                Terms(glossary, tokenizer, src_lang=src_lang, tgt_lang=tgt_lang, mode=terms_mode)
            )
        return translator

    def with_options(self, **changes: float | str | None) -> "Translator":
        """Return a translator that searches with other options and shares the model.

        Args:
            changes: as in :meth:`load`.

        Raises:
            UserError: an option does not exist, its value is not allowed, the engine cannot do it, or it cannot be
                combined with the terms.
        """
        options = self.options.updated(**changes)
        self.engine.require_supported(options)
        return replace(self, options=options)

    def with_terms(self, terms: Terms) -> "Translator":
        """Return a translator like this one that translates ``terms`` as their glossary says.

        Raises:
            UserError: the options of the search cannot be combined with terms.
        """
        return replace(self, terms=terms)

    def translate(
        self,
        texts: Iterable[str],
        *,
        numbers: Iterable[int | str] | None = None,
        on_progress: Callable[[int], object] | None = None,
        on_error: Callable[[int, MtformerError], list[Translation]] | None = None,
    ) -> list[list[Translation]]:
        """Translate ``texts``, each into its ``n_best`` best translations (fewer where the search found fewer).

        A blank text has the empty text as its one translation. The lines of a text that has several are translated one
        by one, and joined with the same line ends. A line that is too long is split at sentence ends or else at words,
        with a warning, and its parts' translations are joined. What the guard rejects is translated again; what may
        still be wrong with it is in the notes of its translations. Equal texts are translated once. Surrogates without
        their other half, which no text in UTF-8 has, are read as U+FFFD.

        Args:
            texts: any number of them.
            numbers: the line of each text, for warnings, or what these call its place; None counts lines from 1.
            on_progress: called with the number of texts that have been translated since the last call.
            on_error: called with the index of a text that cannot be translated and the reason, and returns what stands
                for its translations; None raises the first error.

        Raises:
            UserError: ``texts`` is a single string, or contains something else than strings.
            MtformerError: the model predicts NaN.
        """
        if isinstance(texts, str):
            raise UserError("translate takes a list of texts: write translate([text]) for a single one")
        texts = _checked(texts)
        distinct = dict.fromkeys(texts)  # menus, answers and cells recur
        if on_progress is not None:
            on_progress(len(texts) - len(distinct))
        of_text = dict(zip(distinct, run(map(self.plan, distinct), self.engine, on_progress), strict=True))
        outcomes = [of_text[text] for text in texts]
        if on_error is not None:
            outcomes = [
                on_error(index, outcome) if isinstance(outcome, MtformerError) else outcome
                for index, outcome in enumerate(outcomes)
            ]
        results = succeeded(outcomes)
        _warn([best for best, *_ in results], numbers)
        return results

    def stream(
        self, lines: Iterable[str], *, at_once: int = 1_000, on_progress: Callable[[int], object] | None = None
    ) -> Iterator[list[Translation]]:
        """Translate lines as they come, in order; see :meth:`translate`.

        Args:
            lines: any number of texts.
            at_once: how many lines to read before translating them; 1 answers each line before reading the next.
            on_progress: called with the number of lines that have been translated since the last call.

        Raises:
            UserError: ``lines`` is a single string, or ``at_once`` is not a positive number.
            MtformerError: the model predicts NaN.
        """
        if isinstance(lines, str):
            raise UserError("stream takes an iterable of lines: write stream([text]) for a single one")
        if at_once < 1:
            raise UserError(f"stream: at_once = {at_once}: it is a number of lines, at least 1")
        remaining, numbers = iter(lines), count(1)

        def translated() -> Iterator[list[Translation]]:
            while texts := list(islice(remaining, at_once)):
                yield from self.translate(texts, numbers=islice(numbers, len(texts)), on_progress=on_progress)

        return translated()

    def align(self, sources: Iterable[str], translations: Iterable[str]) -> "list[Alignment]":
        """Find which words of each source the words of its translation come from.

        The translations may be anyone's. A pair that is too long for the model is cut into parts.

        Args:
            sources: one line each.
            translations: one of each source.

        Raises:
            UserError: there are not as many translations as sources, or the engine has no attention to align by.
            MtformerError: the model predicts NaN.
        """
        pairs = _pairs(sources, translations)
        return succeeded(run((self.plan_alignment(*pair) for pair in pairs), self.engine))

    def score(
        self,
        sources: Iterable[str],
        translations: Iterable[str],
        *,
        numbers: Iterable[int] | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[Translation]:
        """Score translations, anyone's: how probable the model thinks they are.

        Texts are prepared, split and cut as for translating. A translation that the search has found gets the search's
        own figures, as long as the tokenizer splits its text into the tokens that the search has chosen.

        Args:
            sources: one line each.
            translations: one of each source.
            numbers: the line of each pair, for warnings; None counts from 1.
            on_progress: called with the number of pairs that have been scored since the last call.

        Returns:
            The translations with their scores, log probabilities and tokens. The empty translation of an empty source
            has the log probability 0 and no tokens.

        Raises:
            UserError: there are not as many translations as sources.
            MtformerError: the model predicts NaN.
        """
        pairs = _pairs(sources, translations)
        scored = succeeded(run((self.plan_score(*pair) for pair in pairs), self.engine, on_progress))
        _warn(scored, numbers)
        return scored

    def explain(self, text: str, *, prefix: str | None = None, why_not: Sequence[str] = ()) -> "Trace":
        """Translate one sentence and return how: tokens, attention, the search, each step, every matrix.

        The weights of head 2 in layer 1 are ``translator.explain(text).attention("encoder", layer=1, head=2)``.
        A notebook shows what is returned as the page of ``mtformer explain``.
        Recording hooks into the model: no other thread may use the translator meanwhile.

        Args:
            text: one line, which is not split.
            prefix: what the translation must begin with.
            why_not: words of the target language, each of which gets an answer to why it was not chosen.

        Raises:
            UserError: the text is empty, has several lines or is too long; a prefix or word is empty or too long;
                ``why_not`` is a single string; or the engine is not torch's.
            MtformerError: the model predicts NaN.
        """
        from mtformer.explain.notebook import NotebookTrace
        from mtformer.explain.why_not import with_why_not

        if isinstance(why_not, str):
            raise UserError("explain takes a list of words: write why_not=[word] for a single one")
        [text] = _checked([text])
        explainer = self.explainer()
        trace = with_why_not(explainer, explainer.trace(text, prefix=prefix), why_not)
        return NotebookTrace.of(trace, explainer, src_lang=self.src_lang, prefix=prefix)

    def explainer(self) -> "Explainer":
        """Return the recorder of traces with this model.

        Raises:
            UserError: the engine is not torch's.
        """
        from mtformer.explain.record import Explainer, watchable

        engine = watchable(self.engine, self.options)
        parts = (self.tokenizer, self.options, self.tgt_lang, self.max_length)
        return Explainer(engine, *parts, self.last_sentence, self.with_slots)


def _found(model: "str | Path | Bundle | Sequence[str | Path | Bundle]") -> "list[Path | Bundle]":
    """Return the files of models where they are, and those in memory as they are."""
    models = [model] if isinstance(model, str | Path) or not isinstance(model, Sequence) else model
    if not models:
        raise UserError("load takes a bundle, the folder of a run, or several bundles, and got none")
    return [find_model(Path(each)) if isinstance(each, str | Path) else each for each in models]


def _fuzzy_matches(model: LoadedModel, memory: "TranslationMemory | None", least: float) -> "FuzzyMatches":
    """Index a memory for a model.

    Raises:
        UserError: there is no memory, or the engine is not torch.
    """
    from mtformer.translate.fuzzy import FuzzyMatches  # which imports numpy

    if memory is None:
        raise UserError(f"fuzzy = {least} needs a translation memory (--memory)")
    if model.engine_name != "torch":
        raise UserError("CTranslate2 cannot follow fuzzy matches: use --engine torch, with a bundle")
    return FuzzyMatches(memory, model.tokenizer, least, model.max_length)


def _pairs(sources: Iterable[str], translations: Iterable[str]) -> list[tuple[str, str]]:
    if not isinstance(sources, str) and not isinstance(translations, str):
        texts = _checked(sources), _checked(translations)
        if len(texts[0]) == len(texts[1]):
            return list(zip(*texts, strict=True))
    raise UserError("give a list of sources and a list of as many translations")


def _warn(translations: Iterable[Translation], numbers: Iterable[int | str] | None) -> None:
    """Log how translations were made that were not made as usual; ``numbers`` are those of their lines, 1 and so on."""
    for number, translation in zip(count(1) if numbers is None else numbers, translations, strict=False):
        for note in translation.notes:
            if not note.startswith(FLAG):
                log.warning("%s: %s", number if isinstance(number, str) else f"line {number}", note)


def _checked(texts: Iterable[object]) -> list[str]:
    """Return texts without surrogates.

    Raises:
        UserError: one of them is no string.
    """
    checked = []
    for text in texts:
        if not isinstance(text, str):
            raise UserError(f"a text is a str, not {type(text).__name__}")
        checked.append(without_surrogates(text))
    return checked
