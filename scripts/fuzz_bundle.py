"""Load spoiled copies of a bundle: each must load, or be refused with a UserError, in bounded memory.

usage: python scripts/fuzz_bundle.py BUNDLE [--minutes M | --cases N] [--seed S]

Each case is determined by its number, which a failure names. Most cases carry a digest of their spoiled contents, so
that they get past the comparison of digests. What loads must also translate a sentence.
"""

import argparse
import json
import os
import random
import resource
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from program import run_program
from safetensors import safe_open
from safetensors.torch import save_file

from mtformer.bundle.format import digest, load_bundle
from mtformer.support.errors import MtformerError, UserError
from mtformer.translate.translator import Translator

MAX_MEMORY = 256 * 2**20  # bytes beyond those that the process has at the start
CASES_PER_PROCESS = 200
JUNK: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 3, 7, 255, 4096, 2**16, 2**20, 2**31, 2**32, 2**63, 2**64, 10**30, -(2**63)),
    *(
        0.5,
        -0.0,
        1e-320,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "0",
        "relu",
        "\0",
        "🙂",
        "a" * 10_000,
        "../../etc",
        "\x1b[2J",
    ),
    *([], [[]], [0] * 1000, {}, {"a": 1}, {"": None}),
)
DTYPES = ("F64", "F32", "F16", "BF16", "I64", "I32", "U8", "BOOL", "F8_E4M3", "F4", "C64", "", "f32")

Json = dict[str, Any]


def spoil(content: bytes, number: int, path: Path) -> str:
    """Write case ``number`` to ``path`` and return the kind of damage."""
    rng = random.Random(number)
    kind, change = rng.choice(KINDS)
    path.write_bytes(content)
    change(rng, path)
    if rng.random() < 0.8:
        renew_digest(path)
    return kind


def read_tensors(path: Path) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Return the tensors of a safetensors file, which may be changed, and its metadata."""
    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
        return tensors, dict(file.metadata() or {})


def renew_digest(path: Path) -> None:
    """Give the file at ``path`` the digest of its contents, where it is intact enough to have one."""
    try:
        tensors, metadata = read_tensors(path)
        metadata.pop("digest", None)
        value = digest(metadata, tensors)
    except Exception:
        return

    def renew(header: Json) -> None:
        header.setdefault("__metadata__", {})["digest"] = value

    edit_file_header(path, renew)


def edit_file_header(path: Path, change: Callable[[Json], object]) -> None:
    """Change the JSON at the start of a safetensors file, and leave the bytes of the tensors as they are."""
    content = path.read_bytes()
    [size] = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + size])
    change(header)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size :])


def spoil_bytes(rng: random.Random, path: Path) -> None:
    """Overwrite, insert, remove or cut off bytes anywhere, more often near the start."""
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 1, 2, 10, 100))):
        place = rng.randrange(len(content)) if rng.random() < 0.5 else rng.randrange(min(len(content), 4096))
        action = rng.randrange(4)
        if action == 0:
            content[place] ^= 1 << rng.randrange(8)
        elif action == 1:
            content[place : place + 1] = rng.randbytes(rng.randrange(1, 9))
        elif action == 2:
            del content[place : place + rng.randrange(1, 100)]
        elif rng.random() < 0.1:
            del content[place:]
        if not content:
            break
    path.write_bytes(content)


def spoil_file_header(rng: random.Random, path: Path) -> None:
    """Change types, shapes, places and names in the header of the safetensors file."""

    def change(header: Json) -> None:
        for _ in range(rng.choice((1, 1, 2, 5))):
            name = rng.choice(list(header))
            entry = header[name]
            action = rng.randrange(6)
            if action == 0 or not isinstance(entry, dict):
                header[rng.choice([*header, "new", "model.x"])] = deepcopy(rng.choice([*JUNK, entry]))
            elif action == 1:
                entry["dtype"] = rng.choice(DTYPES)
            elif action == 2:
                entry["shape"] = rng.choice(([], [0], [1], [2**62, 4], [-1], [2**32, 2**32], [rng.randrange(10_000)]))
            elif action == 3:
                entry["data_offsets"] = [rng.randrange(60_000), rng.randrange(60_000)]
            elif action == 4:
                del header[name]
            else:
                spoil_json(rng, header)

    edit_file_header(path, change)


def spoil_bundle_header(rng: random.Random, path: Path) -> None:
    """Change the bundle's own header, or the JSON text of it."""

    def change(header: Json) -> None:
        metadata = header["__metadata__"]
        if rng.random() < 0.1:
            metadata[rng.choice([*metadata, "new"])] = rng.choice(("", "{}", "[" * 50_000, "mtformer-bundle-9", "\0"))
        else:
            ours = json.loads(metadata["header"])
            for _ in range(rng.choice((1, 1, 1, 2, 5))):
                spoil_json(rng, ours)
            metadata["header"] = json.dumps(ours)
        if rng.random() < 0.1:
            text = metadata.get("header", "")
            place = rng.randrange(len(text) + 1)
            metadata["header"] = text[:place] + rng.choice(("", ",", "}", '"', "NaN", "\\u0000")) + text[place + 1 :]

    edit_file_header(path, change)


