"""The config: every key, its type, its limits and its default.

The docstring under a field is its documentation; docs/config.md is generated from it. What the user leaves open,
:func:`mtformer.config.resolve` fills in; the run's ``config.yaml`` contains the result.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from mtformer.config.data import DataConfig, TokenizerConfig
from mtformer.config.search import SearchConfig
from mtformer.config.section import (
    BundlePath,
    Language,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    PositiveOrAuto,
    Probability,
    Section,
    TokensOrAuto,
    fill_in,
)
from mtformer.config.sources import expand_directions
from mtformer.model.architecture import (
    SPECIAL_IDS,
    ActivationName,
    Architecture,
    PositionsName,
    SpecialIds,
    require_widths,
)
from mtformer.support.hardware import Device

Precision = Literal["fp32", "bf16"]

_KEYS = ("n_encoder_layers", "n_decoder_layers", "d_model", "n_heads", "d_ff", "dropout", "positions")
PRESETS: dict[str, dict[str, Any]] = {
    # With rotary positions, small models learn more from little text (docs/performance.md).
    "tiny": dict(zip(_KEYS, (2, 2, 128, 4, 512, 0.2, "rotary"), strict=True)),
    "small": dict(zip(_KEYS, (3, 3, 256, 4, 1024, 0.2, "rotary"), strict=True)),
    # Vaswani et al. 2017, table 3, rows "base" and "big".
    "base": dict(zip(_KEYS, (6, 6, 512, 8, 2048, 0.1, "sinusoidal"), strict=True), norm="post"),
    "big": dict(zip(_KEYS, (6, 6, 1024, 16, 4096, 0.3, "sinusoidal"), strict=True), norm="post"),
}


class ModelConfig(Section):
    """The Transformer. Other keys override the values of ``preset``."""

    preset: Literal["auto", "tiny", "small", "base", "big"] = "auto"
    """A named size; `auto` chooses one by the size of the data. `base` and `big` are the paper's: they make post-norm
    the default of `norm`, which also lowers the default of `learning_rate`. The others make rotary the default of
    `positions`."""
    d_model: PositiveInt = 256
    """The width of embeddings and layers."""
    n_heads: PositiveInt = 4
    """The number of attention heads; must divide `d_model`."""
    d_ff: PositiveInt = 1024
    """The width inside the feed-forward layers."""
    n_encoder_layers: PositiveInt = 3
    """Layers of the encoder."""
    n_decoder_layers: PositiveInt = 3
    """Layers of the decoder."""
    dropout: Probability = 0.2
    """Dropout of sub-layer outputs and of embeddings, as in the paper."""
    attention_dropout: Probability = 0.0
    """Dropout of attention weights; the paper's equations have none, but its implementation and many tutorials do."""
    norm: Literal["pre", "post"] = "pre"
    """Normalize before each sub-layer (`pre`), or after its residual sum as in the paper (`post`)."""
    feed_forward: ActivationName = "relu"
    """The activation of the feed-forward network: ReLU as in the paper, or another."""
    positions: PositionsName = "sinusoidal"
    """The position encoding. `sinusoidal` is the paper's, and the default of its presets. `rotary` (Su et al. 2021)
    rotates queries and keys; it is the default of the smaller presets, and `export --to huggingface` does not support
    it. `learned` is trained. `none`, for comparison, hides the order of the source. `fairseq` and `marian` are those of
    imported models."""
    tie_embeddings: bool = True
    """Share the target embedding with the output projection, and with the source embedding if the tokenizer is
    joint."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {**PRESETS.get(str(given.get("preset")), {}), **given}

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "ModelConfig":
        require_widths(self.d_model, self.n_heads, self.positions)
        return self

    def architecture(
        self,
        *,
        src_vocab_size: int,
        tgt_vocab_size: int,
        joint: bool,
        max_length: int,
        special_ids: SpecialIds = SPECIAL_IDS,
    ) -> Architecture:
        """Return the architecture of a model with these settings.

        Args:
            src_vocab_size: the number of source tokens.
            tgt_vocab_size: the number of target tokens.
            joint: whether both languages share one vocabulary; then tied embeddings are tied three ways.
            max_length: the number of positions that get a learned encoding.
            special_ids: the ids that stand for no text.
        """
        return Architecture(
            **self.model_dump(exclude={"preset", "feed_forward"}),
            activation=self.feed_forward,
            joint_vocab=joint,
            src_vocab_size=src_vocab_size,
            tgt_vocab_size=tgt_vocab_size,
            special_ids=special_ids,
            max_length=max_length,
        )

    @classmethod
    def of(cls, architecture: Architecture) -> "ModelConfig":
        """Return the settings of an architecture."""
        values = architecture.model_dump(include=set(cls.model_fields))
        return cls(**values, feed_forward=architecture.activation)


class LoraConfig(Section):
    """A low-rank adapter (LoRA, Hu et al. 2021) for all matrices of the layers; nothing else is trained."""

    rank: int = Field(default=8, ge=1, le=1024)
    """The rank of the update of each matrix; a higher rank can change the model more and takes more space."""


class TrainingConfig(Section):
    """Optimization and its limits. A run ends at the first limit that it reaches."""

    max_steps: PositiveInt | None = None
    """Stop after this many optimizer updates."""
    max_epochs: PositiveInt | None = None
    """Stop after this many passes over the training data. Default: by the size of the data, if no limit is set."""
    max_minutes: PositiveFloat | None = None
    """Stop after this many minutes of training; the schedule follows the clock, so a rerun ends with different
    weights."""
    init_from: BundlePath | None = None
    """A bundle to fine-tune, or the folder of its run; a larger `tokenizer.vocab_size` adds tokens to it. It is scored
    before the first step, and stays the best model until another one is better."""
    like: dict[Language, Language] = Field(default={})
    """For new target languages of a multilingual model: `{nl: de}` initializes the token that asks for `nl` with that
    for `de`."""
    freeze: list[Literal["embeddings", "encoder", "decoder"]] = Field(default=[])
    """The parts of the model of `init_from` to keep fixed; `embeddings` are those of tokens and positions, and the
    output projection."""
    max_forgetting: PositiveFloat | None = 2.0
    """How much BLEU the best model may lose on the `general` sources of `data.valid`; `null` for no limit."""
    lora: LoraConfig | None = None
    """Train a small adapter for the model of `init_from`, which stays fixed: `{rank: 8}`. The run saves it as
    `adapter.safetensors`, for `translate --adapter`, and merged into the model as `model.safetensors`."""
    max_tokens: TokensOrAuto | None = None
    """The token budget of a batch: rows times the longest side, padding included. Default: by the size of the data.
    `auto`: the largest that fits into free memory when the run starts."""
    grad_accum_steps: PositiveInt = 1
    """Batches per optimizer update."""
    optimizer: Literal["auto", "muon", "adamw", "adam"] = "auto"
    """`muon`: Muon for the matrices of the layers and AdamW for the rest; `adamw`: AdamW for all; `adam`: the paper's
    Adam, without weight decay. `auto` is `muon` for pre-norm, and `adamw` for post-norm and `lora`."""
    learning_rate: PositiveFloat | None = None
    """The learning rate before warm-up and decay are applied. Default: the paper's, (4000 · `d_model`)^-½, for
    post-norm; for pre-norm, 3 times that with Muon and 1.5 times that without. With `init_from`, a fifth of it for up
    to 2,000 pairs that are not `general`, rising to a third for 10,000 or more, unless the direction is new to that
    model or `lora` is set."""
    schedule: Literal["linear", "cosine", "constant", "inverse_sqrt"] = "linear"
    """How the learning rate decays: from the first step on to zero at the first limit (`linear`, `cosine`); not at all
    (`constant`); or as in the paper (`inverse_sqrt`). The warm-up multiplies this: with `linear` and a warm-up of a
    tenth of the run, the highest rate is nine tenths of `learning_rate`."""
    warmup_steps: int | None = Field(default=None, ge=0)
    """The number of warm-up steps, in which the learning rate rises to its peak; at most a tenth of the run, or a third
    with post-norm. Default: by the size of the data, and at least 1,000 with post-norm."""
    weight_decay: NonNegativeFloat | None = None
    """Weight decay of AdamW and Muon, on matrices only; each update multiplies them by one minus its product with the
    learning rate. Default with Muon: 20,000 divided by the number of training pairs, at least 0.01 and at most 1.
    Without Muon, and with `init_from`: 0.01."""
    label_smoothing: Probability = 0.1
    """The share of probability spread over the whole vocabulary."""
    max_grad_norm: PositiveFloat = 1.0
    """The maximum norm of the gradient; larger gradients are scaled down."""
    on_fault: Literal["stop", "skip"] = "stop"
    """What to do on a non-finite loss or gradient, or a spike of the loss: stop, or skip the update."""
    spike_factor: float | None = Field(default=None, gt=1, allow_inf_nan=False)
    """A loss this many times its moving average is a spike; `null`: spikes are not detected."""
    ema_decay: Probability = 0.0
    """Validate and save the exponential moving average of the weights with this decay, such as 0.999; 0: no average."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """`bf16` computes matrix products in bfloat16. `auto` does so where that is faster."""
    threads: PositiveOrAuto = "auto"
    """The number of parts of each batch whose gradients are computed in parallel, each on its own core. `auto`: one per
    core, but at most one per 512 of `max_tokens`. On a GPU and with `shard`, batches are not divided."""
    device: Device = "auto"
    """Where to train; `auto` takes `cuda` when there is one, and never `mps`, which has not been measured."""
    shard: bool = False
    """Shard weights, gradients and optimizer state across processes (FSDP2), for models too large for one device; no
    effect with one process."""
    seed: int = Field(default=1, ge=0, lt=2**31)
    """The seed of all random choices."""
    log_every: PositiveInt = 50
    """Steps between lines in `metrics.jsonl`."""
    validate_every: PositiveInt | None = None
    """Steps between validations. Default: an epoch, but at least 100 and at most 1,000 steps."""
    checkpoint_every: PositiveInt | None = None
    """Steps between checkpoints. Default: `validate_every`."""
    keep_last: PositiveInt = 2
    """The number of newest checkpoints to keep."""
    keep_early: int = Field(default=6, ge=0)
    """The number of models from earlier steps (25, 50, 100, 200, …) to keep for `mtformer explain --checkpoints`."""
    early_stopping_metric: Literal["bleu", "chrf", "ter", "loss"] = "bleu"
    """The metric that selects the best model; the validation loss breaks ties."""
    early_stopping_patience: PositiveOrAuto | None = "auto"
    """Stop after this many validations without a better model; `null`: never. `auto`: 10 with `constant` and
    `inverse_sqrt`; never with the schedules that decay to zero, since models improve most while the rate decays."""
    log_to: list[Literal["tensorboard", "wandb"]] = Field(default=[])
    """Where to log metrics besides `metrics.jsonl`: TensorBoard files in the run's folder, or Weights & Biases."""
    report: bool = False
    """Write `report.html` in the run's folder after each validation; `mtformer report` adds scores of the test set."""

    def _contradictions(self) -> Iterator[str]:
        if self.like and self.init_from is None:
            yield "like without init_from, the model that the languages are new to: set both or neither"
        if self.like and self.lora:
            yield "like with lora, which adds no tokens: set one"
        if self.freeze and self.init_from is None:
            yield "freeze without init_from would keep random weights fixed: set both or neither"
        if len(set(self.freeze)) == 3:
            yield "freeze names every part: nothing is left to train"
        if self.lora and self.init_from is None:
            yield "lora without init_from, the model that the adapter is for: set both or neither"
        if self.lora and self.freeze:
            yield "lora keeps all parts of the model fixed: remove freeze"
        if self.lora and self.shard:
            yield "lora with shard: an adapter is too small to be divided; set one"
        if self.shard and self.max_tokens == "auto":
            yield "max_tokens = auto with shard: it measures a whole model on each device; set a number"


