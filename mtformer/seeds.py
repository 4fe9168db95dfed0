"""Seeds derived from (seed, step, rank, …), so that randomness does not depend on what came before."""

import numpy as np


def derive_seed(*numbers: int) -> int:
    """Mix numbers into one seed of 31 bits; neighbouring numbers give unrelated seeds."""
    return int(np.random.SeedSequence(numbers).generate_state(1)[0] >> 1)
