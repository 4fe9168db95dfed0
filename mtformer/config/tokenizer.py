"""The config's section ``tokenizer``."""

import re
import unicodedata
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from mtformer.config.section import InputPath, Section

TokenizerType = Literal["unigram", "bpe", "char", "byte"]
Normalization = Literal["nfc", "nfkc", "identity"]

_SPECIAL = re.compile("<pad>|<unk>|</?s>|<0x[0-9A-Fa-f]{2}>|</?term>|<is>")


def _require_usable(symbol: str) -> str:
    if not symbol:
        raise ValueError("a symbol is empty: remove it")
    if re.search(r"[\s\x00-\x1f\x7f-\x9f\u2581]", symbol):
        raise ValueError(f"{symbol!r} has a space, a control character or ▁, which separate words")
    if _SPECIAL.fullmatch(symbol):
        raise ValueError(f"{symbol} is a special token")
    return symbol


UserSymbol = Annotated[str, AfterValidator(_require_usable)]


class TokenizerConfig(Section):
    """SentencePiece (Kudo and Richardson 2018). A tokenizer for Chinese alone keeps tokens as short as words."""

    type: TokenizerType = "unigram"
    """The algorithm. With small vocabularies, `bpe` leaves more words whole. `char` has a token for each character, and
    `byte` for each of the 256 bytes: texts become several times longer, so raise `data.max_length`."""
    vocab_size: int | None = Field(default=None, ge=260, le=256_000)
    """The number of tokens, or with `char` the most. Separate tokenizers have fewer where a side of the text does not
    support as many. Default: by the size of the data."""
    joint: bool | None = None
    """One tokenizer for both languages, or one for each. Default: joint, unless only one of the two languages separates
    words by spaces."""
    normalization: Normalization = "nfc"
    """What is done to texts first: composed Unicode and single spaces (`nfc`); also compatibility mapping, which turns
    full-width forms, ligatures and superscripts into plain characters (`nfkc`); or nothing (`identity`)."""
    character_coverage: float | None = Field(default=None, ge=0.9, le=1)
    """The share of characters that become tokens; the others are spelled in bytes. Default: by language."""
    user_symbols: list[UserSymbol] = Field(default=[])
    """Tokens that are never split, wherever they stand in a text, such as placeholders: `["{name}", "⟨br⟩"]`."""
    sampling: float = Field(default=0.0, ge=0, le=1)
    """Sample another segmentation in each epoch: the alpha of Kudo 2018, 0.1 to 0.5, or BPE's merge dropout."""
    model: InputPath | None = None
    """A SentencePiece model to use for both languages instead of training one."""
    src_model: InputPath | None = None
    """A SentencePiece model for the source language, with another one as `tgt_model`."""
    tgt_model: InputPath | None = None
    """A SentencePiece model for the target language."""

    @property
    def paths(self) -> list[Path]:
        """The models to use instead of training one: that of both languages, or one for each."""
        return [path for path in (self.model, self.src_model, self.tgt_model) if path is not None]

    @model_validator(mode="before")
    @classmethod
    def _models_decide_whether_joint(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        is_joint = {"model": True, "src_model": False, "tgt_model": False}
        found = [joint for key, joint in is_joint.items() if given.get(key) is not None]
        return given | {"joint": found[0]} if found and given.get("joint") is None else given

    @model_validator(mode="after")
    def _models_are_complete(self) -> "TokenizerConfig":
        if self.model is not None and len(self.paths) > 1:
            raise ValueError("model is for both languages, src_model and tgt_model are for one each: set either")
        if (self.src_model is None) != (self.tgt_model is None):
            raise ValueError("src_model and tgt_model belong together: set both, or model for both languages")
        if self.paths and self.joint != (self.model is not None):
            key = "model" if self.model is not None else "src_model and tgt_model"
            raise ValueError(f"joint = {str(self.joint).lower()} with {key}: remove joint")
        if self.paths and self.character_coverage is not None:
            raise ValueError("character_coverage is for training a tokenizer; remove it, or model")
        return self

    @model_validator(mode="after")
    def _some_text_has_many_segmentations(self) -> "TokenizerConfig":
        if self.sampling and self.type in ("char", "byte"):
            raise ValueError(f"sampling with type = {self.type}: a text has a single segmentation; remove sampling")
        return self

    @model_validator(mode="after")
    def _symbols_are_normalized(self) -> "TokenizerConfig":
        if self.normalization != "identity":
            form: Literal["NFC", "NFKC"] = "NFC" if self.normalization == "nfc" else "NFKC"
            changed = [symbol for symbol in self.user_symbols if not unicodedata.is_normalized(form, symbol)]
            if changed:
                raise ValueError(
                    f"user_symbols: with normalization = {self.normalization}, no text contains {', '.join(changed)}"
                )
        repeated = {symbol for symbol in self.user_symbols if self.user_symbols.count(symbol) > 1}
        if repeated:
            raise ValueError(f"user_symbols has {', '.join(sorted(repeated))} twice")
        return self
