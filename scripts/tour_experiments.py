"""Train variants of the phrasebook's model and print how well each translates: the comparisons of docs/tour.md.

usage: python scripts/tour_experiments.py WORK [--only NAME …] [--size N]

The baseline is configs/phrasebook_en_zh.yaml with fewer sentences, and each variant differs from it in one thing.
``another seed`` shows how much chance alone changes. A run under WORK that is complete is not trained again.

Columns: the validation loss under teacher forcing, in nats per token; BLEU of greedy search on 500 test sentences; the
share of 500 sentences whose *it* is translated correctly; the share of 100 test sentences that are translated alone as
they are in a batch; minutes of training.
"""

import argparse
import functools
import json
import logging
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import phrasebook_measures as measures
import torch
from program import run_program
from torch import Tensor

from mtformer.bundle.format import load_bundle
from mtformer.config import BuiltinText, load_config
from mtformer.data.sources.parallel import ParallelText
from mtformer.evaluate.metrics import bleu
from mtformer.model.attention import MultiHeadAttention
from mtformer.phrasebook.splits import held_out
from mtformer.runs.folder import RunFolder
from mtformer.support.files import write_atomically
from mtformer.training.run import train
from mtformer.translate.translator import Translator

CONFIG = Path(__file__).parent.parent / "configs/phrasebook_en_zh.yaml"
N_SENTENCES = 500  # of each test set
N_ALONE = 100

Attend = Callable[..., Tensor]


def without_causal_mask(attend: Attend, *heads: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Let each position of the target see all of them, the token that it is to predict included."""
    return attend(*heads, mask)


def without_padding_mask(attend: Attend, *heads: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    """Let each position see the padding of the source."""
    return attend(*heads, None, causal=causal)


def without_scaling(attend: Attend, q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None, causal: bool) -> Tensor:
    """Undo the division by √Dh."""
    return attend(q * math.sqrt(q.size(-1)), k, v, mask, causal=causal)


@dataclass(frozen=True)
class Variant:
    """A model to train.

    Attributes:
        settings: as for ``--set``.
        attend: replaces ``MultiHeadAttention.attend``, which it gets as its first argument.
    """

    settings: Sequence[str] = ()
    attend: Callable[..., Tensor] | None = None


VARIANTS = {
    "baseline": Variant(),
    "another seed": Variant(["training.seed=2"]),
    "1 head": Variant(["model.n_heads=1"]),
    "2 heads": Variant(["model.n_heads=2"]),
    "8 heads": Variant(["model.n_heads=8"]),
    "attention dropout 0.1": Variant(["model.attention_dropout=0.1"]),
    "no division by √d": Variant(attend=without_scaling),
    "learned positions": Variant(["model.positions=learned"]),
    "rotary positions": Variant(["model.positions=rotary"]),
    "no positions": Variant(["model.positions=none"]),
    "post-norm": Variant(["model.norm=post"]),
    "no causal mask": Variant(attend=without_causal_mask),
    "no padding mask": Variant(attend=without_padding_mask),
}


@contextmanager
def patched(variant: Variant) -> Iterator[None]:
    """Replace the attention of all models inside the ``with`` block."""
    original = MultiHeadAttention.attend
    if variant.attend is None:
        yield
        return

    def attend(
        self: MultiHeadAttention, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, *, causal: bool = False
    ) -> Tensor:
        assert variant.attend
        return variant.attend(functools.partial(original, self), q, k, v, mask=mask, causal=causal)

    MultiHeadAttention.attend = attend  # type: ignore[method-assign]
    try:
        yield
    finally:
        MultiHeadAttention.attend = original  # type: ignore[method-assign]


def drawn_sentences(work: Path, size: int) -> Path:
    """Return a file with ``size`` sentences of the phrasebook, which takes longer to draw than to learn from."""
    path = work / f"train-{size}.tsv"
    if not path.exists():
        text = ParallelText([BuiltinText(builtin="phrasebook", size=size)], "en", "zh")
        lines = "".join(f"{pair.src}\t{pair.tgt}\n" for pair in text)
        work.mkdir(parents=True, exist_ok=True)
        write_atomically(path, lambda temporary: temporary.write_text(lines, encoding="utf-8"))
    return path


def measure(name: str, variant: Variant, work: Path, size: int) -> str:
    """Train a variant unless it is trained already, and return its row of the table."""
    source = f"data.train=[{{tsv: {drawn_sentences(work, size)}}}]"
    run = [f"run.dir={work}", f"run.name={name.replace(' ', '_')}"]
    config = load_config(CONFIG, [source, *run, *variant.settings])
    folder = RunFolder.of(config)
    with patched(variant):
        bundle = load_bundle(train(config))
        translator = Translator.load(bundle, "cpu", beam_size=1)
        test = held_out("test")[:N_SENTENCES]
        found = translator.translate([saying.en for saying in test])
        score = bleu([best.text for best, *_ in found], [saying.zh for saying in test], "zh").value
        alone = [translator.translate([saying.en])[0][0].text for saying in test[:N_ALONE]]
        pronouns = measures.pronouns("zh")[:N_SENTENCES]
        answers = translator.translate([question.src for question in pronouns])
    right = sum(question.is_met_by(best.text) for question, (best, *_) in zip(pronouns, answers, strict=True))
    alike = sum(text == best.text for text, (best, *_) in zip(alone, found, strict=False))
    lines = map(json.loads, folder.metrics.read_text(encoding="utf-8").splitlines())
    last = [line for line in lines if "valid_loss" in line][-1]
    scores = f"{last['valid_loss']:6.3f}  {score:5.1f}  {right / N_SENTENCES:8.1%}  {alike / N_ALONE:5.0%}"
    return f"{name:<22}  {scores}  {last['seconds'] / 60:7.1f}"


def main() -> None:
    """Train and print a row for each variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=Path, help="the folder of the runs")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=VARIANTS, default=list(VARIANTS))
    parser.add_argument("--size", type=int, default=60_000, help="sentence pairs to train on")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    print(f"{'':<22}    loss   BLEU  pronouns  alone  minutes", flush=True)
    for name in arguments.only:
        print(measure(name, VARIANTS[name], arguments.work.absolute(), arguments.size), flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    run_program(main)