def spoil_json(rng: random.Random, value: Any) -> None:
    """Change one place inside ``value``, which is an object or a list."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(value[key], dict | list) and value[key] and rng.random() < 0.85:
            value = value[key]
            continue
        if rng.random() < 0.2:
            del value[key]
        elif isinstance(value[key], int) and rng.random() < 0.5:
            value[key] = value[key] * 2 + rng.randrange(-2, 3)
        else:
            value[key] = deepcopy(rng.choice(JUNK))  # a later change must not reach into JUNK
        return


def spoil_tensors(rng: random.Random, path: Path) -> None:
    """Change values, types, shapes and names of tensors; the file itself stays intact."""
    tensors, metadata = read_tensors(path)
    for _ in range(rng.choice((1, 1, 2, 5))):
        name = rng.choice(list(tensors))
        tensor = tensors[name]
        action = rng.randrange(6)
        if action == 0 and tensor.numel():
            value = rng.choice((float("nan"), float("inf"), -float("inf"), 3e38, 1e-45, 0.0))
            if tensor.is_floating_point():
                tensor.view(-1)[rng.randrange(tensor.numel())] = value
        elif action == 1:
            tensors[name] = tensor.to(
                rng.choice((torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.bool))
            )
        elif action == 2:
            tensors[name] = tensor.reshape(rng.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1))))
        elif action == 3:
            tensors[name] = tensor.reshape(-1)[: rng.randrange(tensor.numel() + 1)].clone()
        elif action == 4:
            del tensors[name]
        else:
            tensors[rng.choice(("model.x", "x", "tokenizer.tgt", name + "2", rng.choice(list(tensors))))] = (
                tensor.clone()
            )
        if not tensors:
            break
    save_file(tensors, path, metadata)


def spoil_tokenizer(rng: random.Random, path: Path) -> None:
    """Change bytes of the SentencePiece model."""
    tensors, metadata = read_tensors(path)
    model = bytearray(tensors["tokenizer.src"].numpy().tobytes())
    for _ in range(rng.choice((1, 1, 2, 5, 50))):
        place = rng.choice((rng.randrange(len(model)), len(model) - 1 - rng.randrange(300)))
        action = rng.randrange(4)
        if action <= 1:
            model[place] = rng.randrange(256)
        elif action == 2:
            model[place:place] = rng.randbytes(rng.randrange(1, 20))
        else:
            del model[place : place + rng.randrange(1, 20)]
    tensors["tokenizer.src"] = torch.frombuffer(model, dtype=torch.uint8)
    save_file(tensors, path, metadata)


KINDS: tuple[tuple[str, Callable[[random.Random, Path], None]], ...] = (
    ("bytes", spoil_bytes),
    ("file header", spoil_file_header),
    ("bundle header", spoil_bundle_header),
    ("bundle header", spoil_bundle_header),
    ("tensors", spoil_tensors),
    ("tokenizer", spoil_tokenizer),
)


def try_case(content: bytes, number: int, folder: Path) -> tuple[str, str]:
    """Load case ``number`` and return the kind of damage and the outcome.

    Raises:
        AssertionError: the error is not a clean one.
        Exception: anything that is not a UserError.
    """
    path = folder / "spoiled.safetensors"
    kind = spoil(content, number, path)
    try:
        bundle = load_bundle(path)
    except UserError as error:
        reason = str(error).removeprefix(f"{path}: ")
        assert reason and "\n" not in reason, reason
        assert len(reason) < 400, reason
        assert reason.isprintable(), reason
        assert "alloc" not in reason and "Traceback" not in reason, reason
        return kind, "refused"
    quick = {"beam_size": 1, "max_length_factor": 1.0, "max_length_offset": 5}
    translator = Translator.load(bundle, "cpu", raw=True).with_options(**quick)
    try:
        [[translation]] = translator.translate(["Where is a small green bird?"])
    except MtformerError:  # values that are finite, but overflow
        return kind, "loaded, does not translate"
    assert "\n" not in translation.text
    return kind, "loaded"


def run_process(content: bytes, first: int, folder: Path) -> list[int]:
    """Try ``CASES_PER_PROCESS`` cases in a process with little memory; return the numbers of those that failed."""
    log = folder / "log"
    child = os.fork()
    if child == 0:
        limit_memory()
        failed = 0
        with log.open("w", encoding="utf-8") as file:
            for number in range(first, first + CASES_PER_PROCESS):
                print(number, end="\t", file=file, flush=True)
                try:
                    outcome = "\t".join(try_case(content, number, folder))
                except BaseException as error:
                    failed = 1
                    outcome = f"FAILED\t{type(error).__name__}: {error}".replace("\n", " ")
                print(outcome, file=file, flush=True)
        os._exit(failed)
    _, status = os.waitpid(child, 0)
    lines = [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()]
    if os.WIFSIGNALED(status):
        lines[-1] = [lines[-1][0], "FAILED", f"signal {os.WTERMSIG(status)}"]
    for case, kind, outcome in lines:
        COUNTS[kind, outcome] += 1
        if kind == "FAILED":
            print(f"case {case}: {outcome[:300]}", file=sys.stderr, flush=True)
    return [int(case) for case, kind, _ in lines if kind == "FAILED"]


COUNTS: Counter[tuple[str, str]] = Counter()


def limit_memory() -> None:
    """Let this process allocate ``MAX_MEMORY`` more than it has."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    used = next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmData"))
    resource.setrlimit(resource.RLIMIT_DATA, (used + MAX_MEMORY, used + MAX_MEMORY))


def main() -> None:
    """Try cases until the time is over, and print how many ended how."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--cases", type=int, help="stop after about this many cases")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    content = arguments.bundle.read_bytes()
    end = time.monotonic() + 60 * arguments.minutes
    failed: list[int] = []
    first = number = arguments.seed * 1_000_000
    with TemporaryDirectory() as folder:
        while time.monotonic() < end and (arguments.cases is None or number - first < arguments.cases):
            failed += run_process(content, number, Path(folder))
            number += CASES_PER_PROCESS
    for (kind, outcome), count in sorted(COUNTS.items()):
        print(f"{count:8,}  {kind:<14} {outcome}")
    print(f"{number - first:8,}  cases, {len(failed)} failed: {failed[:20]}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    run_program(main)
