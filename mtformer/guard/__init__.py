"""The guard: what may be wrong with a translation, seen from the two texts alone, and a second attempt at it."""

from mtformer.guard.checks import REPAIRED_NUMBERS, Guard
from mtformer.guard.flags import FlagCounter
from mtformer.guard.retry import guarded, stricter

__all__ = ["REPAIRED_NUMBERS", "FlagCounter", "Guard", "guarded", "stricter"]
