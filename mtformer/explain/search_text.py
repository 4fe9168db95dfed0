"""The search of a translation as text: the tree, and the arithmetic that ranked what it finished."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from mtformer.config import SearchOptions
from mtformer.explain.layout import shorten, spelled, width, wrap
from mtformer.explain.trace import Node, Trace
from mtformer.search.hypothesis import length_penalty

_Children = Mapping[int, list[Node]]


def describe_search(trace: Trace, options: SearchOptions, columns: int) -> Iterator[str]:
    """Yield the lines of the account of a search.

    Args:
        trace: of the translation.
        options: of the search.
        columns: the width of the terminal.
    """
    k = options.beam_size
    if k == 1:
        yield from wrap("Greedy search: each step takes the likeliest token and drops all others.", columns)
    else:
        text = (
            f"Beam search: each step considers the {2 * k} likeliest continuations of its {k} beams and keeps {k}. "
            "The best translation runs down; other beams branch off. Each line has its first step, and the log "
            "probability of the whole prefix at its end."
        )
        yield from wrap(text, columns)
        yield from _tree(trace, columns)
        yield from _stop(trace, options, columns)
    yield from _ranking(trace, options, columns)


def _tree(trace: Trace, columns: int) -> Iterator[str]:
    """Draw the best path downwards, and to its right what branched off."""
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
        yield f"{trunk.step:>4}{trunk.total:9.2f} {spelled(trunk.token)}"
        parent = trunk.id


def _branch(node: Node, children: _Children, indent: str, columns: int) -> Iterator[str]:
    """Yield a branch as far as its longest continuation, and indented below it what forks from it."""
    run, forks = [node], list[Node]()
    while children.get(node.id):
        node = max(children[node.id], key=lambda child: (_last_step(child, children), child.total))
        forks += [child for child in children[run[-1].id] if child is not node]
        run.append(node)
    if node.fate == "finished":
        fate = f"  finished, score {node.score:.3f}"
    elif node.fate == "stopped":
        fate = "  left at the end"
    else:
        fate = f"  dropped at step {node.step + 1}"
    tokens = " ".join(spelled(other.token) for other in run)
    room = max(8, columns - 17 - width(indent) - width(fate))
    yield f"{run[0].step:>4}{node.total:9.2f} {indent}├─ {shorten(tokens, room)}{fate}"
    for fork in forks:
        yield from _branch(fork, children, indent + "│  ", columns)


def _last_step(node: Node, children: _Children) -> int:
    """Return the last step that a branch reaches."""
    level = [node]
    while following := [child for other in level for child in children.get(other.id, [])]:
        level = following
    return level[0].step


def _stop(trace: Trace, options: SearchOptions, columns: int) -> Iterator[str]:
    """Say why the search ended where it did."""
    left = [node.total for node in trace.tree.nodes if node.fate == "stopped"]
    if not left:
        return
    longest = options.limit(len(trace.source.tokens)) + 1  # with EOS
    penalty = length_penalty(longest, options.length_penalty)
    bound = f"{max(left):.2f} / {penalty:.3f} = {max(left) / penalty:.3f}"
    text = (
        f"The search stopped after step {trace.tree.nodes[-1].step}: its best remaining beam has {max(left):.2f}, and "
        f"at the maximum length of {longest} tokens a score of at most {bound}."
    )
    yield from wrap(text, columns)


def _ranking(trace: Trace, options: SearchOptions, columns: int) -> Iterator[str]:
    """Show how the finished translations were ranked."""
    alpha = options.length_penalty
    text = f"Finished translations: score = log probability / penalty, penalty = ((5 + length) / 6)^{alpha:g}:"
    yield from wrap(text, columns)
    yield f"{'':5}log prob.  length  penalty   score"
    for finished in trace.tree.finished:
        numbers = f"{finished.log_prob:9.3f} {finished.length:>7} {finished.penalty:8.3f} {finished.score:7.3f}"
        start = f"{finished.rank:>3}. {numbers}  {'→' if finished.returned else ' '} "
        yield from wrap(finished.text, columns, start, " " * width(start))
