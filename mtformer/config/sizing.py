"""Defaults that depend on how much text there is to learn from."""

from typing import NamedTuple

from pydantic import ValidationError

from mtformer.config.schema import Config, ModelConfig
from mtformer.errors import UserError


class Size(NamedTuple):
    """What a corpus of up to ``max_pairs`` sentence pairs gets by default."""

    max_pairs: float
    preset: str
    vocab_size: int
    max_tokens: int
    max_epochs: int
    warmup_steps: int


SIZES = (
    Size(10_000, "tiny", 2_000, 1_024, 30, 200),
    Size(200_000, "small", 8_000, 2_048, 12, 400),
    Size(2_000_000, "small", 16_000, 4_096, 5, 2_000),
    Size(float("inf"), "base", 32_000, 8_192, 4, 4_000),
)


def sized_to_data(config: Config, n_pairs: int) -> Config:
    """Fill in what ``config`` leaves open and the number of training pairs decides."""
    size = next(size for size in SIZES if n_pairs <= size.max_pairs)
    model = config.model
    if model.preset == "auto":
        given = model.model_dump(exclude_unset=True) | {"preset": size.preset}
        try:
            model = ModelConfig.model_validate(given)
        except ValidationError as error:
            reason = error.errors()[0]["ctx"]["error"]
            raise UserError(f"model: {reason}, as {n_pairs:,} pairs take the preset {size.preset}: give both") from None
    training = config.training
    chosen: dict[str, float] = {"max_tokens": size.max_tokens, "warmup_steps": size.warmup_steps}
    chosen["learning_rate"] = _peak_learning_rate(model)
    if training.max_steps is None and training.max_minutes is None:
        chosen["max_epochs"] = size.max_epochs
    open_keys = {key: value for key, value in chosen.items() if getattr(training, key) is None}
    tokenizer = config.tokenizer
    if tokenizer.vocab_size is None:
        tokenizer = tokenizer.model_copy(update={"vocab_size": size.vocab_size})
    return config.model_copy(
        update={"model": model, "tokenizer": tokenizer, "training": training.model_copy(update=open_keys)}
    )


def _peak_learning_rate(model: ModelConfig) -> float:
    """The peak of the paper's schedule (equation 3, 4,000 warm-up steps); pre-norm bears, and profits from, more."""
    paper = (4_000 * model.d_model) ** -0.5
    return round(paper if model.norm == "post" else 1.5 * paper, 7)
