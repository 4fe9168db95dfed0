"""Explain a sentence by a model, beside another sentence, and by the checkpoints of its run."""

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import numpy as np

from mtformer.bundle.format import Bundle
from mtformer.config import SearchOptions
from mtformer.engines.torch import TorchEngine
from mtformer.explain.plain import to_plain
from mtformer.explain.record import Explainer
from mtformer.explain.trace import FORMAT, AttentionTrace, Kind, Token, Trace
from mtformer.explain.why_not import with_why_not
from mtformer.model.architecture import Architecture
from mtformer.model.transformer import Transformer
from mtformer.model.weights import load_weights
from mtformer.runs.checkpoints import list_checkpoints, model_weights, step_of
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError


@dataclass(frozen=True)
class Snapshot:
    """How a checkpoint translated the sentence.

    Attributes:
        step: the optimizer updates before it.
        name: of the checkpoint.
        trace: of its translation, without search and matrices.
    """

    step: int
    name: str
    trace: AttentionTrace

    def to_dict(self) -> dict[str, Any]:
        """Return the translation and the attention as JSON values."""
        target = self.trace.target
        shown = {"step": self.step, "name": self.name, "text": target.text, "log_prob": target.log_prob}
        shown |= {"attention": self.trace.attentions, "source": self.trace.source, "target": target}
        return {key: to_plain(value) for key, value in shown.items()}


@dataclass(frozen=True)
class AttentionChange:
    """How much one head's weights differ: the mean absolute difference over tokens equal or replaced one by one."""

    kind: Kind
    layer: int
    head: int
    difference: float


@dataclass(frozen=True)
class Changes:
    """The differences between two traces.

    Attributes:
        source: operations that turn the tokens of the first source into those of the second, as
            :meth:`difflib.SequenceMatcher.get_opcodes` returns them.
        target: those of the translations.
        attention: of every head, the largest first.
    """

    source: tuple[tuple[str, int, int, int, int], ...]
    target: tuple[tuple[str, int, int, int, int], ...]
    attention: tuple[AttentionChange, ...]


def compare(a: AttentionTrace, b: AttentionTrace) -> Changes:
    """Compare the traces of two sentences by the same model."""
    source = _aligned(a.source.tokens, b.source.tokens)
    target = _aligned(a.decoder_input, b.decoder_input)
    axes = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    changes = []
    for ours, theirs in zip(a.attentions, b.attentions, strict=True):
        (rows_a, rows_b), (columns_a, columns_b) = axes[ours.kind]
        weights_a = ours.weights[:, rows_a][:, :, columns_a]  # (H, n, m)
        weights_b = theirs.weights[:, rows_b][:, :, columns_b]
        differences = np.abs(weights_a - weights_b).mean(axis=(1, 2))
        heads = enumerate(differences.tolist(), 1)
        changes += [AttentionChange(ours.kind, ours.layer, head, difference) for head, difference in heads]
    return Changes(
        source=_opcodes(a.source.tokens, b.source.tokens),
        target=_opcodes(a.target.tokens, b.target.tokens),
        attention=tuple(sorted(changes, key=lambda change: -change.difference)),
    )


def _opcodes(a: Sequence[Token], b: Sequence[Token]) -> tuple[tuple[str, int, int, int, int], ...]:
    matcher = SequenceMatcher(None, [token.id for token in a], [token.id for token in b], autojunk=False)
    return tuple(matcher.get_opcodes())


def _aligned(a: Sequence[Token], b: Sequence[Token]) -> tuple[list[int], list[int]]:
    """Return the places in ``a`` and in ``b`` of tokens that are equal, or replaced one by one."""
    places: tuple[list[int], list[int]] = [], []
    for _, a0, a1, b0, b1 in _opcodes(a, b):
        if a1 - a0 == b1 - b0:
            places[0].extend(range(a0, a1))
            places[1].extend(range(b0, b1))
    return places


