"""The config sections ``data`` and ``tokenizer``: the text and its tokens."""

import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator, model_validator

from mtformer.config.section import InputPath, Language, Section
from mtformer.config.sources import SOURCES, Direction, LanguagePair, PrefixTokens, Source, merged, shared_sides

FILTERS = {
    "empty": "a side is empty",
    "too_long": "a side is extremely long",
    "encoding": "damaged encoding or control characters",
    "copy": "the target copies the source",
    "script": "wrong script",
    "length_ratio": "the lengths do not match",
    "repetition": "a side repeats itself",
    "numbers": "the numbers differ",
    "urls": "the URLs or e-mail addresses differ",
    "markup": "markup in the text",
    "language": "wrong language",
    "diacritics": "diacritics seem to be missing or wrong",
    "misaligned": "the target seems to translate another text",
    "truncated": "a part of the text seems to be missing",
    "misordered": "the words seem to be in the wrong order",
    "held_out": "in the validation or test set",
    "duplicates": "duplicate",
    "near_duplicates": "near duplicate",
    "many_targets": "a source with more than 20 targets",
}
"""The rules that drop pairs, each with the fault that it finds."""
if TYPE_CHECKING:
    FilterName = str
else:
    FilterName = Literal["all", *FILTERS]
TokenizerType = Literal["unigram", "bpe", "char", "byte"]
Normalization = Literal["nfc", "nfkc", "identity"]

Share = Annotated[float, Field(ge=0, le=1)]


class AugmentConfig(Section):
    """The shares of the training pairs that each epoch varies; a pair may get several kinds of variations."""

    typos: Share = 0.1
    """Typos in the source: letters swapped, left out, doubled, or replaced by a neighbour on the keyboard."""
    upper: Share = 0.1
    """Both sides IN CAPITALS, unless the source has no case."""
    title: Share = 0.05
    """Both Sides in Title Case, with or without the short words."""
    emoji: Share = 0.05
    """An emoji inserted into both sides."""


