"""Record the trace of one translation, and the tree of all that its search considered."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from mtformer.config import SearchOptions
from mtformer.config.search import LengthPenalty
from mtformer.engines.torch import TorchEngine
from mtformer.explain.matrices import ForwardPass, record_attentions, record_pass
from mtformer.explain.tokens import Spelling
from mtformer.explain.trace import (
    AttentionTrace,
    Block,
    Candidate,
    Finished,
    Node,
    Source,
    Step,
    Target,
    Token,
    Trace,
    Tree,
    path_to,
)
from mtformer.model.architecture import SpecialIds
from mtformer.search.candidates import SearchStep
from mtformer.search.engine import Engine, SearchRequest, results_of
from mtformer.search.hypothesis import Hypothesis, ranked
from mtformer.support.errors import UserError
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.lines import is_utf8
from mtformer.text.slots import Slotted
from mtformer.text.tokenizer.tokenizer import Tokenizer

MAX_TOKENS = 256  # of a side: what a person can look at, and what memory holds of every matrix
_N_CANDIDATES = 10
_HESITATION = 1.0  # nats: with a smaller margin, the second-best token gets an "instead"


def watchable(engine: Engine, options: SearchOptions) -> TorchEngine:
    """Return an engine, if its search can be watched.

    Raises:
        UserError: ``engine`` is not torch's, or is an ensemble; or ``options`` ask for more than beam search.
    """
    if not isinstance(engine, TorchEngine):
        raise UserError(f"explain needs a model that runs in torch, not {type(engine).__name__}")
    if len(engine.models) > 1:
        raise UserError("explain needs one model, not an ensemble")
    for option in ("sample", "mbr"):
        if getattr(options, option):
            raise UserError(f"explain shows beam search, which cannot be combined with {option}")
    return engine


@dataclass(frozen=True)
class Explainer:
    """A model and its search, as parts that can be watched.

    Attributes:
        engine: the model.
        tokenizer: the one that the model was trained with.
        options: how to search.
        tgt_lang: the target language.
        max_length: the most tokens, EOS included, that the model takes.
        last_sentence: returns the sentence of a text to explain, and the tokenizer that puts before it what the model
            reads first.
        with_slots: puts slots into a sentence; returns None if it has nothing that needs any.
    """

    engine: TorchEngine
    tokenizer: Tokenizer
    options: SearchOptions
    tgt_lang: str
    max_length: int
    last_sentence: Callable[[str], tuple[str, Tokenizer]]
    with_slots: Callable[[str], Slotted | None]

    def trace(self, text: str, *, prefix: str | None = None) -> Trace:
        """Translate ``text`` and record how.

        Recording hooks into the model's modules: do not use the model in another thread meanwhile.

        Args:
            text: one sentence, or several for a model with context, which reads the last one after the one before it.
            prefix: what the translation must begin with.

        Raises:
            UserError: the text is empty, has several lines or is too long; or the prefix is empty or too long.
            MtformerError: the model predicts NaN.
        """
        spelling, src, forced = self._encode(text, prefix)
        recorder = TreeRecorder(spelling, self._special_ids, self.options.penalty)
        request = self._request(src, forced)
        hypotheses = ranked(self.engine.observe(request, recorder), self.options.penalty)
        best = hypotheses[0]
        forward = self._forward(src, best.ids)
        steps = self._steps(spelling, forward.logits, [*best.ids, self._special_ids.eos], len(forced))
        return Trace(
            *self._sentence(text, spelling, src, best),
            attentions=forward.attentions,
            tree=recorder.tree(hypotheses),
            steps=self._with_alternatives(spelling, src, best.ids, steps),
            matrices=(*forward.blocks, *self._logit_blocks(forward.logits, steps)),
        )

    def trace_attention(self, text: str, *, prefix: str | None = None) -> AttentionTrace:
        """Translate ``text`` like :meth:`trace`, and record only the attention."""
        spelling, src, forced = self._encode(text, prefix)
        [[best, *_]] = self.search(src, [forced])
        attentions = record_attentions(self.engine.model, *self._inputs(src, best.ids))
        return AttentionTrace(*self._sentence(text, spelling, src, best), attentions)

    def spelling(self, text: str) -> Spelling:
        """Return how the tokens of a text and of its translations are spelled."""
        sentence, tokenizer = self.last_sentence(text)
        return Spelling(sentence, tokenizer, self.with_slots(sentence))

    def search(self, src: list[int], prefixes: Sequence[Sequence[int]]) -> list[list[Hypothesis]]:
        """Return the best translations of source ids (EOS last) that begin with each of ``prefixes``, best first."""
        requests = [self._request(src, prefix) for prefix in prefixes]
        return [ranked(hypotheses, self.options.penalty) for hypotheses in results_of(self.engine, requests)]

    def _request(self, src: list[int], prefix: Sequence[int]) -> SearchRequest:
        forced = self.tokenizer.prefixes.tgt
        return SearchRequest(src, self.options, self.options.limit(len(src)), prefix, forced=forced)

    def log_probs(self, trace: Trace) -> Tensor:
        """Return (T, V), the log probabilities of every next token along the trace's translation."""
        ids = [token.id for token in trace.target.tokens]
        logits = self._forward([token.id for token in trace.source.tokens], ids[:-1]).logits
        return self._choosable(logits.float().log_softmax(dim=-1))

    def encode_word(self, spelling: Spelling, word: str, *, first: bool) -> list[int]:
        """Return the ids of a target word as it stands at the beginning of the translation, or after other words."""
        return _encode_target(spelling, word, "word", inside=not first and not is_written_with_spaces(self.tgt_lang))

    def max_target(self, n_tokens: int) -> int:
        """Return the maximum length of the translation of ``n_tokens`` source tokens, without EOS."""
        return min(self.options.limit(n_tokens), MAX_TOKENS)

    def require_room(self, ids: Sequence[int], what: str, n_tokens: int) -> None:
        """Make sure that the translation of ``n_tokens`` source tokens has room for ``ids``.

        Raises:
            UserError: there is too little; the message calls the ids ``what``.
        """
        most = self.max_target(n_tokens)
        if len(ids) > most:
            raise UserError(f"the {what} has {len(ids)} tokens, more than the {most} that the translation may have")

    def _encode(self, text: str, prefix: str | None) -> tuple[Spelling, list[int], list[int]]:
        """Return how a text is spelled, its ids, and those of the forced beginning of its translation."""
        lines = text.count("\n") + 1
        if lines > 1:
            raise UserError(f"explain takes one sentence, and this text has {lines} lines")
        _require_utf8(text, "text")
        spelling = self.spelling(text)
        if spelling.is_empty:
            raise UserError("there is nothing to explain: the text is empty")
        src = spelling.encode_src()
        most = min(self.max_length, MAX_TOKENS)
        if len(src) > most:
            raise UserError(
                f"the text has {len(src)} tokens, more than the {most} that explain takes; it does not split texts"
            )
        forced = [] if prefix is None else _encode_target(spelling, prefix, "prefix")
        self.require_room(forced, "prefix", len(src))
        return spelling, src, forced

    def _sentence(
        self, text: str, spelling: Spelling, src: Sequence[int], best: Hypothesis
    ) -> tuple[Source, Target, Token]:
        """Return the source, the translation, and the token that starts decoding."""
        start, *tokens = spelling.tgt_tokens([self._special_ids.start, *best.ids, self._special_ids.eos])
        score = best.score(self.options.penalty)
        target = Target(spelling.decode(best.ids), tuple(tokens), best.log_prob, score)
        return Source(text, spelling.src_tokens(src)), target, start

    def _forward(self, src: Sequence[int], tgt: Sequence[int]) -> ForwardPass:
        return record_pass(self.engine.model, *self._inputs(src, tgt))

    def _inputs(self, src: Sequence[int], tgt: Sequence[int]) -> tuple[Tensor, Tensor, int]:
        """Return the source (1, S), the decoder's input (1, T), and how many ids at its start are forced."""
        device = self.engine.model.device
        forced = self.tokenizer.prefixes.tgt
        tgt_in = torch.tensor([[self._special_ids.start, *forced, *tgt]], device=device)
        return torch.tensor([src], device=device), tgt_in, len(forced)

    def _steps(self, spelling: Spelling, logits: Tensor, chosen: Sequence[int], n_forced: int) -> list[Step]:
        """Describe each step by the model's distribution over the next token."""
        all_log_probs = logits.float().log_softmax(dim=-1)  # (T, V)
        steps = []
        for number, (log_probs, token) in enumerate(zip(all_log_probs, chosen, strict=True), 1):
            entropy = float(torch.special.entr(log_probs.exp()).sum()) / math.log(2)
            log_probs = self._choosable(log_probs)
            likeliest = log_probs.topk(min(_N_CANDIDATES, len(log_probs))).indices.tolist()
            places = likeliest if token in likeliest else [*likeliest[:-1], token]
            second = next(place for place in places if place != token)
            candidates = tuple(
                Candidate(
                    spelling.tgt_tokens([place])[0],
                    float(log_probs[place]),
                    math.exp(float(log_probs[place])),
                    1 + int((log_probs > log_probs[place]).sum()),
                    forced=place == token and number <= n_forced,
                )
                for place in places
            )
            margin = float(log_probs[token] - log_probs[second])
            steps.append(Step(number, candidates, places.index(token), entropy, margin))
        return steps

    def _with_alternatives(
        self, spelling: Spelling, src: list[int], tgt: list[int], steps: list[Step]
    ) -> tuple[Step, ...]:
        """Add the alternatives at the steps where the model hesitates."""
        others = {
            step.number: [*tgt[: step.number - 1], step.other.token.id] for step in steps if step.margin < _HESITATION
        }
        texts = map(spelling.decode, self._complete(src, list(others.values())))
        instead_of = dict(zip(others, texts, strict=True))
        return tuple(replace(step, instead=instead_of.get(step.number)) for step in steps)

    @property
    def _special_ids(self) -> SpecialIds:
        return self.tokenizer.special_ids

    def _complete(self, src: list[int], prefixes: Sequence[list[int]]) -> list[list[int]]:
        """Return the greedy translations of ``src`` that begin with each of ``prefixes``; EOS ends one at once."""
        greedy = replace(self, options=self.options.model_copy(update={"beam_size": 1, "n_best": 1}))
        eos = self._special_ids.eos
        continued = iter(greedy.search(src, [prefix for prefix in prefixes if prefix[-1] != eos]))
        return [prefix if prefix[-1] == eos else next(continued)[0].ids for prefix in prefixes]

    def _choosable(self, log_probs: Tensor) -> Tensor:
        """Return log probabilities (…, V) without those of the tokens that no search chooses."""
        never = torch.tensor(self._special_ids.never, device=log_probs.device)
        return log_probs.index_fill(-1, never, float("-inf"))

    def _logit_blocks(self, logits: Tensor, steps: Sequence[Step]) -> list[Block]:
        """Return logits and probabilities of each step's candidates."""
        bias = " + b" if self.engine.model.architecture.output_bias else ""
        ids = torch.tensor(
            [[candidate.token.id for candidate in step.candidates] for step in steps], device=logits.device
        )
        blocks = (
            ("logits", f"decoder output·W_out{bias}", logits),
            ("probabilities", "softmax of each row", logits.softmax(dim=-1)),
        )
        return [
            Block(
                "output", "target", None, None, name, formula, tuple(logits.shape), "target", "candidates",
                values.gather(1, ids).float().cpu().numpy(),
            )
            for name, formula, values in blocks
        ]  # fmt: skip