@dataclass(frozen=True)
class Explanation:
    """The answer of ``mtformer explain``.

    Attributes:
        model: the bundle's name, digest, step, languages and sizes.
        options: how the search was done.
        prefix: what the translations had to begin with.
        traces: one, or two that are compared.
        changes: between the two.
        checkpoints: how earlier weights translated the first text.
    """

    model: dict[str, Any]
    options: SearchOptions
    prefix: str | None
    traces: tuple[Trace, ...]
    changes: Changes | None = None
    checkpoints: tuple[Snapshot, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON values."""
        return {
            "format": FORMAT,
            "model": to_plain(self.model),
            "search": to_plain(self.options.model_dump() | {"prefix": self.prefix}),
            "traces": [trace.to_dict() for trace in self.traces],
            "changes": to_plain(self.changes),
            "checkpoints": [snapshot.to_dict() for snapshot in self.checkpoints],
        }


def explain(
    explainer: Explainer,
    text: str,
    *,
    model: dict[str, Any],
    prefix: str | None = None,
    why_not: Sequence[str] = (),
    compare_with: str | None = None,
    checkpoints: Iterable[tuple[int, str, TorchEngine]] = (),
) -> Explanation:
    """Explain the translation of ``text``.

    Args:
        explainer: the model.
        text: one sentence.
        model: what :func:`describe` returns for it.
        prefix: what the translation must begin with.
        why_not: words of the target language to ask about.
        compare_with: another sentence.
        checkpoints: earlier weights, oldest first: the step, the name, and the model with them.

    Raises:
        UserError: a text is empty, has several lines or is too long; or the prefix or a word is empty or too long.
    """
    texts = [text] if compare_with is None else [text, compare_with]
    traces = [with_why_not(explainer, explainer.trace(text, prefix=prefix), why_not) for text in texts]
    snapshots = [
        Snapshot(step, name, replace(explainer, engine=engine).trace_attention(text, prefix=prefix))
        for step, name, engine in checkpoints
    ]
    changes = None if compare_with is None else compare(*traces)
    return Explanation(model, explainer.options, prefix, tuple(traces), changes, tuple(snapshots))


def describe(bundle: Bundle, name: str) -> dict[str, Any]:
    """Describe a bundle: its name, the digest of its contents, the step it was saved at, its languages and sizes."""
    header = bundle.header
    model = {"name": name, "digest": bundle.digest, "step": header.step}
    return model | describe_architecture(header.architecture, header.src_lang, header.tgt_lang)


def describe_architecture(architecture: Architecture, src_lang: str | None, tgt_lang: str) -> dict[str, Any]:
    """Describe a model's languages and sizes."""
    keys = (
        "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "norm", "activation",
        "positions", "tie_embeddings", "joint_vocab", "src_vocab_size", "tgt_vocab_size",
    )  # fmt: skip
    return {
        "src_lang": src_lang,
        "tgt_lang": tgt_lang,
        "d_head": architecture.d_model // architecture.n_heads,
        **architecture.model_dump(include=set(keys)),
    }


def checkpoint_models(run: RunFolder, model: Transformer) -> Iterator[tuple[int, str, TorchEngine]]:
    """Load the checkpoints and snapshots of a run one at a time, oldest first; ``model`` is the run's and stays as is.

    Of a step that has both, the checkpoint is taken: its weights are not rounded.

    Raises:
        UserError: there are fewer than two, or one is damaged or of another model.
    """
    by_step = {step_of(path): path for folder in (run.snapshots, run.checkpoints) for path in list_checkpoints(folder)}
    if len(by_step) < 2:
        raise UserError(
            f"{run.path} has {len(by_step) or 'no'} checkpoint{'s' * (len(by_step) != 1)}, and --checkpoints compares "
            "at least two; training.keep_last and training.keep_early set how many a run keeps"
        )
    return (_load(by_step[step], model) for step in sorted(by_step))


def _load(path: Path, model: Transformer) -> tuple[int, str, TorchEngine]:
    earlier = copy.deepcopy(model)
    try:
        load_weights(earlier, model_weights(path))
    except ValueError as error:
        raise UserError(f"{path} is a checkpoint of another model: {error}") from None
    return step_of(path), path.name, TorchEngine(earlier)
