"""Preparations: reversible changes of a text, after which the model can translate it.

What has no letter that the model knows is copied. In other texts unknown characters are replaced, and then each
sentence is translated alone, in the casing that the model knows.
"""

import html
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise

from mtformer.text.abbreviations import abbreviations
from mtformer.text.codes import outside_codes
from mtformer.text.entities import with_numbers_for
from mtformer.text.known_words import unknown_words
from mtformer.text.languages import base_language, has_full_stops_in_ordinals, separator_of
from mtformer.text.slots import places_for_slots
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import on_one_line
from mtformer.translate.translation import FLAG, Translation, by_rank, joined

_Places = Callable[[str], Collection[int]]  # of characters in a text
_JOINERS = "\u200d\ufe0e\ufe0f"  # zero-width joiner and variation selectors: parts of emoji
# What looks or means the same, for what Unicode's compatibility mapping (NFKC) leaves as it is.
_ALIKE = {
    **dict.fromkeys("‘’‚‛′ʼ`´", "'"),
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),
    **{"…": "...", "⁄": "/", "ẞ": "ß", "ß": "ss", "，": ",", "、": ",", "。": "."},
    **{",": "，", ".": "。", "?": "？", "!": "！"},
}
# Without digits, as those of WH660; the U.S. are one.
_WORD = re.compile(r"(?:[^\W\d_]\.){2,}|(?<![^\W_])[^\W\d_]+(?:['’][^\W\d_]+)*(?![^\W_])")
_FIRST_LETTER = re.compile(r"(?<!\S)[^\w\s]*[^\W\d_]")  # of a word, with the quotes and brackets before it
_MOSTLY = 0.8  # the share of capitals in ALL CAPS: a word of several may be an iPhone
_FEWEST_TITLE_WORDS = 3
_FEWEST_LETTERS_A_TOKEN = 2.5  # of a word that the model knows, unlike an acronym in small letters
_LONGEST_SMALL_WORD = 3  # letters: titles leave longer words capitalized; a German sentence of nouns has others
_TWINS = 0.01  # the share of words in both forms in a vocabulary of sentences that start with a capital
_CLOSING = "\"'”’»«“)\\]」』）】"
_OPENING = "(\"'“‘„«["
_MARKS = ".!?…؟۔।॥"
_FULL_WIDTH_MARKS = "。！？｡"
# Marks and what closes after them are taken whole (possessive "+"): no sentence starts with the second of two marks.
_END = re.compile(
    rf"(?<![{_MARKS}])(?P<mark>[{_MARKS}]++)[{_CLOSING}]*+(?:\s»(?!\S))?+\s+(?=\S)"  # a space follows; « Ah ! »
    rf"|(?<![{_FULL_WIDTH_MARKS}])[{_FULL_WIDTH_MARKS}]++(?![》〉])[”’」』）】]*+\s*(?=\S)"  # none is needed
)
_MARKS_IN_A_ROW = re.compile("[!?！？]+")
_ENTITY = re.compile("&(?:amp|lt|gt|quot|apos|#39);", re.IGNORECASE)
_INITIALS = re.compile(r"(?:[^\W\d_]\.)*[^\W\d_]")  # the A of "A. Smith", the U.S of "U.S. team"
_ORDINAL = re.compile(r"(?:\d{1,2}\.?[-–/])?\d{1,2}")  # the 24.-26 of "24.-26. Dezember"


@dataclass(frozen=True)
class Change:
    """The texts that are translated instead of a text.

    Attributes:
        parts: the texts to translate; none of them if the text needs no model.
        restore: makes the text's translation from one translation of each part.
    """

    parts: Sequence[str]
    restore: Callable[[Sequence[Translation]], Translation]


Preparation = Callable[[str], Change | None]  # returns how a text is changed; None leaves it as it is


