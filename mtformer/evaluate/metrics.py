"""sacreBLEU scores, each with the signature that says which one it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mtformer.text.languages import base_language, is_written_with_spaces

_CHARACTER_LANGUAGES = ("ja", "ko", "th")


@dataclass(frozen=True)
class Score:
    """A corpus score.

    Attributes:
        name: such as ``BLEU``.
        value: on sacreBLEU's scale of 0 to 100; for TER lower is better and 100 can be passed.
        signature: sacreBLEU's recipe of the score.
    """

    name: str
    value: float
    signature: str

    def to_dict(self) -> dict[str, Any]:
        """Return what ``--json`` shows."""
        return {"name": self.name, "score": round(self.value, 2), "signature": self.signature}


def bleu_tokenize(choice: str, tgt_lang: str) -> str:
    """Resolve ``auto`` to the tokenization that BLEU is reported with for the target language."""
    if choice != "auto":
        return choice
    language = base_language(tgt_lang)
    if language in ("zh", "yue"):
        return "zh"
    return "char" if language in _CHARACTER_LANGUAGES else "13a"


def bleu(hypotheses: Sequence[str], references: Sequence[str], tokenize: str = "13a") -> Score:
    """BLEU (Papineni et al. 2002), case counted."""
    return _score(BLEU(tokenize=tokenize), hypotheses, references)


def chrf(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """ChrF2 (Popović 2015)."""
    return _score(CHRF(), hypotheses, references)


def ter(hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str) -> Score:
    """TER (Snover et al. 2006), which counts characters as words where the target language has no spaces."""
    unspaced = not is_written_with_spaces(tgt_lang)
    return _score(TER(normalized=unspaced, asian_support=unspaced), hypotheses, references)


def all_scores(
    hypotheses: Sequence[str], references: Sequence[str], tgt_lang: str, tokenize: str = "auto"
) -> list[Score]:
    """BLEU, chrF and TER, the way they are reported for the target language."""
    return [
        bleu(hypotheses, references, bleu_tokenize(tokenize, tgt_lang)),
        chrf(hypotheses, references),
        ter(hypotheses, references, tgt_lang),
    ]


def _score(metric: Metric, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    result = metric.corpus_score(list(hypotheses), [list(references)])
    return Score(result.name, result.score, str(metric.get_signature()))
