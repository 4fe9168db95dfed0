"""Scores of sentence pairs by the models of both directions, to filter training text by.

Dual conditional cross-entropy (Junczys-Dowmunt 2018, "Dual Conditional Cross-Entropy Filtering of Noisy Parallel
Corpora", equations 1 and 2): a pair is good where both models find it likely, and equally so.
"""

import json
import logging
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

from mtformer.data.clean.language import N_TEXTS, language_warning
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.errors import UserError
from mtformer.translate.jobs.documents import Paragraph
from mtformer.translate.jobs.generation import Generation, numbered_share
from mtformer.translate.jobs.partial import PartialFile
from mtformer.translate.jobs.resuming import fill
from mtformer.translate.jobs.settings import described
from mtformer.translate.jobs.shards import Shard
from mtformer.translate.translation import Translation

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)


def run(
    job: Generation, text: ParallelText, shard: Shard | None, load: Callable[[], "tuple[Translator, Translator | None]"]
) -> None:
    """Write each pair with its score: a JSON object on each line, with the languages' codes as keys.

    ``forward`` and ``backward`` are the cross-entropies of the two models, in nats per token, and ``score`` is what
    :func:`dual_score` makes of them.

    Args:
        job: where the scores go.
        text: the pairs.
        shard: which share of them is scored; None for all.
        load: makes the translators from source to target, and from target to source if there is one.

    Raises:
        UserError: a text cannot be read, the models are not those of opposite directions, or an unfinished output
            cannot be continued.
        MtformerError: the output cannot be written, or a model predicts NaN.
    """
    units = _units(text, shard)
    first = list(islice(units, N_TEXTS))

    def start() -> Callable[[Sequence[Paragraph], Counter[str]], str]:
        forward, backward = load()
        languages = forward.src_lang, forward.tgt_lang
        if backward is not None and (backward.tgt_lang, backward.src_lang) != languages:
            raise UserError(
                f"--reverse translates from {backward.src_lang} to {backward.tgt_lang}: to score together with a model "
                f"from {languages[0]} to {languages[1]}, it must be one from {languages[1]} to {languages[0]}"
            )
        sides = zip(*(unit.text.split("\n") for unit in first), strict=True)
        if warning := language_warning("the text", dict(zip(languages, sides, strict=False))):
            log.warning("%s", warning)
        return lambda window, left_out: _scored(forward, backward, window, left_out)

    file = PartialFile(job.output, described(job.options, job.models))
    fill(file, chain(first, units), start, resume=job.resume, doing="scoring", unit="pairs", left_out_of="pairs")


def dual_score(forward: float, backward: float | None) -> float:
    """Return a score between 0 and 1 for the cross-entropies of both models, or of one if there is only one."""
    if backward is None:
        return math.exp(-forward)
    return math.exp(-(abs(forward - backward) + (forward + backward) / 2))


def _units(text: ParallelText, shard: Shard | None) -> Iterator[Paragraph]:
    """Yield the pairs, each as a text of two lines."""
    return (Paragraph(number, f"{src}\n{tgt}") for number, (src, tgt) in numbered_share(text, shard))


def _scored(
    forward: "Translator", backward: "Translator | None", window: Sequence[Paragraph], left_out: Counter[str]
) -> str:
    """Score a window, and return its pairs as lines of JSON."""
    texts = [unit.text.split("\n") for unit in window]
    complete = [place for place, sides in enumerate(texts) if all(map(str.strip, sides))]
    left_out["a side is empty"] += len(texts) - len(complete)
    numbers = [window[place].number for place in complete]
    sources, targets = ([texts[place][side] for place in complete] for side in range(2))
    found = [_cross_entropy(one) for one in forward.score(sources, targets, numbers=numbers)]
    reverse = backward.score(targets, sources, numbers=numbers) if backward else []
    lines = []
    for src, tgt, one, other in zip_longest(sources, targets, found, map(_cross_entropy, reverse)):
        values = {"score": dual_score(one, other), "forward": one, "backward": other}
        scores = {name: float(f"{value:.5g}") for name, value in values.items() if value is not None}
        lines.append(json.dumps({forward.src_lang: src, forward.tgt_lang: tgt} | scores, ensure_ascii=False) + "\n")
    return "".join(lines)


def _cross_entropy(translation: Translation) -> float:
    """Return the nats per token, EOS included."""
    return -sum(translation.token_log_probs) / len(translation.token_log_probs)
