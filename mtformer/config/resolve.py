"""Resolve the open settings of a config by facts about the data, the model and the machine.

:func:`resolve` is pure. A run calls it with the facts it has so far to get the settings that the next fact depends on:
the vocabulary size to aim at, then the sizes of the model. With all the facts, the result is the config of the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, NamedTuple

from pydantic import ValidationError

from mtformer.config.data import TokenizerConfig
from mtformer.config.schema import Config, ModelConfig, Precision, Provenance, TrainingConfig
from mtformer.config.section import NonNegativeFloat, PositiveFloat, PositiveInt
from mtformer.config.sources import PrefixTokens
from mtformer.support.errors import UserError

_SLOTS_PAIRS = 5_000  # from which on texts have enough numbers to learn slots from
_PATIENCE = 10  # validations without a better model
_POST_NORM_WARMUP = 1_000  # steps, at least
_FINE_TUNED_PAIRS = 2_000  # up to which fine-tuning has the least share of the peak of training from scratch
_FINE_TUNING_SHARES = 0.2, 1 / 3  # the least and the most (docs/pretrained.md)
_LEAST_WEIGHT_DECAY, _MOST_WEIGHT_DECAY = 0.01, 1.0
_DECAYING_PAIRS = 20_000  # up to which weights decay most (docs/performance.md)
_SCHEDULES_WITHOUT_END = ("constant", "inverse_sqrt")


class Size(NamedTuple):
    """The defaults for a corpus of up to ``max_pairs`` sentence pairs."""

    max_pairs: float
    preset: str
    vocab_size: int
    max_tokens: int
    max_epochs: int
    warmup_steps: int


SIZES = (
    Size(10_000, "tiny", 4_000, 1_024, 30, 200),
    Size(100_000, "small", 8_000, 2_048, 12, 400),
    Size(200_000, "small", 16_000, 2_048, 12, 400),
    Size(2_000_000, "small", 16_000, 4_096, 5, 2_000),
    Size(float("inf"), "base", 32_000, 8_192, 4, 4_000),
)


def size_for(n_pairs: int) -> Size:
    """Return the defaults for a corpus of ``n_pairs`` sentence pairs."""
    return next(size for size in SIZES if n_pairs <= size.max_pairs)


class ResolvedTokenizer(TokenizerConfig):
    """The settings of the tokenizer: its size, whether both languages share it, and whether it has slots."""

    vocab_size: PositiveInt
    joint: bool
    slots: bool = False  # in the configs of runs from before there were any


class ResolvedTraining(TrainingConfig):
    """The settings of training, with at least one limit."""

    max_tokens: PositiveInt
    optimizer: Literal["muon", "adamw", "adam"]
    learning_rate: PositiveFloat
    warmup_steps: int
    weight_decay: NonNegativeFloat
    precision: Precision
    threads: PositiveInt = 1
    early_stopping_patience: PositiveInt | None

    @property
    def shown_optimizer(self) -> str:
        """The optimizer and its weight decay; Adam has none."""
        return self.optimizer + f", weight decay {self.weight_decay:g}" * (self.optimizer != "adam")


class ResolvedConfig(Config):
    """A config without open settings: the data, the model and the machine have decided the rest."""

    tokenizer: ResolvedTokenizer
    training: ResolvedTraining


class Base(NamedTuple):
    """The settings that fine-tuning takes from a bundle.

    Attributes:
        model: the settings of its model.
        tokenizer: the settings of its tokenizer.
        prefixes: the tokens before the texts of each direction.
        is_tuned: whether it already translates in all directions of the data, so that training should change it little.
    """

    model: ModelConfig
    tokenizer: TokenizerConfig
    prefixes: Mapping[str, PrefixTokens] = MappingProxyType({})
    is_tuned: bool = True


@dataclass(frozen=True)
class Facts:
    """The facts about its data, its model and its machine that a run collects.

    Attributes:
        n_pairs: the number of training pairs; ``general`` ones count as often as they occur in an epoch.
        n_new: the number of training pairs that are not ``general``; None for all.
        base: the settings of the bundle that training starts from, if any.
        tokenizer: the settings of the SentencePiece models that the config names, if any.
        joint: whether there is one tokenizer for both languages, if ``tokenizer.joint`` is open.
        slots: whether the tokenizer has slots, if ``tokenizer.slots`` is open; None before there is one.
        vocab_size: the tokens of the tokenizer, or of the larger of two; None before there is one.
        precision: the value for ``precision: auto``.
        threads: the value for ``threads: auto``; a trial value before it is known.
        max_tokens: the value for ``max_tokens: auto``; a trial value before it is known.
        provenance: the inputs of the result besides the settings.
    """

    n_pairs: int
    n_new: int | None = None
    base: Base | None = None
    tokenizer: TokenizerConfig | None = None
    joint: bool = True
    slots: bool | None = None
    vocab_size: int | None = None
    precision: Precision = "fp32"
    threads: int = 1
    max_tokens: int = 64
    provenance: Provenance = field(default_factory=Provenance)


def resolve(config: Config, facts: Facts) -> ResolvedConfig:
    """Fill in the open settings of ``config``; keep all others.

    Raises:
        UserError: the size of the data chooses a model that contradicts what ``config`` sets.
    """
    size = size_for(facts.n_pairs)
    model = facts.base.model if facts.base else _sized(config.model, size, facts.n_pairs)
    tokenizer = facts.base.tokenizer if facts.base else facts.tokenizer or config.tokenizer
    sections = {
        "data": config.data.model_dump() | {"prefixes": (facts.base or config.data).prefixes},
        "tokenizer": tokenizer.model_dump()
        | {
            "vocab_size": tokenizer.vocab_size or facts.vocab_size or size.vocab_size,
            "joint": facts.joint if tokenizer.joint is None else tokenizer.joint,
            "slots": _has_slots(tokenizer, facts),
        },
        "model": model.model_dump(),
        "training": _settled(config.training, model, size, facts),
        "provenance": facts.provenance,
    }
    return ResolvedConfig.model_validate(config.model_dump() | sections)


def _has_slots(tokenizer: TokenizerConfig, facts: Facts) -> bool:
    """Tell whether a tokenizer has slots: by default, one that is trained on enough text."""
    if tokenizer.slots is not None:
        return tokenizer.slots
    if facts.slots is not None:
        return facts.slots
    return facts.n_pairs >= _SLOTS_PAIRS and tokenizer.type in ("unigram", "bpe")


def _sized(model: ModelConfig, size: Size, n_pairs: int) -> ModelConfig:
    """Choose the preset, if it is open; values that were set override it."""
    if model.preset != "auto":
        return model
    try:
        return ModelConfig.model_validate(model.model_dump(exclude_unset=True) | {"preset": size.preset})
    except ValidationError as error:
        reason = error.errors()[0]["ctx"]["error"]
        raise UserError(
            f"model: {reason}, because {n_pairs:,} training pairs select the preset {size.preset}: set both"
        ) from None


def _settled(training: TrainingConfig, model: ModelConfig, size: Size, facts: Facts) -> dict[str, object]:
    """Return the training settings with the open ones filled in."""
    suited = "adamw" if model.norm == "post" or training.lora else "muon"
    optimizer = suited if training.optimizer == "auto" else training.optimizer
    is_tuned = facts.base is not None and facts.base.is_tuned and not training.lora  # an adapter starts from zeros
    n_new = facts.n_pairs if facts.n_new is None else facts.n_new
    chosen: dict[str, object] = {
        "max_tokens": size.max_tokens,
        # Deep models with post-norm need a long warm-up (Xiong et al. 2020).
        "warmup_steps": max(size.warmup_steps, _POST_NORM_WARMUP) if model.norm == "post" else size.warmup_steps,
        "learning_rate": _peak_learning_rate(model, optimizer, fine_tuning_share(n_new) if is_tuned else 1),
        "weight_decay": _weight_decay(facts) if optimizer == "muon" else _LEAST_WEIGHT_DECAY,
    }
    if training.max_steps is None and training.max_minutes is None:
        chosen["max_epochs"] = size.max_epochs
    automatic: dict[str, object] = {
        "max_tokens": facts.max_tokens,
        "optimizer": optimizer,
        "precision": facts.precision,
        "threads": facts.threads,
        "early_stopping_patience": _PATIENCE if training.schedule in _SCHEDULES_WITHOUT_END else None,
    }
    given = training.model_dump()
    open_keys = {key: value for key, value in chosen.items() if given[key] is None}
    auto_keys = {key: value for key, value in automatic.items() if given[key] == "auto"}
    return given | open_keys | auto_keys


def fine_tuning_share(n_new: int) -> float:
    """Return the default peak of fine-tuning for a number of new pairs, relative to the peak of training from scratch.

    A small rate makes a model forget less; but many pairs have more to teach than it can learn with one.
    """
    least, most = _FINE_TUNING_SHARES
    return float(min(most, max(least, least * (n_new / _FINE_TUNED_PAIRS) ** (1 / 3))))


def _peak_learning_rate(model: ModelConfig, optimizer: str, share: float) -> float:
    """Return ``share`` of the peak of the paper's schedule (equation 3, 4,000 warm-up steps); higher for pre-norm."""
    paper = (4_000 * model.d_model) ** -0.5
    factor = 1.0 if model.norm == "post" else 3.0 if optimizer == "muon" else 1.5
    return round(factor * paper * share, 7)


def _weight_decay(facts: Facts) -> float:
    """Return the weight decay for Muon: the less text there is to learn from, the higher.

    In epochs, the time over which weights should average their updates hardly depends on the text (Wang and Aitchison
    2024). The weights of a trained model hardly decay, since it would lose what it knows.
    """
    share = 0 if facts.base else _DECAYING_PAIRS / max(_DECAYING_PAIRS, facts.n_pairs)
    return round(max(_LEAST_WEIGHT_DECAY, share * _MOST_WEIGHT_DECAY), 3)