class TreeRecorder:
    """A :data:`mtformer.search.candidates.SearchObserver` for the search of one sentence."""

    def __init__(self, spelling: Spelling, special_ids: SpecialIds, penalty: LengthPenalty) -> None:
        """Start with the id that starts decoding.

        Args:
            spelling: that of the sentence.
            special_ids: those of the model.
            penalty: the length penalty.
        """
        self._spelling, self._eos, self._penalty = spelling, special_ids.eos, penalty
        [start] = spelling.tgt_tokens([special_ids.start])
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
            token=self._spelling.tgt_tokens([token])[0],
            log_prob=log_prob,
            total=float(candidates.log_probs[0, candidate]),
            rank=candidate + 1,
            fate="pruned",
        )
        if not step.finished[0, candidate]:
            return node
        log_probs = [earlier.log_prob for earlier in path_to(self._nodes[parent], self._nodes)]
        return replace(node, fate="finished", score=Hypothesis([], [*log_probs, log_prob]).score(self._penalty))

    def _finished(self, node: Node, rank: int, returned: list[list[int]]) -> Finished:
        path = path_to(node, self._nodes)
        ids = [step.token.id for step in path if step.token.id != self._eos]
        assert node.score is not None
        return Finished(
            node=node.id,
            rank=rank,
            text=self._spelling.decode(ids),
            length=len(path),
            log_prob=sum(step.log_prob for step in path),
            penalty=self._penalty(len(path)),
            score=node.score,
            returned=ids in returned,
        )


def _encode_target(spelling: Spelling, text: str, what: str, *, inside: bool = False) -> list[int]:
    _require_utf8(text, what)
    ids = spelling.encode_tgt(text, inside=inside)
    if not ids:
        raise UserError(f"the {what} is empty")
    return ids


def _require_utf8(text: str, what: str) -> None:
    if not is_utf8(text):
        raise UserError(f"the {what} is not UTF-8")
