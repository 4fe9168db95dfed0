"""Measure the import of a large model of many languages: time, memory, and how soon it translates.

The model has the shape of NLLB with 600 million parameters, random weights, and a BPE vocabulary of random tokens in
two scripts. Each row is a process of its own. Memory is the most that a process has resident, the pages of the files
that it maps included, as a multiple of the size of the weights.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from mtformer import Translator
from mtformer.engines.ctranslate2.cached import converted
from mtformer.export.names import names_in_transformers
from mtformer.model.architecture import Architecture, SpecialIds
from mtformer.model.weights import without_weights
from mtformer.support.terminal import as_text
from mtformer.text.tokenizer.sentencepiece_file import BPE, Kind, Token, make_model
from mtformer.text.tokenizer.tokenizer import Tokenizer

HEADER = ("command", "seconds", "processor seconds", "memory", "MB written")
ALPHABETS = ("abcdefghijklmnopqrstuvwxyz", "абвгдежзийклмнопрстуфхцчшщыьэюя")
LANGUAGES = ("eng_Latn", "deu_Latn", "rus_Cyrl", "ukr_Cyrl")
N_TOKENS = 256_206
N_DECODED, N_NEW = 8, 20  # sentences, and the tokens of their translations
SHAPE: dict[str, Any] = {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "n_encoder_layers": 12, "n_decoder_layers": 12}


def pieces(n: int) -> Iterator[str]:
    """Yield ``n`` tokens, each merged from two before it."""
    draw = random.Random(1)
    of_script = [["▁", *alphabet] for alphabet in ALPHABETS]
    found = list(dict.fromkeys(token for tokens in of_script for token in tokens))
    seen = set(found)
    yield from found
    while len(seen) < n:
        tokens = draw.choice(of_script)
        left, right = draw.choice(tokens), draw.choice(tokens[:1_000]).removeprefix("▁")  # the first ones are short
        if right and len(left + right) <= 16 and left + right not in seen:
            tokens.append(left + right)
            seen.add(left + right)
            yield left + right


def write_model(folder: Path, scale: int) -> int:
    """Write a model of transformers, narrower by a factor; return the bytes of its weights."""
    n_own = N_TOKENS // scale - 4 - len(LANGUAGES) - 1
    tokens = [Token("<unk>", kind=Kind.UNKNOWN), Token("<s>", kind=Kind.CONTROL), Token("</s>", kind=Kind.CONTROL)]
    tokens += [Token(text, float(-rank)) for rank, text in enumerate(pieces(n_own))]
    model = make_model(tokens, algorithm=BPE, character_map=b"", rule="")
    (folder / "sentencepiece.bpe.model").write_bytes(model)
    shape = SHAPE | {"d_model": 1024 // scale, "d_ff": 4096 // scale}
    size = N_TOKENS // scale
    architecture = Architecture(
        **shape,
        norm="pre",
        activation="relu",
        positions="fairseq",
        tie_embeddings=True,
        joint_vocab=True,
        src_vocab_size=size,
        tgt_vocab_size=size,
        special_ids=SpecialIds(pad=1, unk=3, bos=0, eos=2, start=2),
        max_length=1024,
    )
    weights = {}
    for name, parameter in without_weights(architecture).named_parameters():
        theirs = ["model.shared.weight"] if "embedding" in name else names_in_transformers(name)
        for part, chunk in zip(theirs, parameter.chunk(len(theirs)), strict=True):
            drawn = torch.randn(chunk.shape) * 0.02
            weights[part] = drawn + 1 if name.endswith("norm.weight") else drawn
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config: dict[str, object] = {
        **{"model_type": "m2m_100", "vocab_size": size, "d_model": shape["d_model"], "scale_embedding": True},
        **{"activation_function": "relu", "max_position_embeddings": 1024, "pad_token_id": 1, "eos_token_id": 2},
        "decoder_start_token_id": 2,
    }
    for stack in ("encoder", "decoder"):
        config |= {f"{stack}_layers": 12, f"{stack}_attention_heads": 16, f"{stack}_ffn_dim": shape["d_ff"]}
    (folder / "config.json").write_text(json.dumps(config))
    settings = {"additional_special_tokens": LANGUAGES, "mask_token": "<mask>"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return (folder / "model.safetensors").stat().st_size


def write_text(path: Path) -> None:
    """Write 20,000 lines of words in the first script, which have the most frequent tokens."""
    draw, words = random.Random(2), [text.replace("▁", "") for text in pieces(40_000) if text[-1] in ALPHABETS[0]]
    path.write_text("".join(" ".join(draw.choices(words, k=12)) + "\n" for _ in range(20_000)), encoding="utf-8")


def measure(folder: Path, n_bytes: int, name: str, *arguments: str) -> tuple[str, ...]:
    """Run a command in a process, and return its row of the table."""
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    before = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "mtformer", *arguments], cwd=folder, env=environment, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - before
    if status:
        raise SystemExit(f"{' '.join(arguments)} failed")
    memory = f"{usage.ru_maxrss * 1024 / n_bytes:.2f} ×"
    written = folder / arguments[-1] / "model.safetensors"
    size = f"{written.stat().st_size / 1e6:,.0f}" if arguments[0] == "import" else ""
    return name, f"{seconds:.1f}", f"{usage.ru_utime + usage.ru_stime:.1f}", memory, size


def measure_decoding(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the processor seconds that each program needs to translate a few sentences with 4 beams, loading aside.

    With random weights no translation ends by itself, so that all have the same length.
    """
    torch.set_num_threads(1)
    lines = (folder / "text.txt").read_text(encoding="utf-8").splitlines()[:N_DECODED]
    texts = [" ".join(line.split()[:5]) for line in lines]
    bundle = folder / "ours" / "model.safetensors"
    for name, prepare in (
        ("mtformer, torch", partial(_with_ours, bundle, "torch")),
        ("mtformer, CTranslate2", partial(_with_ours, bundle, "ctranslate2")),
        ("CTranslate2", partial(_with_ctranslate2, bundle)),
        ("transformers", partial(_with_transformers, folder / "theirs", bundle)),
    ):
        translate = prepare(texts)
        before = time.process_time()
        translate()
        yield name, f"{time.process_time() - before:.1f}"
        del translate


