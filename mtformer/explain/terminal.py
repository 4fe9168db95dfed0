"""The account of a translation for a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mtformer.explain.explanation import Explanation, Snapshot
from mtformer.explain.layout import pad, shorten, shorten_left, upright, width, wrap
from mtformer.explain.search_text import describe_search
from mtformer.explain.trace import KINDS, Attention, Block, Kind, Step, Token, Trace, find_attention
from mtformer.explain.whatif import Changes

_SHADES = ((0.7, "██"), (0.4, "▓▓"), (0.2, "▒▒"), (0.05, "░░"))
_LEGEND = "░ from 5 %   ▒ from 20 %   ▓ from 40 %   █ from 70 %"
_TITLES: dict[Kind, str] = {
    "encoder": "Encoder: each source token (row) attends to the source (column)",
    "decoder": "Decoder: each token of the decoder's input attends to itself and those before it",
    "cross": "Cross: each token of the decoder's input attends to the source, to predict the next token",
}
_CELL = 3  # columns: two shaded ones and a space


@dataclass(frozen=True)
class View:
    """What the account shows, and how.

    Attributes:
        columns: the width of the terminal.
        color: whether to mark headings and choices with ANSI codes.
        layer: the layer to show; None for the last.
        head: the head to show; None for the mean of all.
        all_attention: show every layer and head instead.
    """

    columns: int = 100
    color: bool = False
    layer: int | None = None
    head: int | None = None
    all_attention: bool = False

    def bold(self, text: str) -> str:
        """Mark a heading or a choice."""
        return f"\x1b[1m{text}\x1b[0m" if self.color else text

    def dim(self, text: str) -> str:
        """Mark what is less important."""
        return f"\x1b[2m{text}\x1b[0m" if self.color else text

    def heading(self, title: str) -> str:
        """Return a heading across the whole width."""
        return "\n" + self.bold(f"── {title} " + "─" * (self.columns - width(title) - 4))


def render(explanation: Explanation, view: View) -> str:
    """Return the account as text, without a final line feed; ``view`` chooses a layer and a head that exist."""
    lines = [*_model(explanation, view)]
    for trace in explanation.traces:
        lines += _account(trace, explanation, view)
    if explanation.changes is not None:
        lines += _changes(explanation.changes, explanation.traces[0], explanation.traces[1], view)
    if explanation.checkpoints:
        lines += _checkpoints(explanation.checkpoints, view)
    return "\n".join(line.rstrip() for line in lines)


def _model(explanation: Explanation, view: View) -> Iterator[str]:
    m = explanation.model
    name = f"{m['name']}  {m['src_lang']} → {m['tgt_lang']}"
    sizes = f"{m['n_encoder_layers']} + {m['n_decoder_layers']} layers, {m['n_heads']} heads, d_model {m['d_model']}"
    yield view.dim(shorten(f"{name}  {sizes}, {m['norm']}-norm", view.columns))


def _account(trace: Trace, explanation: Explanation, view: View) -> Iterator[str]:
    yield ""
    yield from (view.bold(line) for line in wrap(trace.source.text.split(), view.columns))
    yield from (view.bold(line) for line in wrap(_breakable(f"→ {trace.target.text}"), view.columns, "  "))
    yield view.heading("Tokens")
    yield from _tokens("source", trace.source.tokens, view)
    yield from _tokens("target", trace.target.tokens, view)
    yield view.heading("Attention")
    yield from _attention(trace, view)
    yield view.heading("Decoding")
    yield from _decoding(trace, view)
    yield view.heading("Search")
    yield from describe_search(trace, explanation.options, view.columns)
    yield view.heading("Matrices")
    yield from _matrices(trace.matrices, view)
    if trace.why_not:
        yield view.heading("Why not?")
        for answer in trace.why_not:
            tokens = " ".join(token.text for token in answer.tokens)
            yield from wrap([view.bold(answer.word), f"({tokens}):", *_breakable(answer.message)], view.columns, "    ")


def _breakable(text: str) -> list[str]:
    """Split at spaces, and text of a language without spaces between its characters, in parts that a line can take."""
    return [word[start : start + 30] for word in text.split() for start in range(0, len(word), 30)]


def _tokens(side: str, tokens: Sequence[Token], view: View) -> Iterator[str]:
    """Show tokens with their ids below them, and what was spelled in bytes."""
    room = view.columns - 8
    line: list[Token] = []
    label = side
    for token in [*tokens, None]:
        columns = sum(_cell(other) + 1 for other in line) + (_cell(token) if token else 0)
        if token is None or columns > room:
            yield pad(label, 8) + " ".join(pad(other.text, _cell(other)) for other in line)
            yield " " * 8 + view.dim(" ".join(pad(str(other.id), _cell(other)) for other in line))
            line, label = [], ""
        if token:
            line.append(token)
    spelled = dict.fromkeys(token.character for token in tokens if token.character)
    if spelled:
        yield " " * 8 + f"Spelled in bytes, having no token of their own: {' '.join(spelled)}"


def _cell(token: Token) -> int:
    return max(width(token.text), len(str(token.id)))


def _attention(trace: Trace, view: View) -> Iterator[str]:
    yield _LEGEND
    if view.all_attention:
        chosen = [attention for attention in trace.attentions if view.layer in (None, attention.layer)]
    else:
        chosen = [find_attention(trace.attentions, kind, _layer(trace, kind, view)) for kind in KINDS]
    for attention in chosen:
        heads: Sequence[int | None] = [view.head]
        if view.all_attention and view.head is None:
            heads = [None, *range(1, len(attention.weights) + 1)]
        for head in heads:
            yield ""
            which = f"head {head}" if head else f"mean of {len(attention.weights)} heads"
            yield from wrap(f"{_TITLES[attention.kind]}. Layer {attention.layer}, {which}.".split(), view.columns)
            yield from _heat_map(trace, attention, head, view)


def _layer(trace: Trace, kind: Kind, view: View) -> int:
    """Return the chosen layer; the last one, if none is chosen or this stack has fewer layers than the other."""
    last = max(attention.layer for attention in trace.attentions if attention.kind == kind)
    return min(view.layer or last, last)


def _heat_map(trace: Trace, attention: Attention, head: int | None, view: View) -> Iterator[str]:
    """Draw weights (Q, K) as shaded blocks, in several parts where the terminal is too narrow for all keys."""
    weights = trace.attention(attention.kind, layer=attention.layer, head=head)
    queries = trace.source.tokens if attention.kind == "encoder" else trace.decoder_input
    keys = trace.decoder_input if attention.kind == "decoder" else trace.source.tokens
    labels = [_label(token) for token in queries]
    label_width = max(map(width, labels)) + 1
    strongest_width = 26
    most = max(4, (view.columns - label_width - strongest_width) // _CELL)
    for start in range(0, len(keys), most):
        shown = slice(start, start + most)
        for line in upright([_label(token) for token in keys[shown]], _CELL):
            yield " " * label_width + view.dim(line)
        for label, row in zip(labels, weights, strict=True):
            cells = "".join(pad(_shade(weight), _CELL) for weight in row[shown])
            strongest = " ".join(f"{_label(keys[k])} {row[k]:.2f}" for k in np.argsort(-row, kind="stable")[:2])
            yield pad(label, label_width) + cells + " " + view.dim(shorten(strongest, strongest_width - 1))


def _label(token: Token) -> str:
    """Return a token without the mark of a space before it, which would only take room."""
    return token.text.removeprefix("▁") or "▁"


def _shade(weight: float) -> str:
    return next((shade for least, shade in _SHADES if weight >= least), "  ")


def _decoding(trace: Trace, view: View) -> Iterator[str]:
    yield from wrap(
        "At each step the decoder reads the translation so far, shifted right by <s>, and gives every token a "
        "probability.".split(),
        view.columns,
    )
    for step in trace.steps:
        prefix = " ".join(token.text for token in trace.decoder_input[: step.number])
        yield f"{step.number:>3}  {shorten_left(prefix, view.columns - 5)}"
        yield "     " + _candidates(step, view)
        if step.instead is not None:
            other = f"hesitates ({step.entropy_bits:.1f} bits); with “{_label(step.other.token)}” it would say:"
            yield from wrap(["    ", *other.split(), *_breakable(step.instead.text)], view.columns, " " * 7)


def _candidates(step: Step, view: View) -> str:
    """Show the choice and as many of the others as fit on a line."""
    choice = step.choice
    line = f"→ {choice.token.text} {choice.probability:.1%}"
    if choice.forced:
        line += f" (forced; rank {choice.rank})"
    elif choice.rank > 1:
        line += f" (rank {choice.rank})"
    used, shown = width(line), [view.bold(line)]
    for place, candidate in enumerate(step.candidates):
        text = f"   {candidate.token.text} {candidate.probability:.1%}"
        if place == step.chosen:
            continue
        if used + width(text) > view.columns - 5 or len(shown) > 5:
            break
        used += width(text)
        shown.append(text)
    return "".join(shown)


def _matrices(blocks: Sequence[Block], view: View) -> Iterator[str]:
    yield from wrap(
        "Shapes for this sentence, in order of computation; --format json and --output have the numbers. "
        "Each layer of a stack has the same.".split(),
        view.columns,
    )
    part = ""
    for block in blocks:
        if block.layer not in (None, view.layer or 1):
            continue
        title = _part(block)
        if title != part:
            yield view.bold(title)
            part = title
        shape = " × ".join(map(str, block.shape))
        yield shorten(f"  {pad(block.name, 20)} {pad(shape, 16)} {block.formula}", view.columns)


def _part(block: Block) -> str:
    side = {"source": "source", "target": "decoder's input"}[block.side]
    if block.stack == "embedding":
        return f"Embedding of the {side}"
    if block.layer is None:
        return "Output"
    return f"{block.stack.capitalize()} layer {block.layer}, {(block.sublayer or '').replace('_', '-')}"


def _changes(changes: Changes, a: Trace, b: Trace, view: View) -> Iterator[str]:
    yield view.heading("What changed")
    for name, opcodes, ours, theirs in (
        ("source", changes.source, a.source.tokens, b.source.tokens),
        ("target", changes.target, a.target.tokens, b.target.tokens),
    ):
        words = []
        for operation, a0, a1, b0, b1 in opcodes:
            before, after = (" ".join(token.text for token in part) for part in (ours[a0:a1], theirs[b0:b1]))
            words += [before] if operation == "equal" else [view.bold(f"[{before or '∅'} → {after or '∅'}]")]
        yield from wrap([pad(name, 7), *" ".join(words).split(" ")], view.columns, " " * 8)
    yield "Heads whose attention changed most (mean absolute difference):"
    for change in changes.attention[:5]:
        yield f"        {change.difference:.4f}  {change.kind}, layer {change.layer}, head {change.head}"


def _checkpoints(checkpoints: Sequence[Snapshot], view: View) -> Iterator[str]:
    yield view.heading("During training")
    for snapshot in checkpoints:
        label = f"step {snapshot.step:>7,}  {snapshot.log_prob:8.2f}  "
        yield from wrap([label, *_breakable(snapshot.text)], view.columns, " " * width(label))
