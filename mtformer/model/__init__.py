"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), "the paper" below.

One legend of shapes holds in this room: B batch, S source length, T target length, H heads, D ``d_model``,
Dh = D / H, V vocabulary. One mask convention, that of ``F.scaled_dot_product_attention``: True = may attend.
"""