def _with_ours(bundle: Path, engine: str, texts: Sequence[str]) -> Callable[[], object]:
    options: dict[str, Any] = {"beam_size": 4, "max_length": N_NEW, "src_lang": "en", "tgt_lang": "de", "raw": True}
    return partial(Translator.load(bundle, engine=engine, **options).translate, texts)


def _with_ctranslate2(bundle: Path, texts: Sequence[str]) -> Callable[[], object]:
    import ctranslate2

    folder = converted(bundle, "float32").path
    tokenizer = load_tokenizer(bundle)
    model = ctranslate2.Translator(str(folder), intra_threads=1, inter_threads=1)
    sources = [tokenizer.src_tokens(row) for row in tokenizer.encode_src(texts)]
    prefixes = [tokenizer.tgt_tokens(tokenizer.prefixes.tgt)] * len(texts)
    limit = N_NEW + len(prefixes[0])
    return partial(model.translate_batch, sources, prefixes, beam_size=4, max_decoding_length=limit)


def _with_transformers(folder: Path, bundle: Path, texts: Sequence[str]) -> Callable[[], object]:
    from transformers import M2M100ForConditionalGeneration

    tokenizer = load_tokenizer(bundle)
    rows, pad, [forced] = tokenizer.encode_src(texts), tokenizer.special_ids.pad, tokenizer.prefixes.tgt
    width = max(map(len, rows))
    ids = torch.tensor([[*row, *[pad] * (width - len(row))] for row in rows])
    search: dict[str, Any] = {"num_beams": 4, "max_new_tokens": N_NEW + 1, "forced_bos_token_id": forced}
    model = M2M100ForConditionalGeneration.from_pretrained(folder).eval()
    return partial(model.generate, ids, attention_mask=(ids != pad).long(), **search)


def load_tokenizer(bundle: Path) -> Tokenizer:
    """Return the tokenizer of a bundle for the direction that is measured."""
    exported = converted(bundle, "float32")
    return exported.header.toward(exported.tokenizer, "en", "de")[1]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=1, help="divide the width and the vocabulary by this")
    scale = parser.parse_args().scale
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "theirs").mkdir()
        n_bytes = write_model(folder / "theirs", scale)
        write_text(folder / "text.txt")
        translate = (
            "translate",
            "abba",
            "--model",
            "ours",
            "--from",
            "en",
            "--to",
            "de",
            "--max-length",
            "10",
            "--raw",
        )
        chosen = ("import", "theirs", "--languages", "en,de")
        rows = []
        for title, arguments in (
            ("import", ("import", "theirs", "--output", "ours")),
            ("translate, torch", (*translate, "--engine", "torch")),
            ("translate, CTranslate2, the first time", (*translate, "--engine", "ctranslate2")),
            ("translate, CTranslate2", (*translate, "--engine", "ctranslate2")),
            ("import --languages", (*chosen, "--output", "fewer")),
            ("import --languages --keep-vocabulary", (*chosen, "--keep-vocabulary", "text.txt", "--output", "fewest")),
        ):
            rows.append(measure(folder, n_bytes, title, *arguments))
            print("\t".join(rows[-1]), file=sys.stderr, flush=True)
        print(f"{n_bytes / 1e6:,.0f} MB of weights")
        print(as_text(HEADER, rows))
        print(as_text(("decoding", "processor seconds"), list(measure_decoding(folder))))


if __name__ == "__main__":
    main()
