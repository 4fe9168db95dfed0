"""Compare the Transformer with recurrent networks on the phrasebook: "Why not a recurrent network" in docs/tour.md.

usage: python scripts/recurrent.py RUN WORK [--size N] [--epochs N] [--only NAME …]

RUN is a run on the phrasebook, whose tokenizer, sizes and settings all models share. Three of about the same number of
weights are trained, on the same batches in the same order:

* an LSTM encoder-decoder (Sutskever et al. 2014), which reads the source backwards and hands its last state on;
* the same with attention to all its states (Luong et al. 2015: the general score, and no input feeding);
* the Transformer.

The optimizer is AdamW for all three, in float32, with the learning rate of the phrasebook's config; with several
``--rates``, each model gets the one that it learns most with. A text is one to four sentences in a row, so that some
are long. The first table has, by the length of the source in tokens, BLEU of greedy search and the share of texts
translated exactly.

The second has the processor time of an update on 4,096 source tokens and as many of the target in texts of one length,
on one thread: the same number of tokens in fewer and longer rows. *In a row* is the number of matrix products that wait
for each other: what remains of the time where there are cores without end.

A model under WORK is not trained again; another number of epochs needs another folder.
"""

import argparse
import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from program import run_program
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from tour_experiments import drawn_sentences

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import ResolvedConfig, ResolvedTraining
from mtformer.data.batches import Batch, epoch_batches, make_batch, pad
from mtformer.data.tokens import Corpus, Encoder
from mtformer.evaluate.metrics import bleu
from mtformer.model.architecture import SPECIAL_IDS, Architecture
from mtformer.model.inference import InferenceModel
from mtformer.model.output import OutputHead
from mtformer.model.transformer import Transformer
from mtformer.model.weights import count_parameters
from mtformer.phrasebook.splits import held_out
from mtformer.runs.finding import find_model
from mtformer.runs.folder import RunFolder
from mtformer.search.decoder import Decoder, TransformerDecoder
from mtformer.search.greedy import greedy_search
from mtformer.search.processors import EndAtLimits, NeverChoose, Processor
from mtformer.support.files import write_atomically
from mtformer.text.pairs import SentencePair
from mtformer.training.optimizer import learning_rate
from mtformer.training.update import Updater

log = logging.getLogger(__name__)

WIDTH = 160  # of the recurrent networks: about as many weights as a Transformer of width 128
MOST_SENTENCES = 4  # in a text
MAX_TOKENS = 1024  # of a batch: more updates than with the config's 2,048
N_TEST = 1_000
BUCKETS = (8, 16, 24, 32, 99)  # the longest source of each, in tokens
LENGTHS = (8, 16, 32, 64, 128, 256, 512, 1024)
N_TOKENS = 4096  # of each side, in the batches that are timed
N_TIMED = 5

State = tuple[Tensor, Tensor]  # of an LSTM: (layers, B, D) each


