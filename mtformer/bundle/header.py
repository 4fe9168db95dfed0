"""The description of a trained model, in a bundle and in an exported folder alike. Nothing here imports torch."""

import difflib
import math
from collections import Counter
from collections.abc import Iterable
from itertools import islice, permutations, product
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, ValidationError, model_validator

from mtformer.config import LanguagePair, Normalization, SearchConfig, TokenizerType
from mtformer.config.section import Language
from mtformer.config.sources import MULTIPLE, Direction, PrefixTokens
from mtformer.model.architecture import Architecture, Stored
from mtformer.support.errors import UserError
from mtformer.text.languages import UNDETERMINED, base_language
from mtformer.text.tags import corpus_tag, tags_toward
from mtformer.text.tokenizer.tokenizer import Tokenizer

_MOST_SHOWN = 10  # of a model's languages
_Language = Annotated[Language, Field(max_length=64)]


class SearchDefaults(Stored):
    """The search settings for users who say nothing else; the keys are those of the config's ``search``.

    They are listed again, since a bundle must stay readable when the config changes.
    """

    beam_size: int = Field(ge=1, le=64)
    length_penalty: float = Field(ge=0, le=10)
    length_penalty_offset: int = Field(default=5, ge=0, le=100)
    max_length_factor: float = Field(gt=0, le=100)
    max_length_offset: int = Field(ge=1, le=10_000)
    batch_tokens: int = Field(ge=1, le=2**16)

    def to_config(self) -> SearchConfig:
        """Return them as a section of a config."""
        return SearchConfig(**self.model_dump())


class AlignmentHead(Stored):
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

    @property
    def group(self) -> tuple[int, bool]:
        """Its layer and step: an engine may read only the heads that share both."""
        return self.layer, self.reading


def all_heads(architecture: Architecture) -> list[AlignmentHead]:
    """Return every head, each with the step that predicts."""
    places = product(range(architecture.n_decoder_layers), range(architecture.n_heads))
    return [AlignmentHead(layer=layer, head=head, reading=False) for layer, head in places]


def last_heads(architecture: Architecture) -> list[AlignmentHead]:
    """Return the heads that align where none were chosen: all of the last layer."""
    return all_heads(architecture)[-architecture.n_heads :]


class Toward(NamedTuple):
    """A user's choice among the directions and the tags of a model; None leaves it open.

    Attributes:
        src_lang: the source language, which may stay open: the model does not need it.
        tgt_lang: the target language.
        tag: that of a source of the training text, for texts like those.
    """

    src_lang: str | None = None
    tgt_lang: str | None = None
    tag: str | None = None


ANY = Toward()


