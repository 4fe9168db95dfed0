"""What happens to a text before the model sees it, and to its translation afterwards.

What is exported here does not import numpy, which takes longer than a sentence; ``alignment`` and ``pairs`` do.
"""

from mtformer.pipeline.preparation import Plan, Preparation, Prepared, make_plan
from mtformer.pipeline.translation import Translation

__all__ = [
    "Plan",
    "Preparation",
    "Prepared",
    "Translation",
    "make_plan",
]
