"""The config: every key, its type, its limits and its default.

The docstring under a field is its documentation; the config table in the README is generated from it. What the user
leaves open, :func:`mtformer.config.resolve` fills in; the run's ``config.yaml`` contains the result.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    Tag,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from mtformer.errors import UserError

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"n_encoder_layers": 2, "n_decoder_layers": 2, "d_model": 128, "n_heads": 4, "d_ff": 512, "dropout": 0.2},
    "small": {"n_encoder_layers": 3, "n_decoder_layers": 3, "d_model": 256, "n_heads": 4, "d_ff": 1024, "dropout": 0.2},
    # Most of translating is spent in the decoder, which runs once for each token (Kasai et al. 2021).
    "fast": {"n_encoder_layers": 6, "n_decoder_layers": 2, "d_model": 256, "n_heads": 4, "d_ff": 1024, "dropout": 0.2},
    "fastest": {
        "n_encoder_layers": 12,
        "n_decoder_layers": 1,
        "d_model": 256,
        "n_heads": 4,
        "d_ff": 1024,
        "dropout": 0.2,
    },
    # Vaswani et al. 2017, table 3, rows "base" and "big".
    "base": {
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "d_model": 512,
        "n_heads": 8,
        "d_ff": 2048,
        "dropout": 0.1,
        "norm": "post",
    },
    "big": {
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "d_model": 1024,
        "n_heads": 16,
        "d_ff": 4096,
        "dropout": 0.3,
        "norm": "post",
    },
}

_MAX_BEAM_SIZE = 64
_MAX_SAMPLES = 1_000  # of a line


def _resolve(path: Path, info: ValidationInfo) -> Path:
    """Make ``path`` absolute, from the folder of the config file that is being read, and require the file."""
    base = (info.context or {}).get("base")
    if base is None:  # the config of a run: its files may be on another machine
        return path
    try:
        path = Path(os.path.abspath(base / path.expanduser()))  # noqa: PTH100 (links keep their names)
        if path.is_file():
            return path
        is_folder = path.is_dir()
    except (OSError, RuntimeError):  # a name that is too long, or ~ of an unknown user
        is_folder = False
    raise ValueError(f"{path} is a folder, not a file" if is_folder else f"there is no file {path}")


def fill_in(value: Any, replacements: dict[str, Any]) -> Any:
    """Replace the keys of ``replacements`` in all text inside ``value``, unless their value is no text."""
    if isinstance(value, dict):
        return {key: fill_in(item, replacements) for key, item in value.items()}
    if isinstance(value, list):
        return [fill_in(item, replacements) for item in value]
    if isinstance(value, str):
        for old, new in replacements.items():
            value = value.replace(old, new) if isinstance(new, str) else value
    return value


InputPath = Annotated[Path, AfterValidator(_resolve)]
Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}([-_][A-Za-z0-9]+)*$")]
Probability = Annotated[float, Field(ge=0, lt=1)]
PositiveInt = Annotated[int, Field(ge=1)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Precision = Literal["fp32", "bf16"]
SearchPrecision = Literal["fp32", "bf16", "int8"]
_number_or_auto = Discriminator(lambda value: "[auto]" if value == "auto" else "[number]")
TokensOrAuto = Annotated[
    Annotated[int, Field(ge=64), Tag("[number]")] | Annotated[Literal["auto"], Tag("[auto]")], _number_or_auto
]
PatienceOrAuto = Annotated[
    Annotated[int, Field(ge=1), Tag("[number]")] | Annotated[Literal["auto"], Tag("[auto]")], _number_or_auto
]


class Section(BaseModel):
    """The base of all sections: unknown keys are errors, and instances are immutable."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # a command needs a few sections only


class TextFiles(Section):
    """Two text files, where line n of one is the translation of line n of the other; plain or ``.gz``."""

    src: InputPath
    """The text in the source language; in a path, `{src_lang}` and `{tgt_lang}` stand for the language codes."""
    tgt: InputPath
    """The text in the target language."""


class TsvFile(Section):
    """One file with a pair on each line: source, tab, target; further columns are ignored; plain or ``.gz``."""

    tsv: InputPath
    """The file."""


class JsonlFile(Section):
    """One file with a JSON object on each line; plain or ``.gz``."""

    jsonl: InputPath
    """The file."""
    src_key: str | None = None
    """The key of the source text. Default: the code of the source language."""
    tgt_key: str | None = None
    """The key of the target text. Default: the code of the target language."""


