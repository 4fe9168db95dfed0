"""Annotated terms: their translations stand in the source, where the model learns to copy them (Dinu et al. 2019)."""

from collections.abc import Sequence

from mtformer.support.errors import UserError
from mtformer.text.glossary import Match, Term
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.tokenizer.sampling import Sampling
from mtformer.text.tokenizer.tokenizer import Tokenizer


class Annotator:
    """Encodes source texts with the translations of terms in them, as in ``I ate <term> chips <is> 薯片 </term>``."""

    def __init__(self, tokenizer: Tokenizer, tgt_lang: str) -> None:
        """Take a tokenizer that has the markers.

        Raises:
            UserError: it has none.
        """
        if tokenizer.markers is None:
            raise UserError(
                "soft terms need a model that was trained with annotated terms (data.terms), which this one was not: "
                "use hard ones (--terms-mode hard)"
            )
        self._tokenizer, self._markers = tokenizer, tokenizer.markers
        self._tgt_has_spaces = is_written_with_spaces(tgt_lang)

    def encode(self, text: str, matches: Sequence[Match], sampling: Sampling | None = None) -> list[int]:
        """Turn a normalized source text into ids, ended by EOS, with the translations of terms in it.

        Args:
            text: the text.
            matches: the terms in it, in order.
            sampling: how to sample the tokens of the text and of the translations; None takes the likeliest ones.
        """
        begin, middle, end = self._markers
        ids = list(self._tokenizer.prefixes.src)
        place = 0
        for match in matches:
            ids += [*self._part(text, place, match.start, sampling), begin]
            ids += [*self._part(text, match.start, match.end, sampling), middle]
            ids += [*self._translation(match.term.tgt, sampling), end]
            place = match.end
        return [*ids, *self._part(text, place, len(text), sampling), self._tokenizer.special_ids.eos]

    def n_added(self, term: Term) -> int:
        """Return how many tokens the annotation of a term adds to a text."""
        return len(self._markers) + len(self._translation(term.tgt, None))

    def _part(self, text: str, start: int, end: int, sampling: Sampling | None) -> list[int]:
        """Encode ``text[start:end]`` with the tokens that it has within the text, where they end at its ends."""
        part = text[start:end]
        follows_space = start == 0 or part.startswith(" ") or text[start - 1] == " "
        return self._encode(part.strip(), sampling, inside=not follows_space) if part.strip() else []

    def _translation(self, text: str, sampling: Sampling | None) -> list[int]:
        return self._encode(text, sampling, inside=not self._tgt_has_spaces)

    def _encode(self, text: str, sampling: Sampling | None, *, inside: bool) -> list[int]:
        if inside:  # both languages have the same tokens, and only texts of the source have a prefix
            return self._tokenizer.encode_tgt_inside(text, sampling)
        return self._tokenizer.encode_tgt([text], sampling)[0][:-1]
