"""Seeds derived from (seed, step, rank, …), so that randomness does not depend on earlier draws; versions."""

import platform
from functools import cache
from importlib.metadata import version

import numpy as np


def derive_seed(*numbers: int) -> int:
    """Mix numbers into one seed of 31 bits; neighbouring numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)


@cache
def versions() -> dict[str, str]:
    """Return the versions of all that a result depends on."""
    packages = ("mtformer", "torch", "numpy", "sentencepiece", "sacrebleu")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}
