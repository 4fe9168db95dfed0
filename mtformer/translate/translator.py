"""Strings to strings: take out markup, prepare, search, check, and put everything back. The public Python API."""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from importlib.metadata import version
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from mtformer.config import SearchOptions
from mtformer.engines.loading import LoadedModel, load_model
from mtformer.runs.models import find_model
from mtformer.search.engine import Engine, OnDone
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary
from mtformer.text.languages import UNDETERMINED, is_written_with_spaces
from mtformer.text.lines import without_surrogates
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.guard.checks import Guard
from mtformer.translate.guard.retry import guarded
from mtformer.translate.leaves import LeafTranslator, by_first_part
from mtformer.translate.markup.lines import MarkedLines
from mtformer.translate.plan import Preparation, make_plan
from mtformer.translate.standard import known_characters, standard_preparations
from mtformer.translate.terms import Numbers, Terms
from mtformer.translate.translation import FLAG, Translation

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle
    from mtformer.explain.record import Explainer
    from mtformer.explain.trace import Trace
    from mtformer.translate.alignment import Alignment
    from mtformer.translate.pairs import Pair

log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, repr=False)
class Translator:
    """A model that can be searched, with its tokenizer and search options; :meth:`load` makes one of a trained model.

    Several threads may share a translator: it does not change once it is made.

    Attributes:
        engine: the model.
        tokenizer: the one that the model was trained with.
        options: how to search.
        tgt_lang: the target language, which decides whether a space joins the parts of a split text.
        max_length: the most tokens, EOS included, that the model takes at once; longer texts are split.
        src_lang: the source language, which decides which lines begin with the number of a list's item.
        preparations: what happens to texts before the model sees them, in order.
        terms: how terms are to be translated; None for no glossary.
        markup: whether tags, placeholders and the like are taken out before and put back afterwards.
        alignments: whether translations come with their alignments.
        guard: finds problems of translations; None if they are not checked.
        computation: the engine that computes, its version and its precision, as in ``torch 2.12.0, fp32``.
    """

    engine: Engine
    tokenizer: Tokenizer
    options: SearchOptions
    _: KW_ONLY
    tgt_lang: str
    max_length: int
    src_lang: str = UNDETERMINED
    preparations: Sequence[Preparation] = ()
    terms: Terms | None = None
    markup: bool = False
    alignments: bool = False
    guard: Guard | None = None
    computation: str = ""

    def __post_init__(self) -> None:
        """Refuse a model that takes no text, and search options that cannot be combined with the terms."""
        n_added = len(self.tokenizer.prefixes.src) + 1
        if self.max_length <= n_added:
            raise UserError(
                f"data.max_length = {self.max_length} of this model leaves no room for text: its tags and the end of a "
                f"text take {n_added}"
            )
        if self.terms is not None and self.terms.is_hard and self.options.sample:
            raise UserError("terms do not go with sample: a beam search places them")

    @classmethod
    def load(
        cls,
        model: "str | Path | Bundle | LoadedModel | Sequence[str | Path | Bundle]",
        device: str = "auto",
        *,
        engine: str | None = None,
        raw: bool = False,
        terms: Glossary | str | Path | None = None,
        terms_mode: str = "hard",
        alignments: bool = False,
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
            device: ``cpu``, ``cuda``, or ``auto``, which takes a GPU when there is one.
            engine: ``torch``; ``ctranslate2``, for which a bundle is converted once, into the user's cache; ``auto``,
                which takes CTranslate2 where it is installed, there is no GPU, and it supports all options; or None
                for torch. An exported model always takes CTranslate2.
            raw: translate with the model alone, without changes to texts before and checks of translations after.
            terms: a glossary or its file, whose terms are translated as it says.
            terms_mode: ``hard``: the search puts the translations of terms into the text; ``soft``: the model, which
                was trained with ``data.terms``, gets them beside the terms and mostly takes them; ``both``.
            alignments: whether translations come with their alignments.
            src_lang: the source language, which a model of several directions need not know; it helps to split
                sentences and to write numbers and capitals as usual.
            tgt_lang: the target language, for a model that has several.
            tag: translate like the training text with this tag.
            options: search options that replace the bundle's own, such as ``beam_size=8`` or ``n_best=3``: the fields
                of :class:`mtformer.config.SearchOptions`. None leaves an option as it is.

        Raises:
            UserError: there is no such model, device, engine, option, direction or tag, the target language is open,
                the bundles of an ensemble do not belong together, or the glossary cannot be used.
            MtformerError: the cache cannot be written.
        """
        if not isinstance(model, LoadedModel):
            models = [model] if isinstance(model, str | Path) or not isinstance(model, Sequence) else model
            if not models:
                raise UserError("load takes a bundle, the folder of a run, or several bundles, and got none")
            found = [find_model(Path(one)) if isinstance(one, str | Path) else one for one in models]
            needs_torch = "hard terms" if terms is not None and terms_mode != "soft" else None
            model = load_model(found, engine, device, needs_torch=needs_torch, **options)
        model = model.toward(src_lang, tgt_lang, tag)
        tokenizer, src_lang, tgt_lang = model.tokenizer, model.header.src_lang, model.header.tgt_lang
        translator = cls(
            model.engine,
            tokenizer,
            model.options,
            tgt_lang=tgt_lang,
            max_length=model.max_length,
            src_lang=src_lang,
            preparations=() if raw else standard_preparations(tokenizer, src_lang, tgt_lang),
            markup=not raw,
            alignments=alignments,
            guard=None if raw else Guard(tokenizer, src_lang, tgt_lang),
            computation=f"{model.engine_name} {version(model.engine_name)}, {model.precision}",
        )
        if terms is None:
            return translator
        glossary = terms if isinstance(terms, Glossary) else Glossary.read(terms)
        return translator.with_terms(Terms(glossary, tokenizer, src_lang=src_lang, tgt_lang=tgt_lang, mode=terms_mode))

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
        texts: Sequence[str],
        *,
        numbers: Iterable[int] | None = None,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[list[Translation]]:
        """Translate ``texts``, each into its ``n_best`` best translations (fewer where the search found fewer).

        A blank text has the empty text as its one translation. A text that is too long is split at sentence
        ends or else at words, with a warning, and its parts' translations are joined. What the guard rejects is
        translated again; what may still be wrong with it is in the notes of its translations. Surrogates without their
        other half, which no text in UTF-8 has, are read as U+FFFD.

        Args:
            texts: one line each.
            numbers: the line of each text, for warnings; None counts from 1.
            on_progress: called with the number of texts that have been translated since the last call.

        Raises:
            UserError: ``texts`` is a single string, or contains something else than strings.
            MtformerError: the model predicts NaN.
        """
        if isinstance(texts, str):
            raise UserError("translate takes a list of texts: write translate([text]) for a single one")
        texts = _checked(texts)
        report = on_progress or (lambda n_texts: None)
        results = self._translate_marked(texts, lambda indices: report(len(indices)))
        if not self.options.sample:
            results = [_distinct(translations) for translations in results]
        _warn([best for best, *_ in results], numbers)
        return self._with_alignments(texts, results) if self.alignments else results

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
        return self._streamed(iter(lines), at_once, on_progress)

    def _streamed(
        self, lines: Iterator[str], at_once: int, on_progress: Callable[[int], object] | None
    ) -> Iterator[list[Translation]]:
        n_lines = 0
        while texts := list(islice(lines, at_once)):
            yield from self.translate(texts, numbers=count(n_lines + 1), on_progress=on_progress)
            n_lines += len(texts)

    def align(self, sources: Sequence[str], translations: Sequence[str]) -> "list[Alignment]":
        """Find which words of each source the words of its translation come from.

        The translations may be anyone's. A pair that is too long for the model is cut into parts.

        Args:
            sources: one line each.
            translations: one of each source.

        Raises:
            UserError: there are not as many translations as sources, or the engine has no attention to align by.
            MtformerError: the model predicts NaN.
        """
        from mtformer.translate.pairs import align

        return align(self.engine, self._pairs(sources, translations))

    def score(
        self, sources: Sequence[str], translations: Sequence[str], *, numbers: Iterable[int] | None = None
    ) -> list[Translation]:
        """Score translations, anyone's: how probable the model thinks they are.

        Texts are prepared, split and cut as for translating. A translation that the search has found gets the search's
        own figures, as long as the tokenizer splits its text into the tokens that the search has chosen.

        Args:
            sources: one line each.
            translations: one of each source.
            numbers: the line of each pair, for warnings; None counts from 1.

        Returns:
            The translations with their scores, log probabilities and tokens. The empty translation of an empty source
            has the log probability 0 and no tokens.

        Raises:
            UserError: there are not as many translations as sources.
            MtformerError: the model predicts NaN.
        """
        from mtformer.translate.pairs import score

        scored = score(self._leaves, self._pairs(sources, translations))
        _warn(scored, numbers)
        return scored

    def explain(self, text: str, *, prefix: str | None = None, why_not: Sequence[str] = ()) -> "Trace":
        """Translate one sentence and return how: tokens, attention, the search, each step, every matrix.

        The weights of head 2 in layer 1 are ``translator.explain(text).attention("encoder", layer=1, head=2)``.
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
        from mtformer.explain.why_not import with_why_not

        if isinstance(why_not, str):
            raise UserError("explain takes a list of words: write why_not=[word] for a single one")
        [text] = _checked([text])
        explainer = self.explainer()
        return with_why_not(explainer, explainer.trace(text, prefix=prefix), why_not)

    def texts_read(self, text: str) -> list[str]:
        """Return what the model reads when ``text`` is translated: it may be prepared, and none for a text of marks."""
        unmarked = self._marked([text]).texts_of[0] if self.markup else [text]
        return [leaf for part in unmarked for leaf in make_plan(part, self.preparations).leaves()]

    def explainer(self) -> "Explainer":
        """Return what records traces with this model.

        Raises:
            UserError: the engine is not torch's.
        """
        from mtformer.explain.record import Explainer

        return Explainer.of(
            self.engine, self.tokenizer, self.options, tgt_lang=self.tgt_lang, max_length=self.max_length
        )

    def _translate_marked(self, texts: Sequence[str], on_done: OnDone) -> list[list[Translation]]:
        """Translate texts that may have markup, each into its best translations.

        ``on_done`` is called with indices of ``texts``, here and in all that follows.
        """
        if not self.markup:
            return self._translate_texts(texts, on_done)
        lines = self._marked(texts)
        unmarked = [text for texts in lines.texts_of for text in texts]
        found = self._translate_texts(unmarked, by_first_part(list(map(len, lines.texts_of)), on_done))
        return lines.put_back(found, self.align)

    def _marked(self, texts: Sequence[str]) -> MarkedLines:
        return MarkedLines(texts, self.src_lang, known_characters(self.tokenizer).can_write)

    def _translate_texts(self, texts: Sequence[str], on_done: OnDone) -> list[list[Translation]]:
        """Prepare texts, translate and check what is left to the model, and undo the preparations."""
        plans = [make_plan(text, self.preparations) for text in texts]
        leaves_of = [list(plan.leaves()) for plan in plans]
        leaves = [leaf for leaves in leaves_of for leaf in leaves]
        found = self._leaves.translate(leaves, self.options, by_first_part(list(map(len, leaves_of)), on_done))
        if self.guard is not None:
            found = guarded(
                self.guard,
                leaves,
                found,
                self.options,
                self._leaves.translate,
                self._leaves.missing_terms,
                self._keeping_numbers if self._can_keep_numbers else None,
            )
        rest = iter(found)
        return [plan.restored(rest) for plan in plans]

    @cached_property
    def _leaves(self) -> LeafTranslator:
        joiner = " " if is_written_with_spaces(self.tgt_lang) else ""
        return LeafTranslator(
            self.engine, self.tokenizer, self.terms, self.max_length, self.options.length_penalty, joiner=joiner
        )

    @property
    def _can_keep_numbers(self) -> bool:
        return not self.options.sample and self.terms is None and self.engine.has_constraints

    def _keeping_numbers(self, texts: Sequence[str]) -> list[list[Translation]]:
        """Translate texts so that their numbers are in the translations."""
        terms = Numbers(texts, self.tokenizer, src_lang=self.src_lang, tgt_lang=self.tgt_lang)
        found = replace(self._leaves, terms=terms).translate(texts, self.options)
        return [[replace(one, terms=()) for one in ones] for ones in found]

    def _pairs(self, sources: Sequence[str], translations: Sequence[str]) -> "list[Pair]":
        """Take texts and translations apart; see :class:`mtformer.translate.pairs.Pairing`."""
        from mtformer.translate.pairs import Pairing

        if isinstance(sources, str) or isinstance(translations, str) or len(sources) != len(translations):
            raise UserError("give a list of sources and a list of as many translations")
        pairing = Pairing(self.tokenizer, self.preparations, tgt_lang=self.tgt_lang, max_length=self.max_length)
        return list(map(pairing, _checked(sources), _checked(translations)))

    def _with_alignments(self, texts: Sequence[str], results: list[list[Translation]]) -> list[list[Translation]]:
        sources = [text for text, translations in zip(texts, results, strict=True) for _ in translations]
        found = iter(self.align(sources, [translation.text for found in results for translation in found]))
        return [[replace(translation, alignment=next(found)) for translation in result] for result in results]


def _distinct(translations: Sequence[Translation]) -> list[Translation]:
    """Return the first of all translations with the same text, which differ in their tokens."""
    first: dict[str, Translation] = {}
    for translation in translations:
        first.setdefault(translation.text, translation)
    return list(first.values())


def _warn(translations: Iterable[Translation], numbers: Iterable[int] | None) -> None:
    """Log how translations were made that were not made as usual; ``numbers`` are those of their lines, 1 and so on."""
    for line, translation in zip(count(1) if numbers is None else numbers, translations, strict=False):
        for note in translation.notes:
            if not note.startswith(FLAG):
                log.warning("line %d: %s", line, note)


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