@dataclass(frozen=True)
class PreparedText:
    """A text and the texts that it has become: a tree, whose leaves the model translates.

    Attributes:
        text: what is translated.
        parts: the texts that are translated instead.
        restore: makes the translation of ``text`` from one of each part; None if the model translates ``text`` itself.
    """

    text: str
    parts: Sequence["PreparedText"] = ()
    restore: Callable[[Sequence[Translation]], Translation] | None = None

    def ends(self) -> Iterator["PreparedText"]:
        """Yield the texts that become no others, in order: those that the model translates, or that need no model."""
        if not self.parts:
            yield self
        for part in self.parts:
            yield from part.ends()

    def leaves(self) -> Iterator[str]:
        """Yield the texts that the model translates, in order."""
        return (end.text for end in self.ends() if end.restore is None)

    def restored(self, of_leaves: Iterator[list[Translation]]) -> list[Translation]:
        """Take the translations of each leaf, best first, and return those of the text, best first."""
        if self.restore is None:
            return next(of_leaves)
        of_parts = [part.restored(of_leaves) for part in self.parts]
        return [self.restore(chosen) for chosen in by_rank(of_parts) or [[]]]


def prepared(text: str, preparations: Sequence[Preparation]) -> PreparedText:
    """Apply ``preparations`` in order, each to the parts that those before it have made."""
    for place, prepare in enumerate(preparations, 1):
        change = prepare(text)
        if change is not None:
            return PreparedText(text, [prepared(part, preparations[place:]) for part in change.parts], change.restore)
    return PreparedText(text)


def copy_unknown(
    text: str, can_write: Callable[[str], bool], *, with_numbers: Callable[[str], str] = str, is_noted: bool = False
) -> Change | None:
    """Copy texts without letters, and texts whose letters are all unknown to the model; not the empty text.

    Args:
        text: the text.
        can_write: tells whether the model knows a form of a character.
        with_numbers: writes a text without letters with the numbers of the target language.
        is_noted: whether unknown letters are noted elsewhere.
    """
    letters = filter(str.isalpha, text)
    first = next(letters, None)
    if not text.strip() or (first and (can_write(first) or any(map(can_write, letters)))):
        return None
    notes = (f"{FLAG}not translated: the model knows none of its letters",) if first and not is_noted else ()
    copy = Translation(on_one_line(text if first else with_numbers(text)), notes=notes)
    return Change((), lambda _parts: copy)


def is_symbol(character: str) -> bool:
    """Tell whether a character is an emoji, another symbol, or a part of an emoji."""
    return character in _JOINERS or unicodedata.category(character) in ("So", "Sk")


class KnownCharacters:
    """Replaces characters that the model does not know: ligatures, full-width forms, curly quotes, accents.

    A character without a token is replaced by the first form of which every character has one: Unicode's
    compatibility mapping (NFKC), what looks the same, the letter without its accents. Invisible characters are dropped,
    except inside an emoji. Where there is no such form, the character stays, with a note if it is a letter or a digit.
    """

    def __init__(
        self,
        known: frozenset[str] | None,
        *,
        composes: bool = True,
        kept: _Places | None = None,
    ) -> None:
        """Take the characters that the model has tokens for, None for all.

        Args:
            known: the characters.
            composes: whether the tokenizer composes letters with their accents (NFC). If not, they may stand apart.
            kept: returns the places in a text of what slots will stand for: it stays, and nothing is noted, since it
                is not known yet what the model reads.
        """
        self._known, self._composes, self._kept = known, composes, kept

    def __call__(self, text: str) -> Change | None:
        """Prepare texts with unknown characters."""
        if self._knows(text):
            return None
        composed = unicodedata.normalize("NFC", on_one_line(text))
        kept = self._kept(composed) if self._kept else ()
        forms = (c if i in kept else self._form(composed[i - 1 : i] or " ", c) for i, c in enumerate(composed))
        known = "".join(forms)
        unknown = dict.fromkeys(c for c in known if c.isalnum() and not self.can_write(c) and not self._kept)
        if known == text and not unknown:
            return None
        notes = (f"{FLAG}unknown characters: {''.join(unknown)}",) if unknown else ()
        return Change([known], lambda parts: parts[0].noted(*notes))

    def can_write(self, character: str) -> bool:
        """Tell whether the model knows a form of a character, or its small letter."""
        return self._knows(self._form(" ", character)) or self._knows(character.lower())

    def _knows(self, text: str) -> bool:
        if self._known is None:
            return not any(unicodedata.category(character) == "Cc" for character in text)
        return self._known.issuperset(text)

    def _form(self, before: str, character: str) -> str:
        """Return the known form of a character that follows ``before``."""
        if self._knows(character):
            return character
        if is_symbol(character) and is_symbol(before):  # a joiner in an emoji
            return character
        if character.isspace():
            return " "
        category = unicodedata.category(character)
        if category in ("Cf", "Cc") or (category in ("Mn", "Me") and self._knows(before)):
            return ""
        compatible = unicodedata.normalize("NFKC", character)
        if category == "No" and compatible.isdecimal() and not before.isalpha():
            return character  # 10⁶ is not 106
        bare = "".join(c for c in unicodedata.normalize("NFKD", character) if not unicodedata.combining(c))
        alike = "".join(_ALIKE.get(c, c) for c in compatible)
        apart = "" if self._composes else unicodedata.normalize("NFD", character)
        for form in (apart, compatible, alike, bare):
            if form and self._knows(form):
                return form
        return character


