"""How one translation comes about: a trace of every step, in the terminal and as a page."""

from mtformer.explain.changes import Changes, compare
from mtformer.explain.trace import Attention, Block, Node, Step, Token, Trace, Tree

__all__ = ["Attention", "Block", "Changes", "Node", "Step", "Token", "Trace", "Tree", "compare"]
