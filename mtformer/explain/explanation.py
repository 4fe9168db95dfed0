"""A whole explanation: one or two traces, the model they come from, and its earlier checkpoints."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mtformer.bundle.format import Bundle
from mtformer.config import SearchOptions
from mtformer.engines.torch import TorchEngine
from mtformer.explain.changes import Changes, compare
from mtformer.explain.record import Explainer
from mtformer.explain.trace import FORMAT, AttentionTrace, Trace, to_plain
from mtformer.explain.why_not import with_why_not


class Checkpoint(NamedTuple):
    """A model with the weights of a checkpoint, the step at which it was saved, and its name."""

    step: int
    name: str
    engine: TorchEngine


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
        """Return what JSON can express: translation and attention."""
        trace = self.trace
        found = {
            "step": self.step,
            "name": self.name,
            "text": trace.target.text,
            "log_prob": trace.target.log_prob,
            "attention": trace.attentions,
            "source": trace.source,
            "target": trace.target,
        }
        return {key: to_plain(value) for key, value in found.items()}


@dataclass(frozen=True)
class Explanation:
    """What ``mtformer explain`` shows.

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
        """Return what JSON can express."""
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
    checkpoints: Iterable[Checkpoint] = (),
) -> Explanation:
    """Explain the translation of ``text``.

    Args:
        explainer: the model.
        text: one sentence.
        model: what :func:`describe` returns for it.
        prefix: what the translation must begin with.
        why_not: words of the target language to ask about.
        compare_with: another sentence.
        checkpoints: earlier weights, oldest first.

    Raises:
        UserError: a text is empty, has several lines or is too long; or the prefix or a word is empty or too long.
    """
    texts = [text] if compare_with is None else [text, compare_with]
    traces = [with_why_not(explainer, explainer.trace(text, prefix=prefix), why_not) for text in texts]
    snapshots = [
        Snapshot(one.step, one.name, explainer.with_engine(one.engine).trace_attention(text, prefix=prefix))
        for one in checkpoints
    ]
    return Explanation(
        model=model,
        options=explainer.options,
        prefix=prefix,
        traces=tuple(traces),
        changes=None if compare_with is None else compare(*traces),
        checkpoints=tuple(snapshots),
    )


def describe(bundle: Bundle, name: str) -> dict[str, Any]:
    """Describe a bundle: its name, the digest of its contents, the step it was saved at, its languages and sizes."""
    header = bundle.header
    architecture = header.architecture
    keys = (
        "d_model", "n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "norm", "norm_type", "activation",
        "positions", "tie_embeddings", "joint_vocab", "src_vocab_size", "tgt_vocab_size",
    )  # fmt: skip
    return {
        "name": name,
        "digest": bundle.digest,
        "step": header.step,
        "src_lang": header.src_lang,
        "tgt_lang": header.tgt_lang,
        "d_head": architecture.d_model // architecture.n_heads,
        **architecture.model_dump(include=set(keys)),
    }