def split_sentences(text: str, language: str) -> list[str]:
    """Split a text into its sentences, with the spaces between them left out.

    A sentence ends at a full stop, question or exclamation mark, with the quotes and brackets that close after it,
    before a space and anything but a small letter; in Chinese and Japanese no space is needed. The full stop of an
    abbreviation, of an initial, or of an ordinal number where the language writes it so, ends none, nor does the last
    mark of a title, as in 《加油！》, and nothing ends one between straight quotes.
    """
    starts = [0, *_ends(text, base_language(language)), len(text)]
    return [part for start, end in pairwise(starts) if (part := text[start:end].strip())]


def _ends(text: str, language: str) -> Iterator[int]:
    """Yield where each sentence but the first starts."""
    has_quotes = text.count('"') % 2 == 0 and '"' in text
    n_quotes = counted = 0  # straight quotes in the text up to there
    for match in _END.finditer(text):
        n_quotes, counted = n_quotes + text.count('"', counted, match.end()), match.end()
        follows = text[match.end()]
        if follows.islower() or follows in ",;:)" or (has_quotes and n_quotes % 2):
            continue
        if follows == "と" and text[match.end() - 1] in "」』":  # the sentence goes on, as in 「はい。」と言った。
            continue
        if match["mark"] != "." or not _has_own_stop(text, match.start(), language):
            yield match.end()


def _has_own_stop(text: str, end: int, language: str) -> bool:
    """Tell whether a full stop belongs to the word before it: an abbreviation, an initial or an ordinal number."""
    word = text[text.rfind(" ", 0, end) + 1 : end].lstrip(_OPENING)
    return (
        word.lower() in abbreviations(language)
        or (_INITIALS.fullmatch(word) is not None and word != "I")
        or (has_full_stops_in_ordinals(language) and _ORDINAL.fullmatch(word) is not None)
    )


def by_sentences(text: str, src_lang: str, tgt_lang: str) -> Change | None:
    """Split a line of several sentences, and join their translations."""
    sentences = split_sentences(text, src_lang)
    return Change(sentences, lambda parts: joined(parts, separator_of(tgt_lang))) if len(sentences) > 1 else None


def single_marks(text: str) -> Change | None:
    """Write !!!! and ??? as one mark, since models repeat them without end, and as many in the translation."""
    of_text = _MARKS_IN_A_ROW.findall(text)

    def restored(parts: Sequence[Translation]) -> Translation:
        left = iter(of_text)

        def as_many(found: re.Match[str]) -> str:
            mark, marks = found[0][0], next(left, "!")
            return marks if mark in marks else mark * len(marks)

        return replace(parts[0], text=_MARKS_IN_A_ROW.sub(as_many, parts[0].text))

    return Change([_MARKS_IN_A_ROW.sub(lambda marks: max(marks[0]), text)], restored) if of_text else None