class DataConfig(Section):
    """The languages and the text."""

    src_lang: Language
    """The source language, as in `en`."""
    tgt_lang: Language
    """The target language, as in `de`."""
    directions: list[Direction] = Field(default=[])
    """The directions of a multilingual model, instead of `src_lang` and `tgt_lang`, as in `[en-de, de-en, en-zh]`. Each
    source is read for every direction, unless it names its own. With several target languages, a token such as `<2de>`
    is put in front of each source text (Johnson et al. 2017)."""
    prefixes: dict[Direction, PrefixTokens] = Field(default={})
    """The tokens in front of the texts of each direction; taken from the model of `training.init_from` if it has its
    own, as imported models do."""
    train: list[Source] = Field(min_length=1)
    """The sources to train on, one or more."""
    valid: list[Source] = Field(default=[])
    """The validation sources, which select the best model. Default: pairs held out of `train`: 1 in 64, but about 200
    of a small corpus and at most 2,000 of a large one. No copies of them are trained on."""
    test: list[Source] = Field(default=[])
    """The sources that `mtformer eval` scores. Default: as many pairs held out of `train`, if `valid` is not set
    either; otherwise none, and `mtformer eval` scores the sources of `valid`."""
    temperature: float | None = Field(default=None, ge=1, allow_inf_nan=False)
    """The sampling temperature T, instead of weights of sources: an epoch has as many pairs as all sources together,
    drawn from each source and direction in proportion to its size to the power of 1/T. 1 changes nothing; larger values
    give small sources larger shares."""
    max_length: int = Field(default=256, ge=8, le=4096)
    """The maximum number of tokens, EOS included, on each side of a training pair; longer pairs are dropped."""
    max_ratio: float = Field(default=6.0, ge=1, allow_inf_nan=False)
    """The maximum ratio between the lengths of the two sides of a training pair; others are dropped."""
    filters: list[FilterName] = Field(default=[])
    """The rules that drop pairs from the training text, such as `[copy, language]`; `[all]` for all of them. `mtformer
    data check` reports what each would drop."""
    terms: InputPath | None = None
    """A glossary. In some training pairs that contain a term and its translation, the term is annotated with it: the
    model learns to translate terms as annotated, for `translate --terms-mode soft` (Dinu et al. 2019)."""
    terms_share: float = Field(default=0.3, gt=0, le=1)
    """The share of those pairs to annotate; each epoch draws new ones."""
    context: float = Field(default=0, ge=0, le=1)
    """The share of the pairs, drawn anew in each epoch, whose source is read after that of the line before. The model
    learns to find there what *it* refers to. In a text of several sentences, which it translates or scores, it reads
    each after the one before. For text whose lines follow one another; try 0.5."""
    augment: AugmentConfig | None = None
    """Vary training pairs, so that the model learns to translate capitals, typos, emoji and the like: `true` for the
    default shares, `false`, or a section that sets some of them. Each epoch draws new variations."""

    @field_validator("augment", mode="before")
    @classmethod
    def _switch_augmentation(cls, given: Any) -> Any:
        if given is None or isinstance(given, dict | AugmentConfig):
            return given
        if str(given).lower() not in ("true", "false"):
            raise ValueError(f"given `{given}`, allowed: true, false, or a section of shares")
        return {} if str(given).lower() == "true" else None

    @property
    def language_pairs(self) -> list[LanguagePair]:
        """The directions of the model, one or more."""
        return list(map(LanguagePair.parse, self.directions)) or [LanguagePair(self.src_lang, self.tgt_lang)]

    def direction_of(self, source: Source) -> LanguagePair:
        """Return the direction of a source."""
        return source.languages or self.language_pairs[0]

    def filters_by(self, *rules: str) -> bool:
        """Tell whether the filters include any of ``rules``."""
        return not {"all", *rules}.isdisjoint(self.filters)

    @property
    def held_out(self) -> list[Literal["valid", "test"]]:
        """The parts that are held out of ``train``, because the config names no sources for them."""
        if self.valid:
            return []
        return ["valid"] if self.test else ["valid", "test"]

    def _contradictions(self) -> Iterator[str]:
        pairs = self.language_pairs
        if len(set(pairs)) < len(pairs):
            yield f"directions has duplicates: {', '.join(self.directions)}"
        for pair in pairs:
            if pair.src_lang == pair.tgt_lang:
                yield f"src_lang and tgt_lang are both {pair.src_lang}"
        if merged(pairs) != (self.src_lang, self.tgt_lang):
            yield "give src_lang and tgt_lang, or directions, not both"
        for key in SOURCES:
            yield from shared_sides(getattr(self, key))
            for source in getattr(self, key):
                if source.languages and source.languages not in pairs:
                    yield f"a source of {key} is for {source.languages}, which the model does not translate"
                if key != "train" and (source.weight != 1 or source.tag):
                    yield f"weight and tag are for sources of train; a source of {key} has one"
            if (sources := getattr(self, key)) and all(source.general for source in sources):
                yield f"all sources of {key} are general: name one of the text to adapt to"
        if missing := set(pairs) - set(map(self.direction_of, self.train)):
            yield f"no source of train has {', '.join(sorted(map(str, missing)))}"
        if self.held_out and all(source.tag or source.general for source in self.train):
            yield "valid is left out, and all sources of train have a tag or are general: name sources of valid"
        if any(source.general for source in self.test):
            yield "general is for sources of train and valid; a source of test has it"
        if self.temperature is not None and any(source.general for source in self.train):
            yield "temperature with a general source: both set how often pairs occur; set one"
        if self.temperature is not None and any(source.weight != 1 for source in self.train):
            yield "temperature with the weight of a source: both set how often its pairs occur; set one"
        if self.terms is None and self.terms_share != type(self).model_fields["terms_share"].default:
            yield "terms_share without terms, the glossary: set both or neither"
        if self.terms is not None and len(pairs) > 1:
            yield "terms with several directions: a glossary has one direction"


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
    vocab_size: int | None = Field(default=None, ge=1, le=2**20)
    """The number of tokens; with `char`, the maximum. Separate tokenizers get fewer tokens if their side of the text is
    too small for that many. Default: by the size of the data."""
    joint: bool | None = None
    """One tokenizer for both languages, or one for each. Default: joint, unless only one of the two languages separates
    words by spaces."""
    normalization: Normalization = "nfc"
    """The normalization of text before tokenization: composed Unicode and single spaces (`nfc`); also compatibility
    mapping, which turns full-width forms, ligatures and superscripts into plain characters (`nfkc`); or none
    (`identity`)."""
    character_coverage: float | None = Field(default=None, ge=0.9, le=1)
    """The share of characters that become tokens; the others are spelled in bytes. Default: by language."""
    user_symbols: list[UserSymbol] = Field(default=[])
    """Tokens that are never split, wherever they stand in a text, such as placeholders: `["{name}", "⟨br⟩"]`."""
    slots: bool | None = None
    """Add tokens (slots) that stand for numbers with their units, codes and names, which translations then copy
    exactly. They are used in all texts to translate, and in half of the training pairs whose sides share any. Default:
    with 5,000 training pairs or more, unless `type` is `char` or `byte`; a given SentencePiece model keeps those that
    it has."""
    model: InputPath | None = None
    """A SentencePiece model to use for both languages instead of training one."""
    src_model: InputPath | None = None
    """A SentencePiece model for the source language; requires `tgt_model`."""
    tgt_model: InputPath | None = None
    """A SentencePiece model for the target language; requires `src_model`."""

    @property
    def paths(self) -> list[Path]:
        """The models to use instead of training one: a model of both languages, or one for each."""
        return [path for path in (self.model, self.src_model, self.tgt_model) if path is not None]

    @model_validator(mode="before")
    @classmethod
    def _models_decide_whether_joint(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        is_joint = {"model": True, "src_model": False, "tgt_model": False}
        implied = [joint for key, joint in is_joint.items() if given.get(key) is not None]
        return given | {"joint": implied[0]} if implied and given.get("joint") is None else given

    def _contradictions(self) -> Iterator[str]:
        if self.model is not None and len(self.paths) > 1:
            yield "model is for both languages, src_model and tgt_model are for one each: set either"
        elif (self.src_model is None) != (self.tgt_model is None):
            yield "src_model and tgt_model belong together: set both, or model for both languages"
        elif self.paths and self.joint != (self.model is not None):
            key = "model" if self.model is not None else "src_model and tgt_model"
            yield f"joint = {str(self.joint).lower()} with {key}: remove joint"
        if self.paths and self.character_coverage is not None:
            yield "character_coverage is for training a tokenizer; remove it, or model"
        form: Literal["NFC", "NFKC"] = "NFKC" if self.normalization == "nfkc" else "NFC"
        changed = [symbol for symbol in self.user_symbols if not unicodedata.is_normalized(form, symbol)]
        if changed and self.normalization != "identity":
            yield f"user_symbols: with normalization = {self.normalization}, no text contains {', '.join(changed)}"
        if repeated := {symbol for symbol in self.user_symbols if self.user_symbols.count(symbol) > 1}:
            yield f"user_symbols has {', '.join(sorted(repeated))} twice"
