"""What a trained model says about itself, in a bundle and in an exported folder alike. Nothing here imports torch."""

import math
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mtformer.config import LanguagePair, ModelConfig, Normalization, ResolvedConfig, TokenizerType
from mtformer.config.sources import Direction
from mtformer.support.errors import UserError
from mtformer.text.languages import UNDETERMINED
from mtformer.text.tags import corpus_tag, tags_toward
from mtformer.text.tokenizer.tokenizer import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Tokenizer

if TYPE_CHECKING:
    from mtformer.model.transformer import Transformer

_SPECIAL_IDS = {"pad": PAD_ID, "unk": UNK_ID, "bos": BOS_ID, "eos": EOS_ID}

_Language = Annotated[str, Field(pattern=r"^[a-z]{2,3}([-_][A-Za-z0-9]+)*$", max_length=64)]
_Layers = Annotated[int, Field(ge=1, le=10_000)]
_VocabSize = Annotated[int, Field(ge=260, le=2**20)]  # every byte is a token


class _Part(BaseModel):
    """Keys that a later version adds are ignored; types are exact."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, ser_json_inf_nan="constants", defer_build=True)


class Architecture(_Part):
    """What determines the names, shapes and meaning of a model's weights.

    The keys belong to the format: they stay as they are when keys of the training config are renamed.

    Attributes:
        d_model: the width of embeddings and layers.
        n_heads: attention heads.
        d_ff: the width inside the feed-forward layers.
        n_encoder_layers: layers of the encoder.
        n_decoder_layers: layers of the decoder.
        norm: normalization before each sublayer, or after its residual sum.
        norm_type: LayerNorm or RMSNorm.
        activation: of the feed-forward layers; ``swiglu`` has a third matrix.
        positions: the position encoding.
        tie_embeddings: whether the target embedding is the output projection, and with ``joint_vocab`` the source
            embedding too.
        joint_vocab: whether both languages share one vocabulary.
        src_vocab_size: tokens of the source language.
        tgt_vocab_size: tokens of the target language.
        max_length: the longest source, in tokens with EOS, that the model was trained for; the number of learned
            positions.
        dropout: the rate the model was trained with, a default for further training.
        attention_dropout: likewise.
        layer_drop: likewise.
    """

    d_model: int = Field(ge=2, le=2**16)
    n_heads: int = Field(ge=1, le=2**16)
    d_ff: int = Field(ge=1, le=2**20)
    n_encoder_layers: _Layers
    n_decoder_layers: _Layers
    norm: Literal["pre", "post"]
    norm_type: Literal["layernorm", "rmsnorm"]
    activation: Literal["relu", "gelu", "swiglu"]
    positions: Literal["sinusoidal", "learned", "rotary", "none"]
    tie_embeddings: bool
    joint_vocab: bool
    src_vocab_size: _VocabSize
    tgt_vocab_size: _VocabSize
    max_length: int = Field(ge=2, le=2**16)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    layer_drop: float = Field(default=0.0, ge=0, lt=1)

    def to_model_config(self) -> ModelConfig:
        """Return the settings that the model's constructor takes.

        Raises:
            ValueError: the sizes do not fit together.
        """
        return ModelConfig(
            d_model=self.d_model,
            n_heads=self.n_heads,
            d_ff=self.d_ff,
            n_encoder_layers=self.n_encoder_layers,
            n_decoder_layers=self.n_decoder_layers,
            dropout=self.dropout,
            attention_dropout=self.attention_dropout,
            layer_drop=self.layer_drop,
            norm=self.norm,
            norm_type=self.norm_type,
            feed_forward=self.activation,
            positions=self.positions,
            tie_embeddings=self.tie_embeddings,
        )

    def build(self) -> "Transformer":
        """Build the model with fresh weights, on torch's current default device."""
        from mtformer.model.transformer import Transformer

        return Transformer(
            self.to_model_config(),
            src_vocab_size=self.src_vocab_size,
            tgt_vocab_size=self.tgt_vocab_size,
            joint=self.joint_vocab,
            max_length=self.max_length,
        )


class SearchDefaults(_Part):
    """How to search unless the user says otherwise; the keys mean what those of the config's ``search`` mean."""

    beam_size: int = Field(ge=1, le=64)
    length_penalty: float = Field(ge=0, le=10)
    max_length_factor: float = Field(gt=0, le=100)
    max_length_offset: int = Field(ge=1, le=10_000)
    batch_tokens: int = Field(ge=1, le=2**16)


