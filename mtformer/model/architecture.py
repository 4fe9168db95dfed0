"""The description of a model, from which its weights, inference, explanation and every export follow.

Each kind of activation and position encoding is a row of a table here, and nowhere else. A new one whose computation
torch has needs nothing more: configs and bundles accept its name, and the exporters use it or refuse it. Nothing here
imports torch.
"""

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Activation(NamedTuple):
    """An activation of the feed-forward networks.

    Attributes:
        function: its name in ``torch.nn.functional``.
        formula: how a person writes it; ``{}`` stands for its argument.
        ctranslate2: its name among CTranslate2's activations; None if it has none.
        transformers: its name in Hugging Face's transformers; None if they cannot have it.
    """

    function: str
    formula: str
    ctranslate2: str | None
    transformers: str | None


class Positions(NamedTuple):
    """A position encoding.

    Attributes:
        module: the class in :mod:`mtformer.model.positions` that gives what is added to the embeddings.
        is_rotary: whether self-attention rotates its queries and keys.
    """

    module: str
    is_rotary: bool = False


ACTIVATIONS = {
    "relu": Activation("relu", "max(0, {})", ctranslate2="RELU", transformers="relu"),
    "gelu": Activation("gelu", "GELU({})", ctranslate2="GELU", transformers="gelu"),
    "silu": Activation("silu", "SiLU({})", ctranslate2="SWISH", transformers="silu"),
}
POSITIONS = {
    "sinusoidal": Positions("SinusoidalPositions"),
    "learned": Positions("LearnedPositions"),
    "rotary": Positions("NoPositions", is_rotary=True),
    "none": Positions("NoPositions"),
    "fairseq": Positions("FairseqPositions"),
    "marian": Positions("MarianPositions"),
}

# The names as types, whose values pydantic checks and lists in its errors.
if TYPE_CHECKING:
    ActivationName: TypeAlias = str
    PositionsName: TypeAlias = str
else:
    ActivationName, PositionsName = (Literal[tuple(names)] for names in (ACTIVATIONS, POSITIONS))


class Stored(BaseModel):
    """The base of stored descriptions: keys that a later version adds are ignored, types are exact."""

    model_config = ConfigDict(extra="ignore", frozen=True, strict=True, ser_json_inf_nan="constants", defer_build=True)


class SpecialIds(Stored):
    """The ids that stand for no text, the same in both vocabularies of a model.

    Attributes:
        pad: fills the shorter rows of a batch.
        unk: what has no token.
        bos: the beginning of a text; padding in a vocabulary without such a token.
        eos: its end.
        start: what the decoder reads first; often BOS, in some models padding or EOS.
    """

    pad: int = Field(ge=0)
    unk: int = Field(ge=0)
    bos: int = Field(ge=0)
    eos: int = Field(ge=0)
    start: int = Field(ge=0)

    @property
    def never(self) -> list[int]:
        """The ids that no translation contains, and no search may choose."""
        return sorted({self.pad, self.unk, self.bos, self.start} - {self.eos})

    def __contains__(self, i: object) -> bool:
        return i in (self.pad, self.unk, self.bos, self.eos)

    @model_validator(mode="after")
    def _are_different(self) -> "SpecialIds":
        if len({self.pad, self.unk, self.eos}) < 3 or self.bos in (self.unk, self.eos):
            raise ValueError(f"padding, unknown, BOS and EOS share an id: {self}")
        return self


SPECIAL_IDS = SpecialIds(pad=0, unk=1, bos=2, eos=3, start=2)  # of the vocabularies that are trained here


class Architecture(Stored):
    """The settings that determine the names, shapes and meaning of a model's weights.

    The keys belong to the format of bundles: they stay as they are when keys of the training config are renamed.

    Attributes:
        d_model: D, the width of embeddings and layers.
        n_heads: H, attention heads.
        d_ff: the width inside the feed-forward networks.
        n_encoder_layers: layers of the encoder.
        n_decoder_layers: layers of the decoder.
        norm: normalization before each sub-layer, or after its residual sum.
        activation: a key of :data:`ACTIVATIONS`.
        positions: a key of :data:`POSITIONS`.
        tie_embeddings: whether the target embedding is the output projection, and with ``joint_vocab`` the source
            embedding too.
        embedding_norm: whether the sum of embeddings and positions is normalized, as in mBART.
        output_bias: whether the output projection has a bias.
        joint_vocab: whether both languages share one vocabulary.
        src_vocab_size: tokens of the source language.
        tgt_vocab_size: V, tokens of the target language.
        special_ids: those that stand for no text.
        max_length: the longest source, in tokens with EOS, that the model was trained for; the number of learned
            positions.
        dropout: the rate of sub-layer outputs and of embeddings in training.
        attention_dropout: that of attention weights.
    """

    d_model: int = Field(ge=2, le=2**16)
    n_heads: int = Field(ge=1, le=2**16)
    d_ff: int = Field(ge=1, le=2**20)
    n_encoder_layers: int = Field(ge=1, le=10_000)
    n_decoder_layers: int = Field(ge=1, le=10_000)
    norm: Literal["pre", "post"]
    activation: ActivationName
    positions: PositionsName
    tie_embeddings: bool
    embedding_norm: bool = False
    output_bias: bool = False
    joint_vocab: bool
    src_vocab_size: int = Field(ge=1, le=2**20)
    tgt_vocab_size: int = Field(ge=1, le=2**20)
    special_ids: SpecialIds
    max_length: int = Field(ge=2, le=2**16)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)

    @property
    def d_head(self) -> int:
        """Dh, the width of a head."""
        return self.d_model // self.n_heads

    @model_validator(mode="after")
    def _fits_together(self) -> "Architecture":
        require_widths(self.d_model, self.n_heads, self.positions)
        if max(self.special_ids.model_dump().values()) >= min(self.src_vocab_size, self.tgt_vocab_size):
            raise ValueError(f"a special id is beyond the vocabulary: {self.special_ids}")
        return self


def require_widths(d_model: int, n_heads: int, positions: str) -> None:
    """Check that the width of a model suits its heads and its position encoding.

    Raises:
        ValueError: it does not.
    """
    if d_model % n_heads:
        raise ValueError(f"n_heads = {n_heads} does not divide d_model = {d_model}")
    if d_model % 2:
        raise ValueError(f"d_model = {d_model} is odd; the position encoding needs an even width")
    if POSITIONS[positions].is_rotary and d_model // n_heads % 2:
        raise ValueError(
            f"positions = {positions} needs heads of even width, but d_model = {d_model} / n_heads = {n_heads} is odd"
        )