class Header(Stored):
    """The description of a model in its bundle.

    Attributes:
        src_lang: the source language, as in ``en``.
        tgt_lang: the target language, as in ``de``.
        directions: of a model of several directions, all of them, as in ``en-de``; ``src_lang`` and ``tgt_lang`` are
            ``mul`` where there is more than one. Empty for a model of one direction.
        languages: of a model that translates from each of these languages into each other one, the token of each, which
            stands before its sources and starts its translations. Empty for other models.
        architecture: determines the weights.
        tokenizer_type: the algorithm.
        normalization: the form that texts are given before SentencePiece sees them; the tokenizer has it too.
        search: search settings.
        scores: of the validation that chose the model, such as ``bleu`` and ``loss``, and its ``step``; may be empty.
        bleu_tokenize: sacreBLEU's tokenization for the model's BLEU scores; ``auto`` goes by the target language.
        alignment_heads: whose mean aligns translations with their sources best; empty: not chosen.
        prefixes: of each direction the tokens before its texts, where they are not those that training here puts there
            (:func:`.tags_toward`).
        known_words: the words of its sources in the training text, in small letters, if there are so few that any other
            one is new to the model (:func:`.known_words`); else none.
        provenance: where the model comes from: versions, fingerprints of the text, and the training config. For
            people to read, and for warnings; no other code depends on its contents. It names files without their
            folders.
    """

    src_lang: _Language
    tgt_lang: _Language
    directions: tuple[Direction, ...] = ()
    languages: dict[_Language, str] = Field(default={})
    architecture: Architecture
    tokenizer_type: TokenizerType
    normalization: Normalization = "nfc"
    search: SearchDefaults
    scores: dict[str, float] = Field(default={})
    bleu_tokenize: Literal["auto", "13a", "intl", "char", "zh", "none"] = "auto"
    alignment_heads: tuple[AlignmentHead, ...] = ()
    prefixes: dict[Direction, PrefixTokens] = Field(default={})
    known_words: tuple[str, ...] = ()
    provenance: dict[str, Any] = Field(default={})

    @property
    def step(self) -> int | None:
        """The step of training that the model is from; None if the bundle does not say."""
        step = self.scores.get("step", math.nan)
        return int(step) if math.isfinite(step) else None

    @property
    def alignment_group(self) -> tuple[AlignmentHead, ...]:
        """Those of ``alignment_heads`` that are in one layer and align in the same step, which may be all.

        Of several groups, as earlier versions chose them, the largest; of equal ones, one that reads, since heads that
        do are clearer. Where no heads were chosen, all of the last layer.
        """
        heads = self.alignment_heads or last_heads(self.architecture)
        sizes = Counter(head.group for head in heads)
        best = max(sizes, key=lambda group: (sizes[group], group[1]))
        return tuple(head for head in heads if head.group == best)

    @property
    def language_pairs(self) -> list[LanguagePair]:
        """The directions of the model, one or more."""
        if self.languages:
            return [LanguagePair(*pair) for pair in permutations(self.languages, 2)]
        return list(map(LanguagePair.parse, self.directions)) or [LanguagePair(self.src_lang, self.tgt_lang)]

    @property
    def target_tags(self) -> list[str]:
        """The tokens before sources that ask for a target language, one for each if there are several."""
        if self.languages:
            return []
        return list(dict.fromkeys(tag for pair in self.language_pairs for tag in self.prefix_tokens(pair).src))

    def prefix_tokens(self, pair: LanguagePair) -> PrefixTokens:
        """Return the tokens before the texts of a direction."""
        if self.languages:
            return PrefixTokens(src=(self.languages[pair.src_lang],), tgt=(self.languages[pair.tgt_lang],))
        if self.prefixes:
            return self.prefixes.get(str(pair), PrefixTokens())
        return PrefixTokens(src=tuple(tags_toward(self.language_pairs, pair.tgt_lang)))

    @property
    def longest_translation(self) -> int:
        """The most tokens that a translation of the longest source may have."""
        return self.search.to_config().limit(self.architecture.max_length)

    @property
    def title(self) -> str:
        """The directions as text: ``en-de``, or ``en-de, de-en``."""
        if len(self.languages) > _MOST_SHOWN:
            return f"between {len(self.languages)} languages: {', '.join(islice(self.languages, _MOST_SHOWN))}, …"
        if self.languages:
            return f"between {', '.join(self.languages)}"
        return ", ".join(map(str, self.language_pairs))

    def matching(self, src_lang: str | None, tgt_lang: str | None) -> list[LanguagePair]:
        """Return the directions with these languages; None stands for any."""
        if src_lang in self.languages and tgt_lang in self.languages:
            return [LanguagePair(src_lang, tgt_lang)]
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
        src_lang, tgt_lang = self.code(src_lang), self.code(tgt_lang)
        wanted = self.matching(src_lang, tgt_lang)
        if not wanted:
            asked = f" from {src_lang}" * bool(src_lang) + f" to {tgt_lang}" * bool(tgt_lang)
            raise UserError(f"the model does not translate{asked}{self._meant(tgt_lang)}; it translates {self.title}")
        sources, targets = map(set, zip(*wanted, strict=True))
        if len(targets) > 1:
            raise UserError(f"the model translates {self.title}: name the target language (--to)")
        return LanguagePair(sources.pop() if len(sources) == 1 else UNDETERMINED, targets.pop())

    def translates_alike(self, other: "Header") -> bool:
        """Tell whether the other model has all directions of this one, with the same tokens before the texts."""
        if self.languages:
            return self.languages == other.languages
        try:
            return all(
                self.prefix_tokens(pair) == other.prefix_tokens(other.direction(*pair)) for pair in self.language_pairs
            )
        except UserError:  # it lacks one
            return False

    def code(self, lang: str | None) -> str | None:
        """Return the model's own code of a language, such as ``deu_Latn`` for ``de``, if a single one is meant."""
        known = self.languages or dict.fromkeys(lang for pair in self.language_pairs for lang in pair)
        if lang is None or lang in known:
            return lang
        same = [code for code in known if base_language(code) == base_language(lang)]
        return same[0] if len(same) == 1 else lang

    def _meant(self, tgt_lang: str | None) -> str:
        """Return a question that suggests the target languages nearest to a wrong code; empty without one."""
        known = self.languages or dict.fromkeys(pair.tgt_lang for pair in self.language_pairs)
        if tgt_lang is None or tgt_lang in known:
            return ""
        same = [code for code in known if base_language(code) == base_language(tgt_lang)]
        if meant := same or difflib.get_close_matches(tgt_lang, known, n=3):
            return f" (did you mean {' or '.join(meant)}?)"
        return ""

    def toward(
        self, tokenizer: Tokenizer, src_lang: str | None = None, tgt_lang: str | None = None, tag: str | None = None
    ) -> tuple["Header", Tokenizer]:
        """Return the header and the tokenizer of a model for one direction.

        Args:
            tokenizer: the model's.
            src_lang: the source language, as for :meth:`direction`.
            tgt_lang: the target language.
            tag: that of a source of its training text, for texts like those.

        Returns:
            Without any of these, a header for one direction and its tokenizer as they are.

        Raises:
            UserError: the model has no such direction or tag.
        """
        if (src_lang, tgt_lang, tag) == (None, None, None) and MULTIPLE not in (self.src_lang, self.tgt_lang):
            return self, tokenizer
        pair = self.direction(src_lang, tgt_lang)
        src_lang = self.code(src_lang)
        of_languages = {*self.target_tags, *self.languages.values()}
        names = [symbol for symbol in tokenizer.control_symbols if symbol not in of_languages]
        if tag is not None and corpus_tag(tag) not in names:
            known = f"it has {', '.join(name[1:-1] for name in names)}" if names else "it was trained without tags"
            raise UserError(f"the model has no tag {tag!r}; {known}")
        header = self.model_copy(update={"src_lang": pair.src_lang, "tgt_lang": pair.tgt_lang})
        possible = {self.prefix_tokens(each) for each in self.matching(src_lang, pair.tgt_lang)}
        if len(possible) > 1:
            raise UserError(f"the model translates {self.title}: name the source language too (--from)")
        [tokens] = possible
        tags = [] if tag is None else [corpus_tag(tag)]
        return header, tokenizer.with_prefixes(tokenizer.prefixes_of([*tokens.src, *tags], tokens.tgt))

    def make_tokenizer(self, models: Iterable[bytes]) -> Tokenizer:
        """Return the tokenizer of the model, made of its SentencePiece models.

        Raises:
            UserError: they are no such models, or of another Transformer.
        """
        special_ids = self.architecture.special_ids
        tokenizer = Tokenizer(*models).with_start(special_ids.start)
        if tokenizer.special_ids != special_ids:
            raise UserError(f"its tokenizer has the special ids {tokenizer.special_ids}, not {special_ids}")
        if len(self.language_pairs) > 1:
            return tokenizer
        tokens = self.prefix_tokens(self.language_pairs[0])
        return tokenizer.with_prefixes(tokenizer.prefixes_of(tokens.src, tokens.tgt))

    @model_validator(mode="after")
    def _fits_together(self) -> "Header":
        if len(self.languages) == 1:
            raise ValueError("languages has only one language: no translation is possible")
        n_layers, n_heads = self.architecture.n_decoder_layers, self.architecture.n_heads
        if any(chosen.layer >= n_layers or chosen.head >= n_heads for chosen in self.alignment_heads):
            raise ValueError("alignment_heads names a head that the model does not have")
        return self


def first_problem(error: ValidationError) -> str:
    """Return the first of the reasons why something is no header or architecture."""
    first = error.errors(include_url=False)[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{key} is missing"
    return f"{key}: " * bool(key) + first["msg"].removeprefix("Value error, ")
