"""Measure which definition of confidence tells good translations from bad ones.

Translates a test set, and prints the correlation of several definitions of a line's confidence with its sentence chrF:
Pearson's, and Spearman's of the ranks.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from program import run_program
from sacrebleu import sentence_chrf
from torch import Tensor

from mtformer.bundle.format import load_bundle
from mtformer.model.transformer import Transformer
from mtformer.runs.finding import find_model
from mtformer.text.lines import read_lines
from mtformer.translate.translator import Translator

Values = NDArray[np.float64]


@torch.inference_mode()
def definitions(
    model: Transformer, src: Sequence[int], tgt: Sequence[int], is_word_start: Sequence[bool]
) -> Mapping[str, float]:
    """Return the confidence of a translation by each definition; more is better.

    Args:
        model: in evaluation mode.
        src: ids, EOS last.
        tgt: ids, EOS last.
        is_word_start: whether each of ``tgt`` starts a word.
    """
    source = torch.tensor([src])
    tgt_in = torch.tensor([[model.architecture.special_ids.start, *tgt[:-1]]])
    hidden = model(source, torch.ones_like(source, dtype=torch.bool), tgt_in)
    log_probs = model.project(hidden[0]).log_softmax(dim=-1)  # (T, V)
    chosen = log_probs.gather(1, torch.tensor(tgt)[:, None])[:, 0]  # (T,)
    best = log_probs.exp().topk(2, dim=-1).values  # (T, 2)
    entropy = -(log_probs.exp() * log_probs).sum(dim=-1)  # (T,)
    words = _sums(chosen, is_word_start)
    return {
        "geometric mean of token probabilities": chosen.mean().exp().item(),
        "mean of token probabilities": chosen.exp().mean().item(),
        "mean of word probabilities": words.exp().mean().item(),
        "lowest token probability": chosen.min().exp().item(),
        "lowest word probability": words.min().exp().item(),
        "probability of the line": chosen.sum().exp().item(),
        "mean entropy, negated": -entropy.mean().item(),
        "mean margin to the second token": (best[:, 0] - best[:, 1]).mean().item(),
    }


def _sums(log_probs: Tensor, is_word_start: Sequence[bool]) -> Tensor:
    """Return the log probability of each word, (W,)."""
    words = torch.tensor(is_word_start).long().cumsum(dim=0)
    return torch.zeros(int(words.max()) + 1).index_add(0, words, log_probs)[int(words.min()) :]


def pearson(x: Values, y: Values) -> float:
    """Return the correlation coefficient."""
    return float(np.corrcoef(x, y)[0, 1])


def ranks(values: Values) -> Values:
    """Return the rank of each value; equal ones share the mean of theirs."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    return (last - (counts - 1) / 2)[places]


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="lines of the files")
    args = parser.parse_args()
    bundle = load_bundle(find_model(args.run))
    sources, references = (list(read_lines(path))[: args.limit] for path in (args.src, args.ref))
    translator = Translator.load(bundle, "cpu", raw=True)
    tokenizer = bundle.tokenizer
    rows: dict[str, list[float]] = {}
    scores = []
    hypotheses = [best.text for best, *_ in translator.translate(sources)]
    encoded = zip(tokenizer.encode_src(sources), tokenizer.encode_tgt(hypotheses), strict=True)
    for (src, tgt), hypothesis, reference in zip(encoded, hypotheses, references, strict=True):
        eos = tokenizer.special_ids.eos
        starts = [token.startswith("▁") or i == eos for token, i in zip(tokenizer.tgt_tokens(tgt), tgt, strict=True)]
        for name, value in definitions(bundle.model, src, tgt, starts).items():
            rows.setdefault(name, []).append(value)
        scores.append(sentence_chrf(hypothesis, [reference]).score)
    chrf = np.array(scores)
    print(f"{len(chrf):,} lines, mean chrF {chrf.mean():.1f}")
    print(f"{'definition':<38} {'Pearson':>8} {'Spearman':>9}")
    for name, values in rows.items():
        confidence = np.array(values)
        print(f"{name:<38} {pearson(confidence, chrf):>8.3f} {pearson(ranks(confidence), ranks(chrf)):>9.3f}")


if __name__ == "__main__":
    run_program(main)