class EvalConfig(Section):
    """Scores."""

    bleu_tokenize: Literal["auto", "13a", "intl", "char", "zh", "none"] = "auto"
    """sacreBLEU's tokenization; `auto`: `zh` for Chinese; `char` for Japanese, Korean and Thai; else `13a`. Outside of
    training, `auto` is `ja-mecab` or `ko-mecab` where `sacrebleu[ja]` or `sacrebleu[ko]` is installed."""
    n_samples: int = Field(default=3, ge=0)
    """Sample translations recorded in `samples.jsonl` at each validation; `train --samples` shows them as well."""


_NO_NAME = r'/\\<>:"|?*\x00-\x1f'  # characters that no folder's name has on Windows


def valid_run_name(name: str) -> str:
    """Return ``name`` without what ``run.name`` does not allow; ``run`` if nothing is left."""
    return re.sub(r"^[\s.]+|[\s.]+$", "", re.sub(f"[{_NO_NAME}]", "_", name)) or "run"


class RunConfig(Section):
    """The folder of the run: ``dir/name``."""

    dir: Path = Path("runs")
    """The folder of all runs, relative to the current folder."""
    name: str | None = Field(default=None, pattern=rf"^[^\s.{_NO_NAME}]([^{_NO_NAME}]*[^\s.{_NO_NAME}])?$")
    """The name of the run's folder in it. Default: the name of the config file."""


