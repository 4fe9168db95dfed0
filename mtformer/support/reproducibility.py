"""Seeds derived from (seed, step, rank, …), so that randomness does not depend on earlier draws; versions and code."""

import hashlib
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np


def derive_seed(*numbers: int) -> int:
    """Mix numbers into one seed of 31 bits; neighbouring numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)


@cache
def versions() -> dict[str, str]:
    """Return the versions of all that a result depends on."""
    packages = ("mtformer", "torch", "numpy", "sentencepiece", "sacrebleu")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}


def digest_of_code() -> str:
    """Return the digest of mtformer's modules, which tells a changed copy from the version that it says it is."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for module in filter(Path.is_file, sorted(package.rglob("*.py"))):  # editors lock files with links to nowhere
        digest.update(module.relative_to(package).as_posix().encode() + module.read_bytes())
    return digest.hexdigest()
