"""Negation: pairs of sentences that differ in one *not*, and whether their translations differ in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import NamedTuple

from mtformer.text.languages import base_language

# Words that deny, and before them those that only look so.
_NEGATIONS = {
    "en": r"(?:\b(?:not|cannot|no|never|none|nobody|nothing|nowhere|neither|nor|no one)\b|n['’]t\b)",
    "de": r"\b(?:nicht|nichts|kein(?:e\w*)?|nie|niemals|niemand(?:e[mn])?|weder|nirgends|nirgendwo)\b",
    "fr": r"(?:\b(?:ne|pas|jamais|rien|aucune?|non)\b|\bn['’])",
    "es": r"\b(?:no|nunca|jamás|nada|nadie|ningún|ninguna|ninguno|tampoco|ni)\b",
    "cs": r"\b(?:ne(?!bo\b|be(?:\b|[sz]\w)|děl\w|ch(?:\b|a[lt]|á[mš]?\b|ej)|j\w|kdo|moc|ž\b)\w*"
    r"|nej(?:s(?:em|i|me|te|ou)|(?:d|ed)(?:u|eš|e|eme|ete|ou)|í(?:m|š|me|te)?)"
    r"|nikdy|nic|nikdo|nikde|žádn\w+|ani)\b",
    "zh": r"不(?!错|过|同|久|少|仅|但|管|论|断|如)|没|無|无(?!论)|未(?!来)|别(?!的|人|墅|处)",
}
_HARMLESS = {"zh": "差不多|对不起|特别|区别|分别|个别|级别|性别|告别|了不起"}


class NegationPair(NamedTuple):
    """Two sentences that differ in a negation."""

    positive: str
    negative: str


def negation_pairs(language: str) -> list[NegationPair]:
    """Return the pairs in a language; none if there are none."""
    table = resources.files("mtformer.evaluate").joinpath("negation.tsv").read_text(encoding="utf-8")
    rows = [row.split("\t") for row in table.splitlines()]
    texts = [text for row_language, text in rows if row_language == base_language(language)]
    # What is in brackets makes a sentence negative.
    return [NegationPair(re.sub(r"\[.*?\]", "", text), re.sub(r"[\[\]]", "", text)) for text in texts]


def denies(text: str, language: str) -> bool | None:
    """Tell whether a text has a word that denies; None if such words of the language are not known."""
    pattern, harmless = _NEGATIONS.get(base_language(language)), _HARMLESS.get(base_language(language))
    if pattern is None:
        return None
    return re.search(pattern, re.sub(harmless, " ", text) if harmless else text, re.IGNORECASE) is not None


@dataclass(frozen=True)
class Flips:
    """Translations that say the opposite, as far as their words tell.

    Attributes:
        pairs: the pairs of sentences.
        lost: how many translations of the negative sentences deny nothing.
        added: how many translations of the positive ones deny something.
    """

    pairs: int
    lost: int
    added: int

    @property
    def share(self) -> float:
        """Of all translations, from 0 to 1."""
        return (self.lost + self.added) / (2 * self.pairs)

    def to_dict(self) -> dict[str, int]:
        """Return the object that ``--json`` prints."""
        return {"pairs": self.pairs, "lost": self.lost, "added": self.added}

    def __str__(self) -> str:
        counts = f"{self.lost} of {self.pairs} lost, {self.added} of {self.pairs} added"
        return f"negation  {100 * self.share:.1f} % of the translations flip: {counts}"


def count_flips(translations: Sequence[NegationPair], tgt_lang: str) -> Flips:
    """Count flips in the translations of pairs of sentences into a language whose negations are known."""
    lost = sum(not denies(translation.negative, tgt_lang) for translation in translations)
    added = sum(bool(denies(translation.positive, tgt_lang)) for translation in translations)
    return Flips(len(translations), lost, added)
