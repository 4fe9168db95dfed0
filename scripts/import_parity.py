"""Compare imported models with the originals in transformers: token ids, logits, greedy and beam search.

The models are those of tests/pretrained.py: every kind that can be imported, small, with random weights from several
seeds. The lines are the odd ones of the tests and, in turn, lines of FILES, for example of all corpora at hand.

Only translations that end are compared: at the limit, transformers leaves them open, and we add what ending costs. The
last columns count those of beam search that differ, and are better or worse by transformers' own score.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from program import run_program

from mtformer import Translator
from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import LanguagePair
from mtformer.export.importing import read_model, write_model
from mtformer.support.terminal import as_text
from mtformer.text.lines import read_lines

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from pretrained import KINDS, LINES, SIZES, Pretrained

HEADER = ("model", "seed", "same ids", "logits: largest", "relative", "greedy", "4 beams", "better", "worse")
N_NEW = 40  # tokens of the longest translation
BATCH = 64  # lines that transformers translates at once


def lines_of(files: Sequence[Path], n: int) -> list[str]:
    """Return ``n`` lines: the odd ones, then lines of the files in turn."""
    texts = itertools.zip_longest(*(read_lines(file) for file in files), fillvalue="")
    return list(itertools.islice((*LINES, *itertools.chain.from_iterable(texts)), n))


def their_ids(theirs: Pretrained, texts: Sequence[str]) -> list[list[int]]:
    """Return the ids that the tokenizer of the original gives."""
    if theirs.languages[0]:
        theirs.tokenizer.src_lang = theirs.languages[0]
    return [theirs.tokenizer(text).input_ids for text in texts]


def make_ends_likely(model: Any) -> None:
    """Let translations end before their limit, where searches are cut in ways of their own.

    The output's row of EOS is moved along the bias of the last normalization, which all states have in common.
    """
    decoder = model.get_decoder()
    norm = getattr(decoder, "layer_norm", None) or decoder.layers[-1].final_layer_norm
    with torch.no_grad():
        model.get_output_embeddings().weight[model.config.eos_token_id] += 0.6 * norm.bias


def logit_errors(theirs: Pretrained, ours: Bundle, sources: Sequence[Sequence[int]]) -> tuple[float, float]:
    """Return the largest difference of the logits, and the median of the relative ones."""
    size, largest, relative = ours.header.architecture.tgt_vocab_size, 0.0, []
    for src_ids in sources:
        src = torch.tensor([src_ids])
        forced = torch.tensor([[ours.tokenizer.special_ids.start, *ours.tokenizer.prefixes.tgt]])
        tgt_in = torch.cat([forced, torch.randint(5, size, (1, 12))], dim=1)
        with torch.inference_mode():
            expected = theirs.model(input_ids=src, decoder_input_ids=tgt_in).logits
            found = ours.model.project(ours.model(src, torch.ones_like(src, dtype=torch.bool), tgt_in))
        errors = (found - expected).abs()
        largest = max(largest, errors.max().item())
        relative.append((errors / expected.abs()).median().item())
    return largest, sorted(relative)[len(relative) // 2]


def their_translations(
    theirs: Pretrained, ours: Bundle, sources: Sequence[list[int]], beam_size: int
) -> Iterator[tuple[str, float] | None]:
    """Translate with transformers, without the tokens that we never choose.

    Yields:
        Each translation and its score, which is 0 for greedy search; None if it has no end.
    """
    tokenizer, prefix = ours.tokenizer, ours.tokenizer.prefixes.tgt
    options: dict[str, Any] = {"forced_bos_token_id": prefix[0]} if prefix else {}
    options |= {"suppress_tokens": tokenizer.special_ids.never, "max_new_tokens": N_NEW + len(prefix)}
    options |= {"num_beams": beam_size, "length_penalty": 1.0, "return_dict_in_generate": True, "output_scores": True}
    pad, eos = tokenizer.special_ids.pad, tokenizer.special_ids.eos
    for start in range(0, len(sources), BATCH):
        batch = sources[start : start + BATCH]
        width = max(map(len, batch))
        ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in batch])
        mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in batch])
        output = theirs.model.generate(input_ids=ids, attention_mask=mask, **options)
        scores = output.sequences_scores.tolist() if beam_size > 1 else [0.0] * len(batch)
        for row, score in zip(output.sequences.tolist(), scores, strict=True):
            yield (tokenizer.decode(row), score) if eos in row[1:] else None


def our_translations(
    path: Path, theirs: Pretrained, texts: Sequence[str], beam_size: int
) -> Iterator[tuple[str, float]]:
    """Translate with the imported model; yields each translation and its score as transformers would compute it."""
    src_lang, tgt_lang = theirs.languages
    options: dict[str, Any] = {"engine": "torch", "beam_size": beam_size, "max_length": N_NEW}
    options |= {"max_length_offset": N_NEW, "src_lang": src_lang, "tgt_lang": tgt_lang}
    n_forced = int(tgt_lang is not None)
    for hypotheses in Translator.load([path], raw=True, **options).translate(texts):
        yield hypotheses[0].text, hypotheses[0].score / (n_forced + 1)  # see LengthPenalty


def compare(kind: str, seed: int, texts: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Import a model, and return its row of the table."""
    (folder / "theirs").mkdir()
    theirs = KINDS[kind](folder / "theirs", seed)
    make_ends_likely(theirs.model)
    theirs.model.save_pretrained(folder / "theirs")
    write_model(read_model(str(folder / "theirs"), LanguagePair("en", "de")), folder)
    path = folder / "model.safetensors"
    ours = load_bundle(path).toward(*theirs.languages)
    ids = their_ids(theirs, texts)
    n_same = sum(a == b for a, b in zip(ours.tokenizer.encode_src(list(texts)), ids, strict=True))
    usable = [
        i for i, src_ids in enumerate(ids) if texts[i].strip() and len(src_ids) < SIZES["max_position_embeddings"]
    ]
    sources = [ids[i] for i in usable]
    largest, relative = logit_errors(theirs, ours, sources[:200])
    shares: list[str] = []
    for beam_size in (1, 4):
        expected = their_translations(theirs, ours, sources, beam_size)
        found = our_translations(path, theirs, [texts[i] for i in usable], beam_size)
        pairs = [(a, b) for a, b in zip(expected, found, strict=True) if a is not None]
        gains = [b[1] - a[1] for a, b in pairs if a[0] != b[0]]
        shares.append(f"{len(pairs) - len(gains):,} of {len(pairs):,}")
    shares += [str(sum(gain > 0 for gain in gains)), str(sum(gain <= 0 for gain in gains))]
    return kind, str(seed), f"{n_same:,} of {len(texts):,}", f"{largest:.1e}", f"{relative:.1e}", *shares


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*", metavar="FILES", help="texts, compressed or not")
    parser.add_argument("--lines", type=int, default=2_000, help="lines to compare")
    parser.add_argument("--seeds", type=int, default=3, help="models of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS), help="the kinds to compare")
    arguments = parser.parse_args()
    texts = lines_of(arguments.files, arguments.lines)
    rows = []
    for kind, seed in itertools.product(arguments.kinds, range(1, arguments.seeds + 1)):
        with tempfile.TemporaryDirectory() as folder:
            rows.append(compare(kind, seed, texts, Path(folder)))
        print("\t".join(rows[-1]), file=sys.stderr, flush=True)
    print(as_text(HEADER, rows))


if __name__ == "__main__":
    run_program(main)
