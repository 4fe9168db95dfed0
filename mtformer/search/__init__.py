"""From source to hypotheses: greedy and beam search with anything that predicts the next token.

Shapes: B sentences of a batch, n of them not ended yet, K beam size, N = n·K rows, V vocabulary, t length of the
prefixes, BOS included.
"""

from mtformer.config import SearchOptions
from mtformer.search.beam import beam_search
from mtformer.search.decoder import Decoder, TransformerDecoder
from mtformer.search.engine import Engine, TorchEngine
from mtformer.search.greedy import greedy_search
from mtformer.search.hypothesis import Hypothesis, length_penalty, ranked
from mtformer.search.observer import Candidates, SearchObserver, SearchStep
from mtformer.search.processors import EndAtLimits, ForcePrefixes, NeverChoose, Prefixes, Processor

__all__ = [
    "Candidates",
    "Decoder",
    "EndAtLimits",
    "Engine",
    "ForcePrefixes",
    "Hypothesis",
    "NeverChoose",
    "Prefixes",
    "Processor",
    "SearchObserver",
    "SearchOptions",
    "SearchStep",
    "TorchEngine",
    "TransformerDecoder",
    "beam_search",
    "greedy_search",
    "length_penalty",
    "ranked",
]
