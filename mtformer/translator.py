"""Strings to strings: split what is too long, sort by length, batch, search, restore the order."""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import ValidationError
from torch import Tensor

from mtformer.bundle import Bundle, load_bundle
from mtformer.config import SearchConfig
from mtformer.data.batches import fill_batches, pad
from mtformer.errors import UserError
from mtformer.hardware import pick_device
from mtformer.model.transformer import Transformer
from mtformer.search import Hypothesis, TransformerDecoder, beam_search, greedy_search
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.tokenizer import EOS_ID, PAD_ID, Tokenizer

log = logging.getLogger(__name__)

_FULL_WIDTH_ENDS = tuple("。！？；")  # no space follows them
_CONTINUATION_BYTE = re.compile("<0x[89AB][0-9A-F]>")  # of a character that is spelled as several bytes
_SENTENCE_ENDS = (*".!?;", *_FULL_WIDTH_ENDS)


@dataclass(frozen=True)
class Translation:
    """One of the translations of a text.

    Attributes:
        text: detokenized, on one line.
        score: the length-penalized log probability that translations are ranked by.
        log_prob: the log probability itself.
    """

    text: str
    score: float
    log_prob: float


class Translator:
    """A model with its tokenizer and its way of searching."""

    def __init__(
        self, model: Transformer, tokenizer: Tokenizer, search: SearchConfig, *, tgt_lang: str, max_length: int
    ) -> None:
        """Wrap a model, which is used as it is: put it in evaluation mode before translating.

        Args:
            model: on the device that it is to run on.
            tokenizer: the one that the model was trained with.
            search: beam size, length penalty and limits.
            tgt_lang: decides whether the parts of a split text are joined by a space.
            max_length: the most pieces, EOS included, that the model is given at once; longer texts are split.
        """
        self.model = model
        self.tokenizer = tokenizer
        self.search = search
        self.max_length = max_length
        self._joiner = " " if is_written_with_spaces(tgt_lang) else ""
        self._device = next(model.parameters()).device

    def translate(
        self,
        texts: Sequence[str],
        *,
        n_best: int = 1,
        first_line: int = 1,
        on_progress: Callable[[int], object] | None = None,
    ) -> list[list[Translation]]:
        """Translate ``texts``, each into its ``n_best`` best translations (fewer where the search found fewer).

        A text without words has the empty text as its one translation. A text that is too long is split at sentence
        ends or else at words, with a warning, and its parts' translations are joined.

        Args:
            texts: one line each.
            n_best: at most the beam size.
            first_line: the number of the first text, for warnings.
            on_progress: called with a number of texts each time that many more are done.

        Raises:
            ValueError: ``n_best`` is more than the beam size.
        """
        if n_best > self.search.beam_size:
            raise ValueError(f"n_best = {n_best} is more than beam_size = {self.search.beam_size}")
        report = on_progress or (lambda n_texts: None)
        parts_of = [self._split(ids) if len(ids) > 1 else [] for ids in self.tokenizer.encode_src(texts)]
        for number, parts in enumerate(parts_of, first_line):
            if len(parts) > 1:
                n_pieces = sum(len(part) - 1 for part in parts)
                log.warning("line %d has %d pieces; translated in %d parts", number, n_pieces, len(parts))
        places = [(text, part) for text, parts in enumerate(parts_of) for part in range(len(parts))]
        found: list[list[list[Hypothesis]]] = [[[] for _ in parts] for parts in parts_of]
        report(sum(not parts for parts in parts_of))
        for batch, results in self._search_all([parts_of[text][part] for text, part in places], n_best):
            for place, hypotheses in zip(batch, results, strict=True):
                text, part = places[place]
                found[text][part] = hypotheses[:n_best]
            report(sum(places[place][1] == 0 for place in batch))  # a text counts with its first part
        return [self._join(parts) for parts in found]

    def _split(self, ids: list[int]) -> list[list[int]]:
        """Cut ids (EOS last) into parts of at most ``max_length`` with an EOS each, at the best places there are."""
        parts: list[list[int]] = []
        rest, most = ids[:-1], self.max_length - 1
        while len(rest) > most:
            cut = self._best_cut(rest[: most + 1])
            parts.append([*rest[:cut], EOS_ID])
            rest = rest[cut:]
        return [*parts, [*rest, EOS_ID]]

    def _best_cut(self, ids: list[int]) -> int:
        """Return how many of ``ids`` make the first part: up to the last end of a sentence, a word or a character."""
        pieces = self.tokenizer.src_pieces(ids)
        places = range(len(pieces) - 1, len(pieces) // 2, -1)
        word_starts = [i for i in places if pieces[i].startswith("▁") or pieces[i - 1].endswith(_FULL_WIDTH_ENDS)]
        sentence_end = next((i for i in word_starts if pieces[i - 1].endswith(_SENTENCE_ENDS)), None)
        word_start = next(iter(word_starts), None)
        character_start = next((i for i in places if not _CONTINUATION_BYTE.fullmatch(pieces[i])), None)
        return sentence_end or word_start or character_start or len(pieces) - 1

    def _search_all(
        self, parts: Sequence[list[int]], n_best: int
    ) -> Iterator[tuple[list[int], list[list[Hypothesis]]]]:
        """Yield, batch by batch, the places in ``parts`` of its rows and what was found for each."""
        lengths = [len(ids) for ids in parts]
        order = sorted(range(len(parts)), key=lambda i: -lengths[i])  # longest first: memory runs out early or never
        for batch in fill_batches(order, lengths, self.search.batch_tokens):
            src = pad([parts[i] for i in batch]).to(self._device)
            limits = [int(self.search.max_length_factor * lengths[i]) + self.search.max_length_offset for i in batch]
            yield batch, self._search(src, limits, n_best)

    @torch.inference_mode()
    def _search(self, src: Tensor, limits: list[int], n_best: int) -> list[list[Hypothesis]]:
        """Translate the sources (B, S), padded on the right, in at most ``limits`` pieces each."""
        decoder = TransformerDecoder(self.model, src, src != PAD_ID)
        alpha, beam_size = self.search.length_penalty, self.search.beam_size
        if beam_size == 1:
            return [[best] for best in greedy_search(decoder, limits, alpha=alpha, device=self._device)]
        return beam_search(decoder, limits, beam_size=beam_size, alpha=alpha, n_best=n_best, device=self._device)

    def _join(self, parts: list[list[Hypothesis]]) -> list[Translation]:
        """Join the r-th best hypotheses of a text's parts into its r-th best translation."""
        if not parts:
            return [Translation("", 0.0, 0.0)]
        translations = []
        for rank in range(min(len(hypotheses) for hypotheses in parts)):
            chosen = [hypotheses[rank] for hypotheses in parts]
            texts = (self.tokenizer.decode(hypothesis.ids) for hypothesis in chosen)
            text = self._joiner.join(text for text in texts if text)
            score = sum(hypothesis.score for hypothesis in chosen)
            log_prob = sum(hypothesis.log_prob for hypothesis in chosen)
            translations.append(Translation(text, score, log_prob))
        return translations


def open_translator(
    path: Path, device: str, beam_size: int | None = None, length_penalty: float | None = None, n_best: int = 1
) -> Translator:
    """Load the bundle at ``path`` for translating, with its own search settings where none are given.

    Raises:
        UserError: no such bundle or device, or more translations asked for than the beam holds.
    """
    return make_translator(load_bundle(path), device, beam_size, length_penalty, n_best)


def make_translator(
    bundle: Bundle, device: str, beam_size: int | None = None, length_penalty: float | None = None, n_best: int = 1
) -> Translator:
    """The same for a bundle that is loaded already."""
    changed = {"beam_size": beam_size, "length_penalty": length_penalty}
    given = {key: value for key, value in changed.items() if value is not None}
    if beam_size is None and n_best > bundle.header.search.beam_size:
        given["beam_size"] = n_best
    try:
        search = SearchConfig.model_validate(bundle.header.search.model_dump() | given)
    except ValidationError as error:
        problems = [f"--{str(e['loc'][0]).replace('_', '-')} {e['input']}: {e['msg']}" for e in error.errors()]
        raise UserError("; ".join(problems)) from None
    if n_best > search.beam_size:
        raise UserError(f"--n-best {n_best} is more than --beam-size {search.beam_size}")
    return Translator(
        bundle.model.to(pick_device(device)),
        bundle.tokenizer,
        search,
        tgt_lang=bundle.header.tgt_lang,
        max_length=bundle.header.architecture.max_length,
    )
