"""The search of a translation as text: the tree, and the arithmetic that ranked what it finished."""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from mtformer.explain.layout import pad, shorten, width, wrap
from mtformer.explain.trace import Node, Trace
from mtformer.search import SearchOptions, length_penalty


def describe_search(trace: Trace, options: SearchOptions, columns: int) -> Iterator[str]:
    """Yield the lines of the account of a search.

    Args:
        trace: of the translation.
        options: of the search.
        columns: the width of the terminal.
    """
    k = options.beam_size
    if k == 1:
        yield from wrap("Greedy search: each step takes the likeliest token, and drops all others.".split(), columns)
    else:
        text = (
            f"Beam search: each step considers the {2 * k} likeliest continuations of its {k} beams and keeps {k}, the "
            "greedy one always among them. Numbers are the log probability of the whole prefix. The best translation "
            "runs down; beams that were dropped branch off."
        )
        yield from wrap(text.split(), columns)
        yield from _tree(trace, columns)
        yield from _stop(trace, options, columns)
    yield from _ranking(trace, options, columns)


def _tree(trace: Trace, columns: int) -> Iterator[str]:
    """Draw the best path downwards, and to its right what branched off."""
    children: dict[int, list[Node]] = defaultdict(list)
    for node in trace.tree.nodes[1:]:
        if node.fate != "pruned":  # was a beam
            children[node.parent or 0].append(node)
    best = trace.tree.path(trace.tree.nodes[trace.tree.finished[0].node])
    yield f"{'':>10}<s>"
    parent = 0
    for trunk in best:
        for child in sorted(children[parent], key=lambda node: -node.total):
            if child.id != trunk.id:
                yield from _branch(child, children, "├─ ", "│  ", columns)
        yield f"{trunk.total:9.2f} {trunk.token.text}"
        parent = trunk.id


def _branch(node: Node, children: Mapping[int, list[Node]], first: str, rest: str, columns: int) -> Iterator[str]:
    """Yield a branch: its tokens up to the next fork, and indented below it the forks."""
    tokens = [node.token.text]
    while len(children.get(node.id, [])) == 1:
        [node] = children[node.id]
        tokens.append(node.token.text)
    forks = children.get(node.id, [])
    fate = ""
    if node.fate == "finished":
        fate = f"  finished, score {node.score:.3f}"
    elif node.fate == "stopped":
        fate = "  stopped"
    elif not forks:
        fate = f"  dropped at step {node.step + 1}"
    room = columns - 10 - width(first) - width(fate)
    yield f"{node.total:9.2f} {first}{shorten(' '.join(tokens), room)}{fate}"
    for fork in sorted(forks, key=lambda other: -other.total):
        yield from _branch(fork, children, rest + "├─ ", rest + "│  ", columns)


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
    yield from wrap(text.split(), columns)


def _ranking(trace: Trace, options: SearchOptions, columns: int) -> Iterator[str]:
    """Show how the finished translations were ranked."""
    alpha = options.length_penalty
    yield f"Finished translations, by score = log probability / ((5 + length) / 6)^{alpha:g}:"
    for finished in trace.tree.finished:
        line = (
            f"{finished.rank:>3}. {finished.log_prob:8.3f} / ((5 + {finished.length}) / 6)^{alpha:g} = "
            f"{finished.log_prob:.3f} / {finished.penalty:.3f} = {pad(f'{finished.score:.3f}', 8)} "
        )
        mark = "→ " if finished.returned else "  "
        yield shorten(line + mark + finished.text, columns)