class Recurrent(nn.Module):
    """An LSTM encoder and decoder, the latter with attention to the states of the former or without.

    Attributes:
        output: shares its weights with the target's embedding, as in the Transformer.
    """

    def __init__(self, architecture: Architecture, width: int, *, attends: bool) -> None:
        """Draw fresh weights, for the vocabularies and numbers of layers of ``architecture``."""
        super().__init__()
        self.width = width
        self.src_embedding = nn.Embedding(architecture.src_vocab_size, width)
        self.tgt_embedding = nn.Embedding(architecture.tgt_vocab_size, width)
        for embedding in (self.src_embedding, self.tgt_embedding):
            nn.init.normal_(embedding.weight, std=width**-0.5)
        self.encoder = nn.LSTM(width, width, architecture.n_encoder_layers, batch_first=True)
        self.decoder = nn.LSTM(width, width, architecture.n_decoder_layers, batch_first=True)
        self.score = nn.Linear(width, width, bias=False) if attends else None  # W_a of Luong et al.
        self.combine = nn.Linear(2 * width, width, bias=False)  # their W_c
        self.output = OutputHead(d_model=width, vocab_size=architecture.tgt_vocab_size)
        self.output.weight = self.tgt_embedding.weight

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.tgt_embedding.weight.device

    def forward(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor:
        """Predict every target token from those before it, as :meth:`Transformer.forward`; (B, T, D)."""
        memory, state = self.encode(src, src_mask)
        return self.decode(tgt_in, memory, src_mask, state)[0]

    def encode(self, src: Tensor, src_mask: Tensor) -> tuple[Tensor, State]:
        """Read source ids (B, S) backwards; return all states (B, S, D), of the last token first, and the final one."""
        lengths = src_mask.sum(dim=1)
        places = (lengths[:, None] - 1 - torch.arange(src.size(1))).clamp_min(0)  # (B, S)
        x = self.src_embedding(src.gather(1, places)) * self.width**0.5
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        states, final = self.encoder(packed)
        memory, _ = pad_packed_sequence(states, batch_first=True, total_length=src.size(1))
        return memory, final

    def decode(self, tgt_in: Tensor, memory: Tensor, src_mask: Tensor, state: State) -> tuple[Tensor, State]:
        """Continue from ``state`` with target ids (B, T); return (B, T, D) and the state after them."""
        x = self.tgt_embedding(tgt_in) * self.width**0.5
        hidden, state = self.decoder(x, state)
        context = hidden
        if self.score is not None:
            scores = (self.score(hidden) @ memory.transpose(1, 2)).masked_fill(~src_mask[:, None, :], float("-inf"))
            context = scores.softmax(dim=-1) @ memory  # (B, T, S) · (B, S, D)
        return torch.tanh(self.combine(torch.cat([context, hidden], dim=-1))), state


class RecurrentDecoder:
    """A :class:`Decoder` for a recurrent network, with one hypothesis for each sentence."""

    special_ids = SPECIAL_IDS

    def __init__(self, model: Recurrent, src: Tensor, src_mask: Tensor) -> None:
        """Encode the sources (B, S)."""
        self.device = src.device
        self._model = model
        self._memory, self._state = model.encode(src, src_mask)
        self._mask = src_mask

    def step(self, tokens: Tensor) -> Tensor:
        """Take the tokens (N,) chosen last and return log probabilities (N, V) of the next."""
        hidden, self._state = self._model.decode(tokens[:, None], self._memory, self._mask, self._state)
        return self._model.output.project(hidden[:, 0]).log_softmax(dim=-1)

    def select(self, sentences: Tensor, beams: Tensor) -> None:
        """Keep some sentences."""
        self._memory, self._mask = self._memory[sentences], self._mask[sentences]
        h, c = self._state
        self._state = h[:, sentences], c[:, sentences]


Model = Transformer | Recurrent


@dataclass(frozen=True)
class Setting:
    """What all models share.

    Attributes:
        bundle: of the phrasebook's run; its tokenizer and sizes.
        training: of that run, changed for the comparison.
        train: the texts to learn from.
        n_epochs: how often.
        test: the texts to translate.
    """

    bundle: Bundle
    training: ResolvedTraining
    train: Corpus
    n_epochs: int
    test: Sequence[SentencePair]


MODELS: dict[str, Callable[[Architecture], Model]] = {
    "LSTM": partial(Recurrent, width=WIDTH, attends=False),
    "LSTM with attention": partial(Recurrent, width=WIDTH, attends=True),
    "Transformer": Transformer,
}


def texts_of(pairs: Sequence[SentencePair], seed: int) -> list[SentencePair]:
    """Join one to :data:`MOST_SENTENCES` pairs in a row to each text, and use every pair once."""
    random = np.random.default_rng(seed)
    texts, start = [], 0
    while start < len(pairs):
        end = start + int(random.integers(1, MOST_SENTENCES + 1))
        sources, targets = zip(*pairs[start:end], strict=True)
        texts.append(SentencePair(" ".join(sources), "".join(targets)))
        start = end
    return texts


def prepare(run: Path, work: Path, size: int, n_epochs: int) -> Setting:
    """Read the run and draw the texts."""
    bundle = load_bundle(find_model(run))
    settings = RunFolder(run).read_config(ResolvedConfig).training
    changes = {"optimizer": "adamw", "precision": "fp32", "threads": 1, "max_tokens": MAX_TOKENS}
    lines = drawn_sentences(work, size).read_text(encoding="utf-8").splitlines()
    pairs = texts_of([SentencePair(*line.split("\t")) for line in lines], seed=1)
    test = [SentencePair(saying.en, saying.zh) for saying in held_out("test")]
    return Setting(
        bundle,
        settings.model_copy(update=changes),
        Encoder(bundle.tokenizer, max_length=256, max_ratio=float("inf")).corpus(pairs),
        n_epochs,
        texts_of(test, seed=2)[:N_TEST],
    )


def fresh(name: str, setting: Setting) -> Model:
    """Return a model with fresh weights."""
    torch.manual_seed(setting.training.seed)
    return MODELS[name](setting.bundle.header.architecture)


def train(name: str, setting: Setting, peak: float) -> tuple[Model, dict[str, float]]:
    """Train a model; return it with its averaged weights, and its updates, minutes of processor time and last loss."""
    model, settings = fresh(name, setting), setting.training
    updater = Updater(model, settings)  # type: ignore[arg-type]  # it asks for no more than a Recurrent has
    plans = [
        epoch_batches(setting.train, settings.max_tokens, seed=settings.seed, epoch=epoch)
        for epoch in range(setting.n_epochs)
    ]
    batches = [planned for plan in plans for planned in plan]
    losses, began = [], time.process_time()
    for step, (indices, src_length, tgt_length) in enumerate(batches, 1):
        rate = learning_rate(
            step,
            step / len(batches),
            schedule="linear",
            peak=peak,
            warmup_steps=settings.warmup_steps or 0,
            warmup_share=0.1,
        )
        update = updater.update([make_batch(setting.train, indices, src_length, tgt_length)], step, rate)
        losses.append(update.cross_entropy / update.n_tokens)
        if step % 50 == 0:
            log.info("%s, %g: step %d of %d, loss %.3f", name, peak, step, len(batches), np.mean(losses[-50:]))
    minutes = (time.process_time() - began) / 60
    assert updater.average
    for weight_name, parameter in model.named_parameters():
        parameter.data = updater.average.tensors[weight_name]
    return model.eval(), {"updates": len(batches), "minutes": minutes, "loss": float(np.mean(losses[-50:]))}


def trained(name: str, setting: Setting, work: Path, rates: Sequence[float]) -> tuple[Model, dict[str, float]]:
    """Train a model with each rate, unless it is trained already, and return the one with the lowest loss."""
    results = []
    for rate in rates:
        path = work / f"{name.replace(' ', '-')}-{rate:g}.safetensors"
        if not path.exists():
            model, facts = train(name, setting, rate)
            path.with_suffix(".json").write_text(json.dumps(facts | {"rate": rate}), encoding="utf-8")
            write_atomically(path, partial(save_file, dict(model.named_parameters())))
        results.append((json.loads(path.with_suffix(".json").read_text(encoding="utf-8")), path))
    facts, path = min(results, key=lambda result: result[0]["loss"])
    model = fresh(name, setting)
    model.load_state_dict(load_file(path), strict=False)
    return model.eval(), facts


@torch.inference_mode()
def translate(model: Model, bundle: Bundle, texts: Sequence[str]) -> list[str]:
    """Translate with greedy search, all texts in one batch."""
    rows = bundle.tokenizer.encode_src(list(texts))
    src = pad(rows, SPECIAL_IDS.pad)
    src_mask = src != SPECIAL_IDS.pad
    decoder: Decoder
    if isinstance(model, Transformer):
        decoder = TransformerDecoder(InferenceModel(model), src, src_mask)
    else:
        decoder = RecurrentDecoder(model, src, src_mask)
    limits = [2 * len(row) + 20 for row in rows]
    rules: list[Processor] = [
        NeverChoose(SPECIAL_IDS.never, src.device),
        EndAtLimits(limits, SPECIAL_IDS.eos, src.device),
    ]
    return [bundle.tokenizer.decode(best.ids) for best in greedy_search(decoder, len(rows), rules)]


def quality(model: Model, setting: Setting) -> list[dict[str, float]]:
    """Return BLEU and the share of exact translations, by the length of the source."""
    lengths = [len(row) for row in setting.bundle.tokenizer.encode_src([pair.src for pair in setting.test])]
    by_bucket = defaultdict(list)
    for length, pair in zip(lengths, setting.test, strict=True):
        by_bucket[next(longest for longest in BUCKETS if length <= longest)].append(pair)
    rows = []
    for longest, pairs in sorted(by_bucket.items()):
        found = translate(model, setting.bundle, [pair.src for pair in pairs])
        exact = np.mean([text == pair.tgt for text, pair in zip(found, pairs, strict=True)])
        score = bleu(found, [pair.tgt for pair in pairs], "zh").value
        rows.append({"longest": longest, "texts": len(pairs), "bleu": score, "exact": float(exact)})
    return rows


def products_in_a_row(model: Model, length: int) -> int:
    """Count the matrix products of a forward pass that wait for each other, for sources and targets of one length.

    A step of an LSTM layer waits for the product of the step before. The layer above it works on the step before at the
    same time, so each further layer adds one step to the whole. All positions of the Transformer are in each product.
    """
    if isinstance(model, Transformer):
        n_encoder, n_decoder = len(model.encoder_layers), len(model.decoder_layers)
        return 6 * n_encoder + 10 * n_decoder + 1  # q, k, v; scores; weighted mean; output; feed-forward, 2
    attention = 3 if model.score is not None else 0
    return sum(length + lstm.num_layers - 1 for lstm in (model.encoder, model.decoder)) + attention + 2


def seconds_per_update(name: str, setting: Setting, length: int) -> float:
    """Return the processor time of an update on random texts of one length, of several the least."""
    model = fresh(name, setting)
    updater = Updater(model, setting.training)  # type: ignore[arg-type]
    n_rows = max(1, N_TOKENS // length)
    ids = torch.randint(4, 1_000, (3, n_rows, length))
    src, tgt_in, tgt_out = ids
    everywhere = torch.ones_like(src, dtype=torch.bool)
    batch = Batch(src, everywhere, tgt_in, tgt_out, everywhere, range(n_rows))
    seconds = []
    for step in range(1, N_TIMED + 2):
        began = time.process_time()
        updater.update([batch], step, 1e-4)
        seconds.append(time.process_time() - began)
    return min(seconds[1:])


def main() -> None:
    """Train, measure, print both tables, and keep the numbers in WORK/recurrent.json for the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run on the phrasebook from English to Chinese")
    parser.add_argument("work", type=Path, help="a folder for the models")
    parser.add_argument("--size", type=int, default=60_000, help="sentence pairs to train on")
    parser.add_argument("--epochs", type=int, default=1, help="how often")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.004], help="learning rates to choose from")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=MODELS, default=list(MODELS))
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    arguments.work.mkdir(parents=True, exist_ok=True)
    setting = prepare(arguments.run, arguments.work, arguments.size, arguments.epochs)
    results: dict[str, Any] = {}
    print(f"{'':<20}  weights  updates  minutes   rate" + "".join(f"  {'≤ ' + str(n):>11}" for n in BUCKETS))
    for name in arguments.only:
        model, facts = trained(name, setting, arguments.work, arguments.rates)
        rows = quality(model, setting)
        n_weights = count_parameters(model)
        scores = "".join(f"  {row['bleu']:5.1f} {row['exact']:5.0%}" for row in rows)
        numbers = f"{n_weights / 1e6:5.2f} M  {facts['updates']:7}  {facts['minutes']:7.1f}  {facts['rate']:5g}"
        print(f"{name:<20}  {numbers}{scores}", flush=True)
        results[name] = facts | {"weights": n_weights, "quality": rows}
    print("\ntokens" + "".join(f"  {name:>19}" for name in arguments.only), " in a row, ms", flush=True)
    for length in LENGTHS:
        line = f"{length:6}"
        for name in arguments.only:
            seconds, chain = seconds_per_update(name, setting, length), products_in_a_row(fresh(name, setting), length)
            line += f"  {chain:10} {1000 * seconds:8.0f}"
            results[name].setdefault("updates_by_length", []).append({"length": length, "ms": 1000 * seconds})
        print(line, flush=True)
    path = arguments.work / "recurrent.json"
    write_atomically(path, lambda temporary: temporary.write_text(json.dumps(results, indent=1), encoding="utf-8"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # the gradients of an LSTM vanish, and some processors are slow with tiny numbers
    run_program(main)
