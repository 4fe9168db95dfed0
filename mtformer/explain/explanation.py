"""Explain a sentence by a model, beside another sentence, and by the checkpoints of its run."""

import copy
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import SearchOptions
from mtformer.engines.torch import TorchEngine
from mtformer.explain.changes import Changes, compare
from mtformer.explain.page import ALL_KINDS, Focus, render_page
from mtformer.explain.record import Explainer
from mtformer.explain.trace import FORMAT, AttentionTrace, Trace, to_plain
from mtformer.explain.why_not import with_why_not
from mtformer.model.transformer import Transformer
from mtformer.model.weights import load_weights
from mtformer.runs.checkpoints import list_checkpoints, model_weights, step_of
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct
from mtformer.text.lines import open_output


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
        """Return the translation and the attention as JSON values."""
        trace = self.trace
        fields = {
            "step": self.step,
            "name": self.name,
            "text": trace.target.text,
            "log_prob": trace.target.log_prob,
            "attention": trace.attentions,
            "source": trace.source,
            "target": trace.target,
        }
        return {key: to_plain(value) for key, value in fields.items()}


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


log = logging.getLogger(__name__)


class Reader(Protocol):
    """A translator, as far as explaining needs it."""

    def explainer(self) -> Explainer:
        """Return the recorder of traces of the model."""
        ...

    def texts_read(self, text: str) -> list[str]:
        """Return the texts that the model reads when ``text`` is translated."""
        ...


def explain_model(
    bundle: Path,
    text: str,
    reader_of: Callable[[Bundle], Reader],
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    tag: str | None = None,
    prefix: str | None = None,
    why_not: Sequence[str] = (),
    compare_with: str | None = None,
    checkpoints: bool = False,
    focus: Focus = ALL_KINDS,
    output: Path | None = None,
) -> Explanation:
    """Explain how a model translates ``text``, and write the page of it.

    The model reads ``text`` as it is. If ``translate`` would change it first, what it would read is logged.

    Args:
        bundle: the model, in the folder of its run if ``checkpoints`` are wanted.
        text: one sentence.
        reader_of: makes a translator of the loaded bundle.
        src_lang: the source language, for a model of several directions; may stay open.
        tgt_lang: the target language.
        tag: that of a source of the training text.
        prefix: what the translation must begin with.
        why_not: words of the target language to ask about.
        compare_with: another sentence.
        checkpoints: whether to show how the checkpoints of the run translate ``text``.
        focus: the attention that the page shows first.
        output: the page to write, ``-`` for standard output; None for none.

    Raises:
        UserError: ``output`` is the bundle or part of a checkpoint; the model has no such direction, tag or attention;
            there are too few checkpoints; or a text cannot be explained.
        MtformerError: the model predicts NaN, or the page cannot be written.
    """
    folder = RunFolder(bundle.parent).checkpoints
    require_distinct(output, [bundle, *folder.rglob("*")])
    loaded = load_bundle(bundle).toward(src_lang, tgt_lang, tag)
    focus.require(loaded.header.architecture)
    earlier: Iterable[Checkpoint] = _checkpoint_models(folder, loaded.model) if checkpoints else ()
    translator = reader_of(loaded)
    explanation = explain(
        translator.explainer(),
        text,
        model=describe(loaded, str(bundle)),
        prefix=prefix,
        why_not=why_not,
        compare_with=compare_with,
        checkpoints=earlier,
    )
    if (texts := translator.texts_read(text)) != [text]:
        log.info("translate would read: %s", " | ".join(texts) or "nothing, and copy the text")
    if output is not None:
        page = render_page(explanation.to_dict(), focus)
        with open_output(output) as file:
            file.write(page)
    return explanation


def _checkpoint_models(folder: Path, model: Transformer) -> Iterator[Checkpoint]:
    """Return the checkpoints below ``folder``, oldest first, loaded one at a time.

    Args:
        folder: of the checkpoints of a run.
        model: the run's, which stays as it is.

    Raises:
        UserError: there are fewer than two, or one is damaged or of another model.
    """
    checkpoints = sorted(list_checkpoints(folder), key=step_of)
    if len(checkpoints) < 2:
        raise UserError(
            f"{folder.parent} has {len(checkpoints) or 'no'} checkpoint{'s' * (len(checkpoints) != 1)}, and "
            "--checkpoints compares at least two; training.keep_last and training.keep_best set how many a run keeps"
        )
    return (_load(path, model) for path in checkpoints)


def _load(path: Path, model: Transformer) -> Checkpoint:
    earlier = copy.deepcopy(model)
    try:
        load_weights(earlier, model_weights(path))
    except ValueError as error:
        raise UserError(f"{path} is a checkpoint of another model: {error}") from None
    return Checkpoint(step_of(path), path.name, TorchEngine(earlier))
