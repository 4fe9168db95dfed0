"""Measure the peak memory of loading a bundle, as a multiple of the file's size.

usage: python scripts/bundle_memory.py

Enlarges the bundle in tests/fixtures to about 90 MB, in fp32 and in bf16, and loads each in a process of its own.
"""

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from program import run_program
from safetensors import safe_open
from safetensors.torch import save_file

from mtformer.bundle.format import Bundle, digest, load_bundle, save_bundle
from mtformer.model.transformer import Transformer

FIXTURE = Path(__file__).parent.parent / "tests" / "fixtures" / "bundle-3.safetensors"


def enlarge(path: Path) -> None:
    """Write the fixture's bundle with a larger model of random weights."""
    small = load_bundle(FIXTURE)
    sizes = {"d_model": 640, "n_heads": 8, "d_ff": 2560, "n_encoder_layers": 2, "n_decoder_layers": 2}
    architecture = small.header.architecture.model_copy(update=sizes)
    header = small.header.model_copy(update={"architecture": architecture})
    save_bundle(path, Bundle(Transformer(architecture), small.tokenizer, header))


def halve(source: Path, path: Path) -> None:
    """Write a bundle with its weights in bf16."""
    with safe_open(source, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        metadata = dict(file.metadata())
    halved = {name: tensor.bfloat16() if name.startswith("model.") else tensor for name, tensor in tensors.items()}
    del metadata["digest"]
    save_file(halved, path, metadata | {"digest": digest(metadata, halved)})


def peak_memory() -> int:
    """Return the largest resident memory of this process so far, in bytes."""
    # Not getrusage(), whose peak is that of the parent process until this one exceeds it.
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def measure(path: Path) -> None:
    """Load the bundle at ``path`` and print how much the peak rises."""
    load_bundle(FIXTURE)  # what the first load imports and sets up does not depend on the size of the file
    before = peak_memory()
    bundle = load_bundle(path)
    size, used = path.stat().st_size, peak_memory() - before
    del bundle
    print(f"{path.stem}: {size / 2**20:.1f} MiB on disk, {used / 2**20:.1f} MiB of memory, {used / size:.2f} times")


def main() -> None:
    """Measure both files, or the one that is given."""
    if sys.argv[1:]:
        measure(Path(sys.argv[1]))
        return
    torch.manual_seed(1)
    with TemporaryDirectory() as folder:
        single, half = Path(folder) / "fp32.safetensors", Path(folder) / "bf16.safetensors"
        enlarge(single)
        halve(single, half)
        for path in (single, half):
            subprocess.run([sys.executable, __file__, path], check=True)


if __name__ == "__main__":
    run_program(main)