class HubDataset(Section):
    """A data set of the Hugging Face hub, or a local folder in its format, read through the ``datasets`` library."""

    hf: str
    """The data set's id, such as ``bentrevett/multi30k``."""
    config: str | None = None
    """The configuration of the data set, if it has several."""
    split: str
    """The split to read, such as ``train``."""
    src_column: str | None = None
    """The column of the source text. Default: the code of the source language."""
    tgt_column: str | None = None
    """The column of the target text. Default: the code of the target language."""


class BuiltinText(Section):
    """A corpus that ships with mtformer: the phrasebook, generated by a grammar of English, German and Chinese."""

    builtin: Literal["phrasebook"]
    """The name of the corpus."""
    split: Literal["train", "valid", "test", "compositional", "ambiguous", "pronouns"] = "train"
    """Which sentences; no sentence of `train` is in another split."""
    size: PositiveInt = 60_000
    """The maximum number of sentences; `train` has any number, the others have 1,000."""
    seed: int = Field(default=1, ge=0)
    """The seed that draws the sentences of `train`."""


SOURCE_KINDS: dict[str, type[Section]] = {
    "src/tgt": TextFiles,
    "tsv": TsvFile,
    "jsonl": JsonlFile,
    "hf": HubDataset,
    "builtin": BuiltinText,
}


def _source_kind(value: Any) -> str | None:
    """Return the kind of a source, by the key that only this kind has."""
    keys = set(value if isinstance(value, dict) else getattr(type(value), "model_fields", ()))
    if keys & {"src", "tgt"}:
        return "src/tgt"
    return next((kind for kind in SOURCE_KINDS if kind in keys), None)


Source = Annotated[
    Annotated[TextFiles, Tag("src/tgt")]
    | Annotated[TsvFile, Tag("tsv")]
    | Annotated[JsonlFile, Tag("jsonl")]
    | Annotated[HubDataset, Tag("hf")]
    | Annotated[BuiltinText, Tag("builtin")],
    Discriminator(_source_kind),
]


class DataConfig(Section):
    """The languages and the text."""

    src_lang: Language
    """The source language, as in `en`."""
    tgt_lang: Language
    """The target language, as in `de`."""
    train: list[Source] = Field(min_length=1)
    """The sources to train on, one or more."""
    valid: list[Source] = Field(min_length=1)
    """The sources that select the best model."""
    test: list[Source] = []
    """The sources that `mtformer eval` scores."""
    max_length: int = Field(default=256, ge=8, le=4096)
    """The maximum number of tokens, EOS included, on each side of a training pair; longer pairs are dropped."""
    max_ratio: float = Field(default=6.0, ge=1, allow_inf_nan=False)
    """The maximum ratio between the lengths of the two sides of a training pair; others are dropped."""
    terms: InputPath | None = None
    """A glossary, whose terms are annotated with their translations in some training pairs that have both: the model
    learns to translate terms as annotated, for `translate --terms-mode soft` (Dinu et al. 2019)."""
    terms_share: float = Field(default=0.3, gt=0, le=1)
    """The share of the pairs in which to annotate terms of `terms`; each epoch draws others."""

    @model_validator(mode="after")
    def _languages_differ(self) -> "DataConfig":
        if self.src_lang == self.tgt_lang:
            raise ValueError(f"src_lang and tgt_lang are both {self.src_lang}")
        return self


class TokenizerConfig(Section):
    """SentencePiece (Kudo and Richardson 2018). A tokenizer for Chinese alone keeps tokens as short as words."""

    type: Literal["unigram", "bpe"] = "unigram"
    """The algorithm; with small vocabularies, BPE leaves more words whole."""
    vocab_size: int | None = Field(default=None, ge=260, le=256_000)
    """The number of tokens. Separate tokenizers have fewer where a side of the text does not support as many. Default:
    by the size of the data."""
    joint: bool | None = None
    """One tokenizer for both languages, or one for each. Default: joint, unless only one of the two languages separates
    words by spaces."""
    character_coverage: float | None = Field(default=None, ge=0.9, le=1)
    """The share of characters that become tokens; the others are spelled in bytes. Default: by language."""
    sampling: float = Field(default=0.0, ge=0, le=1)
    """Sample another segmentation in each epoch: the alpha of Kudo 2018, 0.1 to 0.5, or BPE's merge dropout."""


