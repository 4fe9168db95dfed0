"""A trace: the record of translating one sentence, as plain data.

Layers, heads, steps and ranks count from 1; positions in lists of tokens and ids of nodes count from 0.
Shapes: H heads, S source tokens, T target tokens (EOS included), D ``d_model``, V target vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from mtformer.explain.plain import to_plain
from mtformer.support.errors import UserError

FORMAT = 1
Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Token:
    """A token of the vocabulary.

    Attributes:
        text: as the tokenizer spells it, ``▁`` for the space before a word.
        id: its place in the vocabulary.
        kind: ``byte`` for one byte of a character without a token of its own; ``special`` for BOS, EOS and the like.
        character: the character that a byte and its neighbours spell.
    """

    text: str
    id: int
    kind: Literal["word", "special", "byte"]
    character: str | None = None

    @property
    def printable(self) -> str:
        """The text with a dot for each character that a terminal cannot print."""
        return "".join(character if character.isprintable() else "·" for character in self.text)

    @property
    def label(self) -> str:
        """The printable text, without the mark of a space before it where it would only take room."""
        return self.printable.removeprefix("▁") or "▁"


@dataclass(frozen=True)
class Source:
    """The text and its tokens, EOS last."""

    text: str
    tokens: tuple[Token, ...]


@dataclass(frozen=True)
class Target:
    """The best translation, with its log probability and its score (the log probability over the length penalty)."""

    text: str
    tokens: tuple[Token, ...]
    log_prob: float
    score: float


@dataclass(frozen=True)
class Attention:
    """The weights of one attention.

    Attributes:
        kind: of the encoder, of the decoder (to itself), or cross-attention from the decoder to the encoder's output.
        layer: the layer, from 1.
        name: the module's name in the model.
        weights: (H, Q, K), each row summing to 1. Queries of ``decoder`` and ``cross`` are the decoder's input,
            so query t predicts target token t.
    """

    kind: Kind
    layer: int
    name: str
    weights: np.ndarray

    def of_head(self, head: int | None) -> np.ndarray:
        """Return the weights (Q, K) of a head, from 1; None for the mean of all."""
        mean: np.ndarray = self.weights.mean(axis=0) if head is None else self.weights[head - 1]
        return mean


@dataclass(frozen=True)
class Node:
    """A candidate that the search considered: a prefix and one more token.

    Attributes:
        id: its place in the tree's nodes; 0 is BOS.
        parent: the node of the prefix; None for BOS.
        step: the decoding step, from 1; 0 for BOS.
        token: the token appended.
        log_prob: of the token.
        total: of the whole prefix.
        rank: among the candidates of its step, by ``total``.
        fate: ``expanded`` became a beam and was continued; ``finished`` ended in EOS; ``pruned`` was dropped;
            ``stopped`` was a beam when the search ended, which it did because finished ones scored better.
        score: of a finished translation.
    """

    id: int
    parent: int | None
    step: int
    token: Token
    log_prob: float
    total: float
    rank: int
    fate: Literal["expanded", "finished", "pruned", "stopped"]
    score: float | None = None


@dataclass(frozen=True)
class Finished:
    """A finished translation and the arithmetic of its score.

    Attributes:
        node: the id of its last node, EOS.
        rank: among all finished ones, by score.
        text: detokenized.
        length: tokens, EOS included.
        log_prob: the sum over its tokens.
        penalty: the length penalty (Wu et al. 2016).
        score: ``log_prob / penalty``.
        returned: whether the search returned it.
    """

    node: int
    rank: int
    text: str
    length: int
    log_prob: float
    penalty: float
    score: float
    returned: bool


@dataclass(frozen=True)
class Tree:
    """All that the search considered, in order of steps, and its finished hypotheses, best first."""

    nodes: tuple[Node, ...]
    finished: tuple[Finished, ...]

    def path(self, node: Node) -> list[Node]:
        """Return the nodes from the first token to ``node``, BOS left out."""
        return path_to(node, self.nodes)


def path_to(node: Node, nodes: Sequence[Node]) -> list[Node]:
    """Return those of ``nodes``, all of a tree, that lead from the first token to ``node``, BOS left out."""
    path: list[Node] = []
    while node.parent is not None:
        path.append(node)
        node = nodes[node.parent]
    return path[::-1]


@dataclass(frozen=True)
class Candidate:
    """A possible next token, with the model's log probability for it and its rank; ``forced`` by a given prefix."""

    token: Token
    log_prob: float
    probability: float
    rank: int
    forced: bool = False


@dataclass(frozen=True)
class Step:
    """One decoding step of the best translation.

    Attributes:
        number: from 1. The decoder's input is BOS and the ``number - 1`` tokens before.
        candidates: the likeliest tokens, best first, the chosen one always among them.
        chosen: the place in ``candidates`` of the token that the translation continues with.
        entropy_bits: of the whole distribution.
        margin: the log probability of the chosen token less that of the best other; negative if that one is likelier.
        instead: what the model would have said with the best other token, decoded greedily from there; None where it
            hardly hesitates.
    """

    number: int
    candidates: tuple[Candidate, ...]
    chosen: int
    entropy_bits: float
    margin: float
    instead: str | None = None

    @property
    def choice(self) -> Candidate:
        """The candidate that was chosen."""
        return self.candidates[self.chosen]

    @property
    def other(self) -> Candidate:
        """The best candidate that was not chosen."""
        return next(c for place, c in enumerate(self.candidates) if place != self.chosen)


