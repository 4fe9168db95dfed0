"""What happens to a text before the model sees it, and to its translation afterwards."""

from mtformer.pipeline.alignment import Alignment, Link
from mtformer.pipeline.pairs import Pair, Pairing, align
from mtformer.pipeline.preparation import Plan, Preparation, Prepared, make_plan
from mtformer.pipeline.translation import Translation

__all__ = [
    "Alignment",
    "Link",
    "Pair",
    "Pairing",
    "Plan",
    "Preparation",
    "Prepared",
    "Translation",
    "align",
    "make_plan",
]