class ModelConfig(Section):
    """The Transformer. Keys beside ``preset`` change single values of it."""

    preset: Literal["auto", "tiny", "small", "fast", "fastest", "base", "big"] = "auto"
    """Named sizes; `auto` goes by the size of the data. `fast` and `fastest` are as wide as `small`, with more of an
    encoder and less of a decoder: 6 and 2 layers, 12 and 1. `base` and `big` are the paper's: they make post-norm the
    default of `norm`, which also lowers the default of `learning_rate`."""
    d_model: PositiveInt = 256
    """The width of embeddings and layers."""
    n_heads: PositiveInt = 4
    """Attention heads; must divide `d_model`."""
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
    layer_drop: Probability = 0.0
    """The probability of skipping a layer in training (LayerDrop, Fan et al. 2020); for deep models."""
    norm: Literal["pre", "post"] = "pre"
    """Normalize before each sub-layer, or after its residual sum as in the paper."""
    norm_type: Literal["layernorm", "rmsnorm"] = "layernorm"
    """The paper's LayerNorm, or RMSNorm (Zhang and Sennrich 2019), which has neither mean nor bias."""
    feed_forward: Literal["relu", "gelu", "swiglu"] = "relu"
    """The paper's network, or one with GELU, or gated (Shazeer 2020): three matrices of `d_ff` instead of two."""
    positions: Literal["sinusoidal", "learned", "rotary", "none"] = "sinusoidal"
    """The position encoding: the paper's, a learned one, or rotations of queries and keys (Su et al. 2021); `none`, for
    comparison, hides the order of the source."""
    tie_embeddings: bool = True
    """Share the embedding of the target with the output projection, and with the source if the tokenizer is joint."""

    @model_validator(mode="before")
    @classmethod
    def _fill_from_preset(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        return {**PRESETS.get(str(given.get("preset")), {}), **given}

    @model_validator(mode="after")
    def _heads_divide_width(self) -> "ModelConfig":
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads = {self.n_heads} does not divide d_model = {self.d_model}")
        if self.d_model % 2:
            raise ValueError(f"d_model = {self.d_model} is odd; the position encoding needs an even width")
        if self.positions == "rotary" and self.d_model // self.n_heads % 2:
            raise ValueError(
                f"positions = rotary needs heads of even width, but d_model = {self.d_model} / "
                f"n_heads = {self.n_heads} is odd"
            )
        return self


class TrainingConfig(Section):
    """The optimization and its limits. A run ends at the first limit that it reaches."""

    max_steps: PositiveInt | None = None
    """Stop after this many optimizer updates."""
    max_epochs: PositiveInt | None = None
    """Stop after this many passes over the training data. Default, if no limit is set: by its size."""
    max_minutes: PositiveFloat | None = None
    """Stop after this many minutes of training; the schedule follows the clock, so a rerun gives other weights."""
    init_from: InputPath | None = None
    """A bundle to fine-tune; a larger `tokenizer.vocab_size` adds tokens to it."""
    freeze: list[Literal["embeddings", "encoder", "decoder"]] = []
    """The parts of that model to keep fixed; `embeddings` are those of tokens and positions, and the output."""
    max_tokens: TokensOrAuto | None = None
    """The token budget of a batch: rows times the longest side, padding included. Default: by the size of the data.
    `auto`: the largest that fits into the memory that is free when the run starts."""
    grad_accum_steps: PositiveInt = 1
    """Batches per optimizer update."""
    optimizer: Literal["adamw", "adam", "muon"] = "adamw"
    """AdamW, the paper's Adam (no weight decay), or Muon for the matrices of the layers and AdamW for the rest."""
    learning_rate: PositiveFloat | None = None
    """The peak. Default: the paper's, (4000 · `d_model`)^-½, for post-norm; 1.5 times that for pre-norm."""
    schedule: Literal["linear", "cosine", "wsd", "constant", "inverse_sqrt"] = "linear"
    """How the learning rate decays after the warm-up: to zero at the first limit, throughout (`linear`, `cosine`) or in
    the last fifth (`wsd`: warm-up–stable–decay, Hu et al. 2024); not at all (`constant`); or as in the paper."""
    warmup_steps: int | None = Field(default=None, ge=0)
    """Steps in which the learning rate rises to its peak. Default: by the size of the data."""
    weight_decay: float = Field(default=0.01, ge=0, allow_inf_nan=False)
    """Weight decay of AdamW and Muon, on matrices only."""
    label_smoothing: Probability = 0.1
    """The share of probability spread over the whole vocabulary."""
    r_drop: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    """The weight of R-Drop (Liang et al. 2021), which makes predictions with different dropout agree; often 5."""
    max_grad_norm: PositiveFloat = 1.0
    """The maximum norm of the gradient; larger gradients are scaled down."""
    on_fault: Literal["stop", "skip"] = "stop"
    """What to do on a non-finite loss or gradient, or a spike of the loss: stop, or skip the update."""
    spike_factor: float | None = Field(default=None, gt=1, allow_inf_nan=False)
    """A loss this many times the moving average is a spike; `null`: no loss is."""
    ema_decay: Probability = 0.0
    """Validate and keep the exponential moving average of the weights with this decay, such as 0.999; 0: no average."""
    precision: Literal["auto", "fp32", "bf16"] = "auto"
    """`bf16` computes matrix products in bfloat16. `auto` does on a GPU that supports it, and on a CPU that supports it
    if a few updates, measured before training, are faster."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to train; `auto` takes a GPU when there is one."""
    shard: bool = False
    """Give each of several processes a share of weights, gradients and moments (FSDP2), for models too large for one
    device; no effect with one process."""
    seed: int = Field(default=1, ge=0, lt=2**31)
    """The seed of everything random."""
    log_every: PositiveInt = 50
    """Steps between lines in `metrics.jsonl`."""
    validate_every: PositiveInt | None = None
    """Steps between validations. Default: an epoch, but at least 100 and at most 1,000 steps."""
    checkpoint_every: PositiveInt | None = None
    """Steps between checkpoints. Default: as `validate_every`."""
    keep_last: PositiveInt = 2
    """The number of newest checkpoints to keep."""
    keep_best: int = Field(default=0, ge=0)
    """The number of best checkpoints to keep, which `mtformer average` can average."""
    early_stopping_metric: Literal["bleu", "chrf", "ter", "loss"] = "bleu"
    """The metric that selects the best model; the validation loss breaks ties."""
    early_stopping_patience: PatienceOrAuto | None = "auto"
    """Stop after this many validations without a better model; `null`: never. `auto`: 10 with `constant` and
    `inverse_sqrt`; never with the schedules that decay to zero, since models improve most while the rate decays."""
    log_to: list[Literal["tensorboard", "wandb"]] = []
    """Where metrics go besides `metrics.jsonl`: TensorBoard files in the run's folder, or Weights & Biases."""
    report: bool = False
    """Write `report.html` in the run's folder after each validation; `mtformer report` adds scores of the test set."""

    @model_validator(mode="after")
    def _something_to_train(self) -> "TrainingConfig":
        if self.freeze and self.init_from is None:
            raise ValueError("freeze without init_from would keep random weights fixed: set both or neither")
        if len(set(self.freeze)) == 3:
            raise ValueError("freeze names every part: nothing is left to train")
        return self

    @model_validator(mode="after")
    def _sharded_ranks_need_a_given_size(self) -> "TrainingConfig":
        if self.shard and self.max_tokens == "auto":
            raise ValueError("max_tokens = auto tries a whole model on each device, which shard avoids: set a number")
        return self


class SearchConfig(Section):
    """How translations are searched for."""

    beam_size: int = Field(default=4, ge=1, le=_MAX_BEAM_SIZE)
    """Hypotheses kept at each step; 1 is greedy search."""
    length_penalty: float = Field(default=0.6, ge=0, le=10, allow_inf_nan=False)
    """The exponent alpha of Wu et al. 2016; larger means longer translations."""
    max_length_factor: float = Field(default=2.0, gt=0, le=100)
    """A translation may have this many tokens for each source token, plus `max_length_offset`."""
    max_length_offset: int = Field(default=20, ge=1, le=10_000)
    """Tokens that a translation may have beyond `max_length_factor` times those of the source."""
    batch_tokens: int = Field(default=4096, ge=1, le=2**16)
    """The most source tokens in a batch of sentences, padding included; more than 4 beams make batches smaller, and so
    does a large vocabulary: a sentence counts as at least 4 tokens for every 1,024 in it (one for greedy search)."""

    def limit(self, n_tokens: int) -> int:
        """Return the maximum length of the translation of ``n_tokens`` source tokens, EOS included, in tokens."""
        return int(self.max_length_factor * n_tokens) + self.max_length_offset

    def updated(self, **changes: float | str | None) -> "SearchOptions":
        """Return the options of a call: these settings with ``changes``, of which those that are None do not count.

        Without ``beam_size`` among them, the beam is made to fit: it is 1 with ``sample``; else it widens to ``n_best``
        or ``mbr`` hypotheses, and to a multiple of ``beam_groups``.

        Raises:
            UserError: an option does not exist, its value is not allowed, or it does not go with another.
        """
        given = {key: value for key, value in changes.items() if value is not None}
        options = self.model_dump() | given
        if "beam_size" not in given:
            options["beam_size"] = _fitting_beam_size(options)
        try:
            return SearchOptions.model_validate(options)
        except ValidationError as error:
            problems = []
            for details in error.errors():
                option = "".join(f"{key} = {details['input']}: " for key in details["loc"])
                problems.append(option + details["msg"].removeprefix("Value error, "))
            raise UserError("search options: " + "; ".join(problems)) from None


class SearchOptions(SearchConfig):
    """How to search in one call: the settings of the config, and what only a call may ask for."""

    precision: SearchPrecision = "fp32"
    """The type of numbers that are multiplied. `bf16`: half the size; it needs a GPU or processor with instructions for
    it. `int8`: a quarter, quantized on the fly; on a CPU only. Scores of given translations are computed in `fp32`."""
    n_best: int = Field(default=1, ge=1, le=_MAX_SAMPLES)
    """Translations returned for each line, at most `beam_size`; with `sample`, the number of samples."""
    beam_groups: int = Field(default=1, ge=1, le=_MAX_BEAM_SIZE)
    """Diverse beam search (Vijayakumar et al. 2018): the number of groups that the beams are divided into."""
    diversity: float = Field(default=0.5, ge=0, le=100)
    """Diverse beam search: what a token costs for each beam of another group that has taken it at the same step."""
    mbr: int = Field(default=0, ge=0, le=_MAX_SAMPLES)
    """Minimum Bayes risk: choose among this many candidates, the best ones or samples, the one most similar to all."""
    coverage_penalty: float = Field(default=0.0, ge=0, le=100)
    """Beta of Wu et al. 2016: rank the `beam_size` best hypotheses also by how much of the source they attend to."""
    min_length: int = Field(default=0, ge=0, le=10_000)
    """The minimum length of a translation in tokens; its maximum length takes precedence."""
    max_length: int | None = Field(default=None, ge=1, le=10_000)
    """The maximum length of a translation in tokens, if `max_length_factor` allows for more."""
    repetition_penalty: float = Field(default=1.0, ge=1, le=100)
    """A token that is in the translation already and has probability p counts as if it had p to this power."""
    no_repeat_ngram_size: int = Field(default=0, ge=0, le=1_000)
    """No sequence of this many tokens occurs twice in a translation; 0: any may."""
    sample: bool = False
    """Draw each token at random by the model's probabilities instead of searching for the best translation."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Sampling: logits are divided by this; below 1, likely tokens become more likely."""
    top_k: int = Field(default=0, ge=0)
    """Sampling: draw from this many likeliest tokens only; 0: from all."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sampling: draw from the fewest likeliest tokens whose probabilities sum up to this."""
    epsilon: float = Field(default=0.0, ge=0, lt=1)
    """Sampling: draw from the tokens with at least this probability, or else from the likeliest."""
    seed: int = Field(default=1, ge=0, lt=2**31)
    """Sampling: the seed; the samples of a line depend on nothing but the seed and the line."""

    def limit(self, n_tokens: int) -> int:
        """Return the maximum length of the translation of ``n_tokens`` source tokens, EOS included, in tokens."""
        limit = super().limit(n_tokens)
        return limit if self.max_length is None else min(limit, self.max_length)

    @property
    def n_rows(self) -> int:
        """The number of hypotheses that a search works on side by side for each sentence."""
        return self.n_candidates if self.sample else self.beam_size

    @property
    def n_candidates(self) -> int:
        """The number of hypotheses that a search must find for each sentence, to choose the ``n_best`` from."""
        return self.mbr or (self.beam_size if self.coverage_penalty else self.n_best)

    @model_validator(mode="after")
    def _go_together(self) -> "SearchOptions":
        problems = list(_contradictions(self))
        if problems:
            raise ValueError("; ".join(problems))
        return self


def _contradictions(options: SearchOptions) -> Iterator[str]:
    """Yield the combinations among ``options`` that make no sense."""
    given = {name: f"{name} = {getattr(options, name)}" for name in type(options).model_fields}
    for name in ("beam_size", "beam_groups"):
        if options.sample and getattr(options, name) > 1:
            yield f"{given[name]} does not go with sample, which has no beams"
    if not options.sample:
        for name in ("temperature", "top_k", "top_p", "epsilon", "seed"):
            if getattr(options, name) != type(options).model_fields[name].default:
                yield f"{given[name]} needs sample, which draws tokens at random"
        for name in ("n_best", "mbr"):
            if getattr(options, name) > _MAX_BEAM_SIZE:
                yield f"{given[name]} is more than the {_MAX_BEAM_SIZE} that a beam search finds at most; try sample"
            elif getattr(options, name) > options.beam_size:
                yield f"{given[name]} is more than {given['beam_size']}"
        if options.beam_size % options.beam_groups:
            yield f"{given['beam_groups']} does not divide {given['beam_size']}"
    if options.mbr and options.n_best > options.mbr:
        yield f"{given['n_best']} is more than {given['mbr']}"
    if options.diversity != type(options).model_fields["diversity"].default and options.beam_groups == 1:
        yield f"{given['diversity']} needs beam_groups of 2 or more"
    if options.coverage_penalty:
        if options.sample:
            yield f"{given['coverage_penalty']} does not go with sample: samples are not ranked"
        elif options.beam_size == 1:
            yield f"{given['coverage_penalty']} needs a beam_size of 2 or more: there is nothing to rank"
        if options.mbr:
            yield f"{given['coverage_penalty']} does not go with {given['mbr']}, which ranks in another way"
    if options.max_length is not None and options.min_length > options.max_length:
        yield f"{given['min_length']} is more than {given['max_length']}"


def _fitting_beam_size(options: dict[str, Any]) -> Any:
    """Return the beam size, changed to fit other options, whose values may be wrong."""
    if options.get("sample"):
        return 1
    size = max(value for name in ("beam_size", "n_best", "mbr") if isinstance(value := options.get(name), int))
    groups = options.get("beam_groups")
    if isinstance(groups, int) and groups > 1:
        size += -size % groups
    return min(_MAX_BEAM_SIZE, size)


class EvalConfig(Section):
    """Scores."""

    bleu_tokenize: Literal["auto", "13a", "intl", "char", "zh", "none"] = "auto"
    """sacreBLEU's tokenization; `auto`: `zh` for Chinese; `char` for Japanese, Korean and Thai; else `13a`. Outside of
    training, `auto` is `ja-mecab` or `ko-mecab` where `sacrebleu[ja]` or `sacrebleu[ko]` is installed."""
    n_samples: int = Field(default=3, ge=0)
    """Sample translations recorded in `samples.jsonl` at each validation; `train --samples` shows them as well."""


class RunConfig(Section):
    """The folder of the run: ``dir/name``."""

    dir: Path = Path("runs")
    """The folder of all runs, relative to the current folder."""
    name: str | None = Field(default=None, pattern=r"^[^/\\\s.][^/\\]*$")
    """The name of the run's folder in it. Default: the name of the config file."""


class Change(BaseModel):
    """A setting, or another condition of the result, that was changed when a run was resumed."""

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
        changes: what was changed on the way, in order of steps; the settings beside it are those of the last step.
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

    @model_validator(mode="after")
    def _sharded_ranks_need_all_layers(self) -> "Config":
        if self.training.shard and self.model.layer_drop:
            raise ValueError(
                f"training.shard with model.layer_drop = {self.model.layer_drop}: each rank would skip other "
                "layers and wait for the others there; set one of them to its default"
            )
        return self

    @model_validator(mode="after")
    def _terms_need_shared_tokens(self) -> "Config":
        if self.data.terms is not None and self.tokenizer.joint is False:
            raise ValueError(
                "data.terms with tokenizer.joint = false: a model copies the translations of terms, which needs the "
                "same tokens on both sides; set tokenizer.joint to true"
            )
        return self

    @model_validator(mode="before")
    @classmethod
    def _name_languages(cls, given: Any) -> Any:
        """Fill ``{src_lang}`` and ``{tgt_lang}`` into paths and the run's name: one config serves both directions."""
        if not isinstance(given, dict) or not isinstance(given.get("data"), dict):
            return given
        languages = {f"{{{key}}}": given["data"].get(key) for key in ("src_lang", "tgt_lang")}
        return given | {key: fill_in(given[key], languages) for key in ("data", "run") if key in given}