class AlignmentHead(_Part):
    """A head of the decoder's attention to the source that aligns translations.

    Attributes:
        layer: of the decoder, from 0.
        head: from 0.
        reading: whether a token is aligned by the step that reads it, which follows the one that predicts it. In some
            heads only the former looks for the token (Chen et al. 2020, "Accurate Word Alignment Induction from Neural
            Machine Translation").
    """

    layer: int = Field(ge=0)
    head: int = Field(ge=0)
    reading: bool


class Toward(NamedTuple):
    """What a user asks of a model that has several directions, or was trained with tags; None leaves it open.

    Attributes:
        src_lang: the source language, which may stay open: the model does not need it.
        tgt_lang: the target language.
        tag: that of a source of the training text, for texts like those.
    """

    src_lang: str | None = None
    tgt_lang: str | None = None
    tag: str | None = None


ANY = Toward()


class Header(_Part):
    """What a bundle says about its model.

    Attributes:
        src_lang: the source language, as in ``en``.
        tgt_lang: the target language, as in ``de``.
        directions: of a model of several directions, all of them, as in ``en-de``; ``src_lang`` and ``tgt_lang`` are
            ``mul`` where there is more than one. Empty for a model of one direction.
        architecture: determines the weights.
        tokenizer_type: the algorithm.
        normalization: the form that texts are given before SentencePiece sees them; the tokenizer has it too.
        special_ids: of ``pad``, ``unk``, ``bos`` and ``eos`` in both vocabularies, the same in every bundle.
        search: search settings.
        scores: of the validation that chose the model, such as ``bleu`` and ``loss``, and its ``step``; may be empty.
        bleu_tokenize: sacreBLEU's tokenization for the model's BLEU scores; ``auto`` goes by the target language.
        alignment_heads: whose mean aligns translations with their sources best; empty: not chosen.
        provenance: where the model comes from: versions, fingerprints of the text, and the training config. For
            people to read; no code depends on its contents, and it names files without their folders.
    """

    src_lang: _Language
    tgt_lang: _Language
    directions: tuple[Direction, ...] = ()
    architecture: Architecture
    tokenizer_type: TokenizerType
    normalization: Normalization = "nfc"
    special_ids: dict[str, int]
    search: SearchDefaults
    scores: dict[str, float] = {}
    bleu_tokenize: Literal["auto", "13a", "intl", "char", "zh", "none"] = "auto"
    alignment_heads: tuple[AlignmentHead, ...] = ()
    provenance: dict[str, Any] = {}

    @property
    def step(self) -> int | None:
        """The step of training that the model is from; None if the bundle does not say."""
        step = self.scores.get("step", math.nan)
        return int(step) if math.isfinite(step) else None

    @property
    def alignment_group(self) -> tuple[AlignmentHead, ...]:
        """The most of ``alignment_heads`` that are in one layer and align in the same step.

        Where no heads were chosen, all of the last layer.
        """
        layer, n_heads = self.architecture.n_decoder_layers - 1, self.architecture.n_heads
        heads = self.alignment_heads or [
            AlignmentHead(layer=layer, head=head, reading=False) for head in range(n_heads)
        ]
        groups = [
            tuple(one for one in heads if (one.layer, one.reading) == key)
            for key in dict.fromkeys((h.layer, h.reading) for h in heads)
        ]
        return max(groups, key=len)

    @property
    def language_pairs(self) -> list[LanguagePair]:
        """The directions of the model, one or more."""
        return list(map(LanguagePair.parse, self.directions)) or [LanguagePair(self.src_lang, self.tgt_lang)]

    @property
    def target_tags(self) -> list[str]:
        """The tokens that ask for a target language, one for each if there are several."""
        pairs = self.language_pairs
        return list(dict.fromkeys(tag for pair in pairs for tag in tags_toward(pairs, pair.tgt_lang)))

    @property
    def title(self) -> str:
        """The directions as text: ``en-de``, or ``en-de, de-en``."""
        return ", ".join(map(str, self.language_pairs))

    def matching(self, src_lang: str | None, tgt_lang: str | None) -> list[LanguagePair]:
        """Return the directions with these languages; None stands for any."""
        return [
            pair
            for pair in self.language_pairs
            if src_lang in (None, pair.src_lang) and tgt_lang in (None, pair.tgt_lang)
        ]

    def direction(self, src_lang: str | None = None, tgt_lang: str | None = None) -> LanguagePair:
        """Return the direction from one language to another; None leaves it open which.

        The source language of a model of several directions may stay open, and is then undetermined.

        Raises:
            UserError: the model has no such direction, or the target language is open.
        """
        wanted = self.matching(src_lang, tgt_lang)
        if not wanted:
            asked = f" from {src_lang}" * bool(src_lang) + f" to {tgt_lang}" * bool(tgt_lang)
            raise UserError(f"the model does not translate{asked}; it translates {self.title}")
        sources, targets = map(set, zip(*wanted, strict=True))
        if len(targets) > 1:
            raise UserError(f"the model translates {self.title}: name the target language (--to)")
        return LanguagePair(sources.pop() if len(sources) == 1 else UNDETERMINED, targets.pop())

    def toward(
        self, tokenizer: Tokenizer, src_lang: str | None = None, tgt_lang: str | None = None, tag: str | None = None
    ) -> tuple["Header", Tokenizer]:
        """Return the header and the tokenizer of a model for one direction.

        Args:
            tokenizer: the model's.
            src_lang: the source language, as for :meth:`direction`.
            tgt_lang: the target language.
            tag: that of a source of its training text, for texts like those.

        Raises:
            UserError: the model has no such direction or tag.
        """
        pair = self.direction(src_lang, tgt_lang)
        names = [symbol for symbol in tokenizer.control_symbols if symbol not in self.target_tags]
        if tag is not None and corpus_tag(tag) not in names:
            known = f"it has {', '.join(name[1:-1] for name in names)}" if names else "it was trained without tags"
            raise UserError(f"the model has no tag {tag!r}; {known}")
        header = self.model_copy(update={"src_lang": pair.src_lang, "tgt_lang": pair.tgt_lang})
        return header, tokenizer.toward(tags_toward(self.language_pairs, pair.tgt_lang, tag))

    @field_validator("special_ids")
    @classmethod
    def _are_ours(cls, given: dict[str, int]) -> dict[str, int]:
        if not _SPECIAL_IDS.items() <= given.items():
            raise ValueError(f"they are {given}, not {_SPECIAL_IDS}")
        return given

    @model_validator(mode="after")
    def _has_the_heads(self) -> "Header":
        n_layers, n_heads = self.architecture.n_decoder_layers, self.architecture.n_heads
        if any(chosen.layer >= n_layers or chosen.head >= n_heads for chosen in self.alignment_heads):
            raise ValueError("alignment_heads names a head that the model does not have")
        return self

    @classmethod
    def of(
        cls,
        config: ResolvedConfig,
        tokenizer: Tokenizer,
        scores: Mapping[str, float] | None = None,
        alignment_heads: Sequence[AlignmentHead] = (),
    ) -> "Header":
        """Describe the model that ``config`` and ``tokenizer`` determine."""
        model, data = config.model, config.data
        architecture = Architecture(
            d_model=model.d_model,
            n_heads=model.n_heads,
            d_ff=model.d_ff,
            n_encoder_layers=model.n_encoder_layers,
            n_decoder_layers=model.n_decoder_layers,
            norm=model.norm,
            norm_type=model.norm_type,
            activation=model.feed_forward,
            positions=model.positions,
            tie_embeddings=model.tie_embeddings,
            joint_vocab=tokenizer.joint,
            src_vocab_size=tokenizer.src_vocab_size,
            tgt_vocab_size=tokenizer.tgt_vocab_size,
            max_length=data.max_length,
            dropout=model.dropout,
            attention_dropout=model.attention_dropout,
            layer_drop=model.layer_drop,
        )
        search = SearchDefaults(
            beam_size=config.search.beam_size,
            length_penalty=config.search.length_penalty,
            max_length_factor=config.search.max_length_factor,
            max_length_offset=config.search.max_length_offset,
            batch_tokens=config.search.batch_tokens,
        )
        return cls(
            src_lang=data.src_lang,
            tgt_lang=data.tgt_lang,
            directions=tuple(data.directions) if len(data.directions) > 1 else (),
            architecture=architecture,
            tokenizer_type=tokenizer.type,
            normalization=tokenizer.normalization,
            special_ids=_SPECIAL_IDS,
            search=search,
            scores=dict(scores or {}),
            bleu_tokenize=config.eval.bleu_tokenize,
            alignment_heads=tuple(alignment_heads),
            provenance=_without_folders(
                config.provenance.model_dump() | {"config": config.model_dump(exclude={"provenance", "run"})}
            ),
        )


def _without_folders(value: Any) -> Any:
    """Replace each path inside ``value`` by the file's name: a bundle does not reveal the folders of its maker."""
    if isinstance(value, dict):
        return {key: _without_folders(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_folders(item) for item in value]
    is_path = isinstance(value, PurePath) or (isinstance(value, str) and value.startswith(("/", "~")))
    return PurePath(value).name if is_path else value
