"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), "the paper" below.

Shapes in this package: B batch, S source length, T target length, H heads, D ``d_model``,
Dh = D / H, V vocabulary. Masks follow ``F.scaled_dot_product_attention``: True = may attend.
"""
