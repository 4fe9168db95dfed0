"""The account of a translation for a terminal."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from mtformer.config import SearchOptions
from mtformer.explain.explanation import AttentionChange, Changes, Explanation, Snapshot, compare
from mtformer.explain.layout import LEGEND, HeatMap, pad, shorten_left
from mtformer.explain.page import ALL_KINDS, Focus
from mtformer.explain.trace import KINDS, Block, Kind, Node, Step, Token, Trace
from mtformer.support.terminal import escaped, fixed, shorten, text_width, wrap

_TITLES: dict[Kind, str] = {
    "encoder": "Encoder: each source token (row) attends to the source (column)",
    "decoder": "Decoder: each token of the decoder's input attends to itself and those before it",
    "cross": "Cross: each token of the decoder's input attends to the source, to predict the next token",
}


@dataclass(frozen=True)
class View:
    """The parts of the account to show, and the width.

    Attributes:
        columns: the width of the terminal.
        color: whether to mark headings and choices with ANSI codes.
        focus: the attention to show.
        all_attention: show all layers and heads that ``focus`` leaves open.
    """

    columns: int = 100
    color: bool = False
    focus: Focus = ALL_KINDS
    all_attention: bool = False

    def bold(self, text: str) -> str:
        """Mark a heading or a choice."""
        return f"\x1b[1m{text}\x1b[0m" if self.color else text

    def dim(self, text: str) -> str:
        """Mark less important text."""
        return f"\x1b[2m{text}\x1b[0m" if self.color else text

    def wrap(self, text: str, first: str = "", others: str = "") -> list[str]:
        """Wrap a text to the width, as :func:`mtformer.support.terminal.wrap` does."""
        return wrap(text, self.columns, first, others)

    def heading(self, title: str) -> str:
        """Return a heading across the whole width."""
        return "\n" + self.bold(f"── {title} " + "─" * (self.columns - text_width(title) - 4))


def render(explanation: Explanation, view: View) -> str:
    """Return the account as text, without a final line feed; ``view.focus`` must exist."""
    traces, changes = explanation.traces, explanation.changes
    account = _account(traces[0], explanation.options, view)
    if changes is not None:
        account = _comparison(traces[0], traces[1], changes, view)
    checkpoints = _checkpoints(explanation.checkpoints, traces[0], view)
    lines = [*_model(explanation.model, view), *account, *_answers(traces, view), *checkpoints]
    return "\n".join(line.rstrip() for line in lines)


def _model(m: dict[str, Any], view: View) -> Iterator[str]:
    sizes = f"{m['n_encoder_layers']} + {m['n_decoder_layers']} layers, {m['n_heads']} heads, d_model {m['d_model']}"
    yield from map(view.dim, view.wrap(f"{m['name']}  {m['src_lang']} → {m['tgt_lang']}, {sizes}, {m['norm']}-norm"))


def _account(trace: Trace, options: SearchOptions, view: View) -> Iterator[str]:
    """Show everything about one sentence, or only the attention that is asked for."""
    yield ""
    yield from _sentence(trace, view)
    sections = {
        "Tokens": [*_tokens("source", trace.source.tokens, view), *_tokens("target", trace.target.tokens, view)],
        "Attention": _attention(trace, view),
    }
    if view.focus == ALL_KINDS:
        sections |= {
            "Decoding": _decoding(trace, view),
            "Search": _search(trace, options, view),
            "Matrices": _matrices(trace.matrices, view),
        }
    for title, lines in sections.items():
        yield view.heading(title)
        yield from lines


def _sentence(trace: Trace, view: View) -> Iterator[str]:
    yield from map(view.bold, view.wrap(escaped(" ".join(trace.source.text.split()))))
    yield from map(view.bold, view.wrap(escaped(trace.target.text), "→ ", "  "))


def _tokens(side: str, tokens: Sequence[Token], view: View) -> Iterator[str]:
    """Show tokens with their ids below them, and the characters that were spelled in bytes."""
    cells = [max(text_width(token.printable), len(str(token.id))) for token in tokens]
    start, left = 0, side
    while start < len(tokens):
        end, used = start, 8
        while end < len(tokens) and (end == start or used + cells[end] <= view.columns):
            used += cells[end] + 1
            end += 1
        part = list(zip(tokens[start:end], cells[start:end], strict=True))
        yield pad(left, 8) + " ".join(pad(token.printable, cell) for token, cell in part)
        yield " " * 8 + view.dim(" ".join(pad(str(token.id), cell) for token, cell in part))
        start, left = end, ""
    characters = dict.fromkeys(token.character for token in tokens if token.character)
    if characters:
        yield " " * 8 + f"Spelled in bytes, having no token of their own: {escaped(' '.join(characters))}"


def _attention(trace: Trace, view: View) -> Iterator[str]:
    focus = view.focus
    yield from view.wrap(LEGEND)
    if view.all_attention:
        of_kinds = [attention for attention in trace.attentions if attention.kind in focus.kinds]
        chosen = [attention for attention in of_kinds if focus.layer in (None, attention.layer)]
    else:
        chosen = [trace.find_attention(kind, _layer(trace, kind, focus)) for kind in focus.kinds]
    for attention in chosen:
        n_heads = len(attention.weights)
        is_open = view.all_attention and focus.head is None
        for head in [None, *range(1, n_heads + 1)] if is_open else [focus.head]:
            which = f"head {head}" if head else f"mean of {n_heads} heads"
            yield ""
            yield from view.wrap(f"{_TITLES[attention.kind]}. Layer {attention.layer}, {which}.")
            yield from HeatMap.of(trace, attention, head).draw(view.columns)


def _layer(trace: Trace, kind: Kind, focus: Focus) -> int:
    """Return the chosen layer; the last one, if none is chosen or this stack has fewer layers than the other."""
    last = max(attention.layer for attention in trace.attentions if attention.kind == kind)
    return min(focus.layer or last, last)


def _decoding(trace: Trace, view: View) -> Iterator[str]:
    yield from view.wrap(
        "Each step reads the translation so far, shifted right by <s>, and gives every token a probability."
    )
    for step in trace.steps:
        prefix = _joined(trace.decoder_input[: step.number])
        yield f"{step.number:>3}  {shorten_left(prefix, view.columns - 5)}"
        yield "     " + _candidates(step, view)
        if step.instead is not None:
            said = f"hesitates ({step.entropy_bits:.1f} bits); with “{step.other.token.label}” it would have said: "
            yield from view.wrap(said + escaped(step.instead), " " * 5, " " * 7)


def _candidates(step: Step, view: View) -> str:
    """Show the choice and as many of the others as fit on a line."""
    choice = step.choice
    line = f"→ {choice.token.printable} {100 * choice.probability:.1f} %"
    if choice.forced:
        line += f" (forced, rank {choice.rank})"
    elif choice.rank > 1:
        line += f" (rank {choice.rank})"
    used, shown = text_width(line), [view.bold(line)]
    for candidate in step.candidates:
        text = f"   {candidate.token.printable} {100 * candidate.probability:.1f} %"
        if candidate is choice:
            continue
        used += text_width(text)
        if used > view.columns - 5 or len(shown) > 5 or candidate.probability < 0.0005:
            break
        shown.append(text)
    return "".join(shown)


def _joined(tokens: Sequence[Token]) -> str:
    return " ".join(token.printable for token in tokens)


def _matrices(blocks: Sequence[Block], view: View) -> Iterator[str]:
    yield from view.wrap(
        "The shapes for this sentence, in order of computation; all layers of a stack have the same. --output and "
        "--format json have the numbers."
    )
    shown = (block for block in blocks if block.layer in (None, view.focus.layer or 1))
    for title, part in groupby(shown, key=_part):
        yield view.bold(title)
        for block in part:
            shape = " × ".join(map(str, block.shape))
            yield shorten(f"  {pad(block.name, 20)} {pad(shape, 16)} {block.formula}", view.columns)


def _part(block: Block) -> str:
    side = {"source": "source", "target": "decoder's input"}[block.side]
    if block.stack == "embedding":
        return f"Embedding of the {side}"
    if block.layer is None:
        return "Output" if block.stack == "output" else f"{block.stack.capitalize()}, final norm"
    return f"{block.stack.capitalize()} layer {block.layer}, {(block.sublayer or '').replace('_', '-')}"


def _answers(traces: Sequence[Trace], view: View) -> Iterator[str]:
    if traces[0].why_not:
        yield view.heading("Why not?")
    for trace in traces:
        if trace.why_not and len(traces) > 1:
            yield from view.wrap(escaped(trace.target.text), "→ ", "  ")
        for answer in trace.why_not:
            tokens = f" ({_joined(answer.tokens)})" if len(answer.tokens) > 1 else ""
            yield from view.wrap(escaped(answer.message), f"{view.bold(escaped(answer.word))}{tokens}: ", "    ")


def _comparison(a: Trace, b: Trace, changes: Changes, view: View) -> Iterator[str]:
    """Show the changes from one sentence to another, and draw the attention that changes most, or the chosen one."""
    for trace in (a, b):
        yield ""
        yield from _sentence(trace, view)
    yield view.heading("What changed")
    sides = (
        ("source", changes.source, a.source.tokens, b.source.tokens),
        ("target", changes.target, a.target.tokens, b.target.tokens),
    )
    for side, opcodes, ours, theirs in sides:
        words = []
        for operation, a0, a1, b0, b1 in opcodes:
            before, after = (_joined(part) or "∅" for part in (ours[a0:a1], theirs[b0:b1]))
            words.append(before if operation == "equal" else view.bold(f"[{before} → {after}]"))
        yield from view.wrap(" ".join(words), pad(side, 8), " " * 8)
    yield ""
    yield from view.wrap(
        "Attention that changed most (mean absolute difference over tokens that are equal or replaced one by one):"
    )
    for change in changes.attention[:5]:
        yield f"{change.difference:9.4f}  {change.kind}, layer {change.layer}, head {change.head}"
    for change in _shown_changes(changes, view):
        yield ""
        yield from view.wrap(f"{_TITLES[change.kind]}. Layer {change.layer}, head {change.head}.")
        yield from view.wrap(LEGEND)
        left, right = (
            HeatMap.of(trace, trace.find_attention(change.kind, change.layer), change.head) for trace in (a, b)
        )
        yield from left.beside(right, view.columns)


def _shown_changes(changes: Changes, view: View) -> list[AttentionChange]:
    """Return the head that changes most, or if some are chosen, the one of each kind that does among them."""
    focus = view.focus
    in_focus = [
        change
        for change in changes.attention
        if change.kind in focus.kinds and focus.layer in (None, change.layer) and focus.head in (None, change.head)
    ]
    first_of_kind = {change.kind: change for change in reversed(in_focus)}
    of_kinds = [first_of_kind[kind] for kind in KINDS if kind in first_of_kind]
    return in_focus[:1] if focus == ALL_KINDS else of_kinds


def _checkpoints(checkpoints: Sequence[Snapshot], final: Trace, view: View) -> Iterator[str]:
    if checkpoints:
        yield view.heading("During training")
        yield from view.wrap(
            "Each checkpoint's translation, its log probability, and its mean difference in attention:"
        )
    for snapshot in checkpoints:
        yield from view.wrap(escaped(snapshot.trace.target.text), f"step {snapshot.step:>7,}  ", " " * 14)
        changes = compare(snapshot.trace, final).attention
        kinds = [[change.difference for change in changes if change.kind == kind] for kind in KINDS]
        distances = ", ".join(f"{kind} {sum(of) / len(of):.4f}" for kind, of in zip(KINDS, kinds, strict=True))
        yield view.dim(shorten(f"{'':14}{fixed(snapshot.trace.target.log_prob, 3)}; {distances}", view.columns))


_Children = Mapping[int, list[Node]]


def _search(trace: Trace, options: SearchOptions, view: View) -> Iterator[str]:
    """Show how the search went."""
    k = options.beam_size
    if k == 1:
        yield from view.wrap("Greedy search: each step takes the likeliest token and drops all others.")
    else:
        yield from view.wrap(
            f"Beam search: each step considers the {2 * k} likeliest continuations of its {k} beams and keeps {k}. "
            "The best translation runs down; other beams branch off. Each line has its first step, and the log "
            "probability of the whole prefix at its end."
        )
        yield from _tree(trace, view.columns)
        yield from _stop(trace, options, view)
    yield from _ranking(trace, options, view)


def _tree(trace: Trace, columns: int) -> Iterator[str]:
    """Draw the best path downwards, and its branches to the right."""
    children: dict[int, list[Node]] = defaultdict(list)
    for node in trace.tree.nodes[1:]:
        if node.fate != "pruned":  # was a beam, or finished
            children[node.parent or 0].append(node)
    best = trace.tree.path(trace.tree.nodes[trace.tree.finished[0].node])
    yield f"{'':14}<s>"
    parent = 0
    for trunk in best:
        for child in sorted(children[parent], key=lambda node: -node.total):
            if child.id != trunk.id:
                yield from _branch(child, children, "", columns)
        yield f"{trunk.step:>4}{fixed(trunk.total, 2, 9)} {trunk.token.printable}"
        parent = trunk.id


def _branch(node: Node, children: _Children, indent: str, columns: int) -> Iterator[str]:
    """Yield a branch as far as its longest continuation, and its forks indented below it."""
    run, forks = [node], list[Node]()
    while children.get(node.id):
        node = max(children[node.id], key=lambda child: (_last_step(child, children), child.total))
        forks += [child for child in children[run[-1].id] if child is not node]
        run.append(node)
    fate = f"  dropped at step {node.step + 1}"
    if node.fate == "finished":
        fate = f"  finished, score {fixed(node.score or 0.0, 3)}"
    elif node.fate == "stopped":
        fate = "  left at the end"
    tokens = _joined([step.token for step in run])
    room = max(8, columns - 17 - text_width(indent) - text_width(fate))
    yield f"{run[0].step:>4}{fixed(node.total, 2, 9)} {indent}├─ {shorten(tokens, room)}{fate}"
    for fork in forks:
        yield from _branch(fork, children, indent + "│  ", columns)


def _last_step(node: Node, children: _Children) -> int:
    """Return the last step that a branch reaches."""
    level = [node]
    while following := [child for parent in level for child in children.get(parent.id, [])]:
        level = following
    return level[0].step


def _stop(trace: Trace, options: SearchOptions, view: View) -> Iterator[str]:
    """Explain why the search ended."""
    left = [node.total for node in trace.tree.nodes if node.fate == "stopped"]
    if not left:
        return
    k, step, best = options.beam_size, trace.tree.nodes[-1].step, max(left)
    enough = len(trace.tree.finished) >= k and best / options.penalty(step) <= trace.tree.finished[k - 1].score
    length = step if enough else options.limit(len(trace.source.tokens)) + 1  # with EOS
    penalty = options.penalty(length)
    bound = f"{fixed(best, 2)} / {penalty:.3f} = {fixed(best / penalty, 3)}"
    reason = (
        f"at its {step} tokens its score, {bound}, is not better than those of the best {k} finished translations"
        if enough
        else f"at the maximum length of {length} tokens its score is at most {bound}"
    )
    yield from view.wrap(
        f"The search stopped after step {step}: its best remaining beam has {fixed(best, 2)}, and {reason}."
    )


def _ranking(trace: Trace, options: SearchOptions, view: View) -> Iterator[str]:
    """Show how the finished translations were ranked."""
    yield from view.wrap(f"Finished translations: score = log probability / penalty, penalty = {options.penalty}:")
    yield f"{'':5}log prob.  length  penalty   score"
    for finished in trace.tree.finished:
        log_prob, score = fixed(finished.log_prob, 3, 9), fixed(finished.score, 3, 7)
        numbers = f"{log_prob} {finished.length:>7} {finished.penalty:8.3f} {score}"
        start = f"{finished.rank:>3}. {numbers}  {'→' if finished.returned else ' '} "
        yield from view.wrap(escaped(finished.text), start, " " * text_width(start))
