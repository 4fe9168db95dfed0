"""From source to hypotheses: greedy and beam search with anything that predicts the next token.

Shapes: B sentences of a batch, n of them not ended yet, K beam size, N = n·K rows, V vocabulary, t length of the
prefixes, BOS included.
"""