@dataclass(frozen=True)
class Block:
    """A matrix as the model computed it for this sentence.

    Attributes:
        stack: where in the model.
        side: whose tokens its queries or rows are.
        layer: the layer, from 1; None outside layers.
        sublayer: the part of the layer that it belongs to.
        name: as in "scores".
        formula: how it is computed from those before it.
        shape: of the whole matrix.
        rows: whose tokens the second-to-last dimension stands for; None if it stands for none.
        columns: what the last dimension stands for: tokens, features, or each step's ``candidates``.
        values: the numbers. Of logits and probabilities, which have V columns, those of the candidates of each step.
    """

    stack: Literal["embedding", "encoder", "decoder", "output"]
    side: Literal["source", "target"]
    layer: int | None
    sublayer: Literal["self_attention", "cross_attention", "feed_forward", "norm"] | None
    name: str
    formula: str
    shape: tuple[int, ...]
    rows: Literal["source", "target"] | None
    columns: Literal["source", "target", "features", "candidates"]
    values: np.ndarray


@dataclass(frozen=True)
class WhyNotStep:
    """How a word stood at one step: the first of its tokens that the translation does not have there.

    Attributes:
        step: from 1.
        token: that token.
        rank: of the token, among all.
        log_prob: of the token.
        gap: the log probability of the chosen token less that of this one.
        node: where the search considered it, if it did.
    """

    step: int
    token: Token
    rank: int
    log_prob: float
    gap: float
    node: int | None


@dataclass(frozen=True)
class Sentence:
    """A sentence about a translation, which a page may say in another language.

    Attributes:
        template: in English, with the names of values in braces.
        values: for the names; a template may leave some out.
    """

    template: str
    values: dict[str, str | int]

    def __str__(self) -> str:
        """Return the English sentence."""
        return self.template.format(**self.values)


@dataclass(frozen=True)
class WhyNot:
    """Why a word is not in the translation.

    Attributes:
        word: as asked for.
        tokens: as it would stand in the translation.
        found: whether the translation contains it.
        message: the sentences in English.
        sentences: the answer.
        steps: where it was available, likeliest first, without those that a prefix forced; none if it is found.
        pruned_at: the step at which the last beam that contained it was pruned; None if it was never in a beam, or if
            one was finished or left at the end.
        text: the best translation that contains it; None if the chosen one does, or if no other was found.
        score: of that translation.
    """

    word: str
    tokens: tuple[Token, ...]
    found: bool
    message: str
    sentences: tuple[Sentence, ...]
    steps: tuple[WhyNotStep, ...]
    pruned_at: int | None = None
    text: str | None = None
    score: float | None = None


@dataclass(frozen=True, repr=False)
class AttentionTrace:
    """How a model translated one sentence, as far as its attention shows it."""

    source: Source
    target: Target
    bos: Token
    attentions: tuple[Attention, ...] = field(metadata={"key": "attention"})

    @property
    def decoder_input(self) -> tuple[Token, ...]:
        """The target tokens shifted right: BOS first, EOS left out."""
        return (self.bos, *self.target.tokens[:-1])

    def __repr__(self) -> str:
        """Return the sentence and its translation, without the thousands of numbers of the fields."""
        return f"<{type(self).__name__} of {self.source.text!r}: {self.target.text!r}>"

    def attention(self, kind: Kind, *, layer: int, head: int | None = None) -> np.ndarray:
        """Return the weights (Q, K) of one head, or without ``head`` the mean of all.

        Args:
            kind: ``encoder``, ``decoder`` or ``cross``.
            layer: from 1.
            head: from 1.

        Raises:
            UserError: there is no such layer or head.
        """
        return self.find_attention(kind, layer, head).of_head(head)

    def find_attention(self, kind: Kind, layer: int, head: int | None = None) -> Attention:
        """Return the attention of ``kind`` in ``layer``, which must have ``head``.

        Raises:
            UserError: there is no such layer or head.
        """
        if kind not in KINDS:
            raise UserError(f"there is no attention {kind!r}; there are {', '.join(KINDS)}")
        of_kind = {attention.layer: attention for attention in self.attentions if attention.kind == kind}
        require_head(kind, layer, head, n_layers=max(of_kind), n_heads=len(of_kind[1].weights))
        return of_kind[layer]


@dataclass(frozen=True, repr=False)
class Trace(AttentionTrace):
    """How a model translated one sentence."""

    tree: Tree
    steps: tuple[Step, ...]
    matrices: tuple[Block, ...]
    why_not: tuple[WhyNot, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the trace as JSON values, by the fields of these classes."""
        plain: dict[str, Any] = to_plain(self)
        for step in plain["steps"]:
            step["input"] = list(range(step["number"]))
        return plain


def require_head(kind: Kind, layer: int, head: int | None, *, n_layers: int, n_heads: int) -> None:
    """Make sure that attention of ``kind`` has a layer and a head; None is the mean of all heads.

    Raises:
        UserError: there is no such layer, or no such head in it.
    """
    if not 1 <= layer <= n_layers:
        stack = "encoder" if kind == "encoder" else "decoder"
        raise UserError(f"there is no layer {layer}: this model's {stack} has layers 1 to {n_layers}")
    if head is not None and not 1 <= head <= n_heads:
        raise UserError(f"there is no head {head}: this model has heads 1 to {n_heads}")