def without_entities(text: str) -> Change | None:
    """Write &amp; in the translation of a text without entities as &: a model may have learned it from web pages."""
    if _ENTITY.search(text):
        return None

    def restored(parts: Sequence[Translation]) -> Translation:
        return replace(parts[0], text=_ENTITY.sub(lambda entity: html.unescape(entity[0].lower()), parts[0].text))

    return Change([text], restored)


class Casing:
    """Translates texts in ALL CAPS and in Title Case, and WORDS in capitals, as if they were written as usual.

    Each word is written as the tokenizer knows it best: in the casing that takes the fewest tokens, of equal ones in
    small letters. So names, acronyms and German nouns keep their capitals. Codes and names of files stay as they are.
    """

    def __init__(self, tokenizer: Tokenizer, src_lang: str) -> None:
        """Take the tokenizer that the model was trained with, and the language of the texts."""
        self._tokenizer = tokenizer
        self._n_tokens = tokenizer.n_src_tokens
        self._language = base_language(src_lang)

    def __call__(self, text: str) -> Change | None:
        """Prepare texts with words in ALL CAPS, unless that takes more tokens, and others if it takes fewer."""
        if sum(map(str.isupper, text)) < 2:
            return None
        restore = self._restore(text)
        usual = self._true_cased(text, partial(self._form_in, restore=restore))
        # A model trained with data.augment has tokens for capitals, yet knows the usual ones better.
        fewest_saved = 0 if restore is str.upper else 1
        if usual == text or self._n_tokens(text) - self._n_tokens(usual) < fewest_saved:
            return None
        given = dict(zip(_WORD.findall(usual), _WORD.findall(text), strict=False))

        def restored(parts: Sequence[Translation]) -> Translation:
            notes = tuple(_with_words(note, given) for note in parts[0].notes)
            text = outside_codes(restore, parts[0].text) if restore else parts[0].text
            return replace(parts[0], text=text, notes=notes)

        return Change([usual], restored)

    def _restore(self, text: str) -> Callable[[str], str] | None:
        """Return the function that gives a translation the capitals of ``text``; None if it has the usual ones."""
        n_upper = sum(map(str.isupper, text))
        if n_upper >= (_MOSTLY if " " in text else 1) * (n_upper + sum(map(str.islower, text))):
            return str.upper
        words = [word for word in _WORD.findall(text) if word.islower() or word[1:].islower()]  # no acronyms
        if len(words) < _FEWEST_TITLE_WORDS:
            return None
        long = [word for word in words if self._language == "de" or len(word) > _LONGEST_SMALL_WORD]
        capitalized = [word for word in words[1:] if word[0].isupper()]
        if not all(word[0].isupper() for word in long) or 2 * len(capitalized) < len(words) - 1:
            return None
        n_small = sum(self._n_tokens(word.lower()) == 1 for word in capitalized)  # words that are not names
        return _title_cased if 2 * n_small >= len(capitalized) else None

    def _true_cased(self, text: str, usual_form: Callable[[str], str]) -> str:
        """Write the words of ``text`` in their usual forms, and start it as the model knows sentences."""
        usual = outside_codes(lambda part: _WORD.sub(lambda word: usual_form(word[0]), part), text)
        first = _FIRST_LETTER.search(usual) if usual != text and self._starts_with_capital else None
        return usual if first is None else usual[: first.end()].upper() + usual[first.end() :]

    @cached_property
    def _starts_with_capital(self) -> bool:
        """Whether sentences start with a capital, so that the vocabulary has words in both forms."""
        vocabulary = set(self._tokenizer.src_tokens(range(self._tokenizer.src_vocab_size)))
        words = [token[1:] for token in vocabulary if token[:1] == "▁" and token[1:].isalpha()]
        n_twins = sum(word[0].isupper() and f"▁{word.lower()}" in vocabulary for word in words)
        return n_twins > _TWINS * len(words)

    def _form_in(self, word: str, restore: Callable[[str], str] | None) -> str:
        """Return a word as the model reads it in a text whose capitals ``restore`` makes."""
        is_titled = len(word) == 1 or word[1:].islower()
        is_usual = restore is str.upper or (restore is _title_cased and is_titled)
        return self._usual(word) if is_usual else self._undone(word)

    def _undone(self, word: str) -> str:
        """Return a word in capitals in its usual casing if the model knows it so; others, such as US, as they are."""
        if len(word) < 3 or not word.isupper():
            return word
        usual = self._usual(word)
        n_tokens = self._n_tokens(usual)
        is_known = n_tokens < self._n_tokens(word) and len(word) >= _FEWEST_LETTERS_A_TOKEN * n_tokens
        return usual if is_known else word

    def _usual(self, word: str) -> str:
        """Return a word in the casing that takes the fewest tokens; initials stay."""
        if word.islower() or "." in word:
            return word
        small = word.lower()
        capitalized = small[:1].upper() + small[1:]
        if self._language == "en" and re.fullmatch(r"i(['’].*)?", small):
            return capitalized  # the pronoun
        n_small, n_capitalized, n_given = map(self._n_tokens, (small, capitalized, word))
        is_noun = self._language == "de" and n_capitalized > 1  # likely, as rare words mostly are
        if n_given < min(n_small, n_capitalized):
            return word
        return capitalized if n_capitalized < n_small or (is_noun and n_capitalized == n_small) else small


