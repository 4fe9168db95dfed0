"""mtformer: train a Transformer to translate, translate with it, and say how good it is."""

__version__ = "0.1.0"
