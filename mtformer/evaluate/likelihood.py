"""How probable the references are to the model: loss and perplexity."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mtformer.search.engine import ScoreRequest, results_of
from mtformer.translate.translator import Translator


@dataclass(frozen=True)
class Likelihood:
    """The log probability of references, by teacher forcing.

    Attributes:
        log_prob: the sum over all tokens, in nats.
        n_tokens: the tokens of the references, an EOS for each included.
        n_excluded: pairs with an empty side or more tokens than the model takes at once.
    """

    log_prob: float
    n_tokens: int
    n_excluded: int

    @property
    def loss(self) -> float | None:
        """The cross entropy per token in nats, without label smoothing; None if every pair is excluded."""
        return -self.log_prob / self.n_tokens if self.n_tokens else None

    @property
    def perplexity(self) -> float | None:
        """The exponential of the loss."""
        return None if self.loss is None else math.exp(min(self.loss, 700.0))

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        rounded = {"loss": self.loss, "perplexity": self.perplexity}
        shown = {key: None if value is None else round(value, 4) for key, value in rounded.items()}
        return shown | {"ref_tokens": self.n_tokens, "excluded_from_loss": self.n_excluded}


NO_LIKELIHOOD = Likelihood(0.0, 0, 0)


def likelihoods(
    translator: Translator, sources: Sequence[str], references: Sequence[str], sizes: Sequence[int]
) -> list[Likelihood]:
    """Score references, and sum over consecutive parts of the given sizes.

    Raises:
        MtformerError: the model predicts NaN.
    """
    tokenizer, longest = translator.tokenizer, translator.max_length
    src = tokenizer.encode_src(sources)
    tgt = tokenizer.encode_tgt(references)
    empty = 1 + len(tokenizer.prefixes.src), 1
    usable = [
        i
        for i in range(len(src))
        if all(n < len(ids) <= longest for n, ids in zip(empty, (src[i], tgt[i]), strict=True))
    ]
    forced = tokenizer.prefixes.tgt
    scores = results_of(translator.engine, [ScoreRequest(src[i], tgt[i][:-1], forced) for i in usable])
    log_probs = dict(zip(usable, scores, strict=True))
    parts, first = [], 0
    for size in sizes:
        chosen = [log_probs[i] for i in range(first, first + size) if i in log_probs]
        log_prob = math.fsum(map(math.fsum, chosen))
        parts.append(Likelihood(log_prob, sum(map(len, chosen)), size - len(chosen)))
        first += size
    return parts