def _with_words(note: str, given: Mapping[str, str]) -> str:
    """Write the words that a note names, as in "check: names lost: Uuid", as they are ``given``."""
    flag, *problem = note.split(": ", 2)
    if len(problem) < 2:
        return note
    return f"{flag}: {problem[0]}: {_WORD.sub(lambda word: given.get(word[0], word[0]), problem[1])}"


def _title_cased(text: str) -> str:
    return _FIRST_LETTER.sub(lambda match: match[0].upper(), text)


def note_unknown_words(text: str, words: frozenset[str], kept: _Places | None) -> Change | None:
    """Note the words that are new to a model, and keep the text.

    Args:
        text: the text.
        words: those that the model knows, in small letters.
        kept: as for :class:`KnownCharacters`.
    """
    places = kept(text) if kept else ()
    unknown = unknown_words("".join(" " if i in places else c for i, c in enumerate(text)), words)
    note = f"{FLAG}unknown: {', '.join(unknown)}"
    return Change([text], lambda parts: parts[0].noted(note)) if unknown else None


def known_characters(tokenizer: Tokenizer, language: str | None = None) -> KnownCharacters:
    """Return the preparation for unknown source characters; with a language, text for slots stays unchanged."""
    vocabulary, kept = tokenizer.src, None if language is None else _kept(tokenizer, language)
    return KnownCharacters(vocabulary.characters, composes=vocabulary.form != "identity", kept=kept)


def _kept(tokenizer: Tokenizer, language: str) -> _Places | None:
    """Return what finds the places in a text of what slots will stand for; None without slots."""
    find = partial(places_for_slots, language=language, n_tokens=tokenizer.n_src_tokens)
    return find if tokenizer.has_slots else None


def standard_preparations(
    tokenizer: Tokenizer, src_lang: str, tgt_lang: str, words: Iterable[str] = ()
) -> tuple[Preparation, ...]:
    """Return the preparations for a model, in order; ``words`` are those that it knows, or none."""
    characters = known_characters(tokenizer, src_lang)
    in_target = partial(with_numbers_for, src_lang=src_lang, tgt_lang=tgt_lang)
    with_numbers = in_target if tokenizer.has_slots else str
    copy = partial(copy_unknown, can_write=characters.can_write, with_numbers=with_numbers)
    noted = partial(note_unknown_words, words=frozenset(words), kept=_kept(tokenizer, src_lang))
    return (
        copy,  # first, so that copies are exact
        characters,
        partial(by_sentences, src_lang=src_lang, tgt_lang=tgt_lang),
        partial(copy, is_noted=not tokenizer.has_slots),
        *([noted] if words else []),
        single_marks,
        without_entities,
        Casing(tokenizer, src_lang),
    )
