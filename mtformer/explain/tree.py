"""Follow a search and keep the tree of all that it considered."""

from dataclasses import replace

from mtformer.explain.tokens import target_tokens
from mtformer.explain.trace import Finished, Node, Tree, path_to
from mtformer.search.candidates import SearchStep
from mtformer.search.hypothesis import Hypothesis, length_penalty
from mtformer.text.tokenizer.tokenizer import Tokenizer


class TreeRecorder:
    """A :data:`mtformer.search.candidates.SearchObserver` for the search of one sentence."""

    def __init__(self, tokenizer: Tokenizer, alpha: float) -> None:
        """Start with the id that starts decoding.

        Args:
            tokenizer: spells the tokens.
            alpha: the exponent of the length penalty.
        """
        self._tokenizer, self._alpha = tokenizer, alpha
        [start] = target_tokens(tokenizer, [tokenizer.special_ids.start])
        self._nodes = [Node(0, None, 0, start, 0.0, 0.0, 1, "stopped")]
        self._beams: list[int | None] = [0]  # the node of each beam; None for a beam that does not exist

    def __call__(self, step: SearchStep) -> None:
        """Add the candidates of one step."""
        for beam in self._beams:
            if beam is not None:
                self._nodes[beam] = replace(self._nodes[beam], fate="expanded")
        self._beams += [None] * (step.prefixes.ids.size(1) - len(self._beams))
        added = {}  # the node of each candidate that is possible
        for candidate, total in enumerate(step.candidates.log_probs[0].tolist()):
            if total > float("-inf"):
                added[candidate] = len(self._nodes)
                self._nodes.append(self._node(step, candidate))
        self._beams = []
        for candidate in step.chosen[0].tolist():
            node = added.get(candidate)
            survives = node is not None and self._nodes[node].fate == "pruned"  # unless it has ended in EOS
            self._beams.append(node if survives else None)
            if node is not None and survives:
                self._nodes[node] = replace(self._nodes[node], fate="stopped")

    def tree(self, returned: list[Hypothesis]) -> Tree:
        """Return the tree; ``returned`` are the hypotheses that the search has returned."""
        ids = [hypothesis.ids for hypothesis in returned]
        finished = sorted(
            (node for node in self._nodes if node.fate == "finished"), key=lambda node: -(node.score or 0.0)
        )
        ranked = enumerate(finished, 1)
        return Tree(tuple(self._nodes), tuple(self._finished(node, rank, ids) for rank, node in ranked))

    def _node(self, step: SearchStep, candidate: int) -> Node:
        """Return the node of a candidate, to be added to the others."""
        candidates = step.candidates
        beam, token = int(candidates.beams[0, candidate]), int(candidates.tokens[0, candidate])
        log_prob = float(candidates.token_log_probs[0, candidate])
        parent = self._beams[beam]
        assert parent is not None, "a candidate continues a beam"
        node = Node(
            id=len(self._nodes),
            parent=parent,
            step=step.prefixes.length + 1,
            token=target_tokens(self._tokenizer, [token])[0],
            log_prob=log_prob,
            total=float(candidates.log_probs[0, candidate]),
            rank=candidate + 1,
            fate="pruned",
        )
        if not step.finished[0, candidate]:
            return node
        log_probs = [other.log_prob for other in path_to(self._nodes[parent], self._nodes)]
        return replace(node, fate="finished", score=Hypothesis([], [*log_probs, log_prob]).score(self._alpha))

    def _finished(self, node: Node, rank: int, returned: list[list[int]]) -> Finished:
        path = path_to(node, self._nodes)
        ids = [other.token.id for other in path if other.token.id != self._tokenizer.special_ids.eos]
        assert node.score is not None
        return Finished(
            node=node.id,
            rank=rank,
            text=self._tokenizer.decode(ids),
            length=len(path),
            log_prob=sum(other.log_prob for other in path),
            penalty=length_penalty(len(path), self._alpha),
            score=node.score,
            returned=ids in returned,
        )