class Change(BaseModel):
    """A setting or another input of a run that differed when the run was resumed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    step: int
    key: str
    old: JsonValue
    new: JsonValue


class Provenance(BaseModel):
    """What a result depends on besides the settings. `train` writes it; a user cannot set it.

    Attributes:
        versions: of the software, at present.
        hardware: the device and the number of processes, at present.
        fingerprints: of the training and the validation text, of the glossary of annotated terms, and of the model that
            training started from.
        changes: the changes during the run, in order of steps; the settings of the config are those of the last step.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    versions: dict[str, str] = {}
    hardware: dict[str, str] = {}
    fingerprints: dict[str, str] = {}
    changes: list[Change] = []


class Config(Section):
    """A whole config."""

    data: DataConfig
    tokenizer: TokenizerConfig = Field(default_factory=TokenizerConfig)
    model: ModelConfig = Field(default_factory=ModelConfig)
    training: TrainingConfig = Field(default_factory=TrainingConfig)
    search: SearchConfig = Field(default_factory=SearchConfig)
    eval: EvalConfig = Field(default_factory=EvalConfig)
    run: RunConfig = Field(default_factory=RunConfig)
    provenance: Provenance = Field(default_factory=Provenance)
    """What the result depends on besides the settings; written by `train`, ignored when given."""

    def _contradictions(self) -> Iterator[str]:
        if self.training.init_from is None and any(source.general for source in (*self.data.train, *self.data.valid)):
            yield (
                "data: a general source without training.init_from, the model trained on such text: set both or neither"
            )
        limit, default = self.training.max_forgetting, TrainingConfig.model_fields["max_forgetting"].default
        if limit not in (None, default) and not any(source.general for source in self.data.valid):
            yield "training.max_forgetting without a general source of data.valid, which shows it: set both or neither"
        if self.training.init_from is not None and self.tokenizer.paths:
            yield (
                "training.init_from with tokenizer.model: a bundle is fine-tuned with the tokenizer that it contains; "
                "remove one of the two"
            )
        if self.data.terms is not None and self.tokenizer.joint is False:
            yield (
                "data.terms with tokenizer.joint = false: a model copies the translations of terms, which needs the "
                "same tokens on both sides; set tokenizer.joint to true"
            )

    @model_validator(mode="before")
    @classmethod
    def _name_languages(cls, given: Any) -> Any:
        """Replace ``{src_lang}`` and ``{tgt_lang}`` in paths and the run's name: one config serves both directions.

        With ``data.directions``, each source is repeated for each of them.
        """
        if not isinstance(given, dict) or not isinstance(given.get("data"), dict):
            return given
        data = given["data"]
        if data.get("directions"):
            data = expand_directions(data)
        languages = {f"{{{key}}}": data.get(key) for key in ("src_lang", "tgt_lang")}
        return given | {"data": fill_in(data, languages)} | {"run": fill_in(given.get("run", {}), languages)}
