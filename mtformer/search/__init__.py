"""From the source to hypotheses: greedy and beam search over anything that predicts the next piece.

Shapes: B sentences, K beam size, N rows (B in greedy search, B·K in beam search), V vocabulary.
"""

from mtformer.search.beam import beam_search
from mtformer.search.decoder import Decoder, TransformerDecoder
from mtformer.search.greedy import greedy_search
from mtformer.search.hypothesis import Hypothesis, length_penalty

__all__ = ["Decoder", "Hypothesis", "TransformerDecoder", "beam_search", "greedy_search", "length_penalty"]
