"""Slots: characters of private use that stand in a text for a number, a code or a name, which a translation keeps.

A model that has only seen a few numbers garbles the others. One that was trained with slots sees a token that says
"several", as in "⟨4711⟩ dogs", and learns to write the same token beside the translation of *dogs*. What stands for
what is remembered outside of the model, so that no digit can change.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from mtformer.config import TokenizerConfig
from mtformer.text.languages import UNDETERMINED, base_language, decimal_and_group, has_spaced_groups
from mtformer.text.pairs import SentencePair
from mtformer.text.words import Span

# The slots of each kind, which are one token each. Numbers of two to four decline otherwise in Slavic languages.
MANY = tuple(map(chr, range(0xE000, 0xE008)))
FEW = tuple(map(chr, range(0xE008, 0xE00C)))
NAMES = tuple(map(chr, range(0xE00C, 0xE010)))
SLOTS = (*MANY, *FEW, *NAMES)
_SLOT = re.compile(f"[{SLOTS[0]}-{SLOTS[-1]}]")
_SPACED_SLOT = re.compile(rf"(\s*)({_SLOT.pattern})")

_LATIN = r"A-Za-z0-9_\u00c0-\u024f"  # what a code ends before: Chinese follows without a space
_CHINESE = r"\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_ADDRESS = rf"(?:https?://|www\.)[^\s<>\"'{_CHINESE}]+(?<![.,;:!?)\]])|(?<![{_LATIN}.+-])[{_LATIN}.+-]+@[{_LATIN}-]+(?:\.[{_LATIN}-]+)+"
_PLACEHOLDER = rf"\{{\{{\w+\}}\}}|\$?\{{\w+\}}|%\(\w+\)[sd]|%[sd](?![{_LATIN}])"  # {{user}}, ${first}, {0}
_EXTENSION = "pdf|txt|docx?|xlsx?|pptx?|csv|json|xml|html?|jpe?g|png|gif|svg|mp[34]|wav|zip|gz|exe|py|js"
_CODE = (  # report_2.pdf, mp3, v2.0, COVID-19, 3D
    rf"(?<![{_LATIN}.-])[A-Za-z0-9]+(?:[-_.][A-Za-z0-9]+)*\.(?:{_EXTENSION}|{_EXTENSION.upper()})(?![{_LATIN}])|"
    rf"(?<![{_LATIN}.-])(?:[A-Za-z]+[0-9][A-Za-z0-9]*|[A-Z][A-Za-z]*[-_][0-9]+[A-Za-z0-9]*|[0-9]+[A-Z][A-Za-z0-9]*)"
    rf"(?:[-_.][A-Za-z0-9]+)*(?![{_LATIN}-])"
)
_CODES = re.compile(f"{_ADDRESS}|{_PLACEHOLDER}|{_CODE}")
_DATE = (  # also 3/14 and 24/7
    r"\d{4}(?P<dash>[-/.])\d{1,2}(?P=dash)\d{1,2}|\d{1,2}(?P<stroke>[-/.])\d{1,2}(?P=stroke)(?:\d{4}|\d{2})"
    r"|\d{1,4}/\d{1,4}(?!/)"
)
_PHONE = r"\+\d{1,3}(?:[ ()/-]{1,2}\d{2,}){2,}"
_TIME = r"\d{1,2}[:：]\d{2}(?:[:：]\d{2})?"
_GROUPS = r"\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?:,\d+)?"  # of thousands, with spaces
_WIDE = "０-９"
_NUMBER = rf"[{_WIDE}]{{1,3}}(?:，[{_WIDE}]{{3}})+(?![{_WIDE}])|\d+(?:[.,'’．]\d+)*"
_MYRIADS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}  # of Chinese and Japanese
_MULTIPLES = {"": 1, "十": 10, "百": 100, "千": 1000}  # of these: 千 alone is also a kilo, as in 千米
_MYRIAD = r"(?:\d{1,3}(?:,\d{3}){1,4}|\d{1,15})(?:[.．]\d{1,15})?[十百千]?[万萬亿億]"
_IN_MYRIADS = re.compile(r"(?P<whole>[\d,]+)(?:\.(?P<decimals>\d+))?(?P<multiple>[十百千]?)(?P<myriad>[万萬亿億]?)")
_WITH_MYRIADS = ("zh", "yue", "ja")
_IP_ADDRESS = re.compile(r"(?:(?:1?\d{1,2}|2[0-4]\d|25[0-5])(?:\.|$)){4}")
_AS_ASCII = str.maketrans("０１２３４５６７８９，．：", "0123456789,.:")
_MONTH = "月"
_FOUND = re.compile(
    rf"(?P<slot>{_SLOT.pattern})|(?P<code>{_CODES.pattern})|(?P<phone>{_PHONE})"
    rf"|(?<![\d.,:/-])(?:(?P<date>{_DATE})|(?P<time>{_TIME}))(?![\d:/])"
    rf"|(?<![\d.,])(?P<groups>{_GROUPS})(?![\d.,]?\d)"
    rf"|(?<![A-Za-z_])(?P<number>(?:{_MYRIAD})+(?:\d千|\d{{4}})?(?![\d.,]?\d)|{_NUMBER})"
)
_FEWEST_FEW, _MOST_FEW = 2, 4
_WORD = re.compile(r"[^\W\d_]+")
_LATIN_NAME = r"[A-Z\u00c0-\u00de\u0100-\u017e][a-z\u00df-\u017f]+"
_CAPITALIZED = re.compile(rf"(?<![A-Za-z\u00c0-\u017f'’-]){_LATIN_NAME}(?: {_LATIN_NAME})*(?![A-Za-z\u00c0-\u017f])")
_CAPITALIZED_NOUNS = ("de", "lb")
_DETERMINED = re.compile(  # what comes next in German is a noun rather than a name: der, ihren alten, Toms
    r"(?<!\w)(?:(?:de[rmns]|die|das|(?:k?ein|[mds]ein|ihr|unser|eue?r)(?:e[mnrs]?)?"
    r"|(?:dies|jed|jen|welch|manch|solch|all|einig|mehrer|viel|wenig)(?:e[mnrs]?)?|[ai]m|[ai]ns|zu[mr]|vom|beim|aufs)"
    r"(?: [a-zäöüß]+e[mnrs]?)?) [„»\"]?$"
)
_LONGEST_BEFORE = 100  # characters before a word that tell a noun
_GENITIVE = re.compile(r"(?<!\w)[A-ZÄÖÜ]\w*s [„»\"]?$")
_FEWEST_TOKENS_OF_RARE = 4  # of a word that training has hardly seen
_FEWEST_SPELLED, _MOST_LETTERS_A_TOKEN = 3, 1.8  # of a word that is spelled; a German compound has longer tokens
_NOUN = re.compile(r"[ÄÖÜäöüß]|(?:ung|heit|keit|schaft|chen|lein|ismus|tät|ion|nis)(?:e[ns]?|[ns])?$")  # of German
_SPELLED_OUT_SHARE, _NAMES_SHARE = 0.2, 0.1  # of the pairs that have any
_SPELLED_OUT = {
    language: {word: value for value, word in enumerate(words, 2)}
    for language, *words in map(
        str.split,
        (
            "en two three four five six seven eight nine ten eleven twelve",
            "de zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
            "fr deux trois quatre cinq six sept huit neuf dix onze douze",
            "es dos tres cuatro cinco seis siete ocho nueve diez once doce",
            "it due tre quattro cinque sei sette otto nove dieci undici dodici",
            "pt dois três quatro cinco seis sete oito nove dez onze doze",
            "nl twee drie vier vijf zes zeven acht negen tien elf twaalf",
            "sv två tre fyra fem sex sju åtta nio tio elva tolv",
            "cs dva tři čtyři pět šest sedm osm devět deset jedenáct dvanáct",
            "pl dwa trzy cztery pięć sześć siedem osiem dziewięć dziesięć jedenaście dwanaście",
            "ru два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать",
        ),
    )
}


class Entity(NamedTuple):
    """A number, a date, a time or a code in a text.

    Attributes:
        start: where it starts, in characters.
        text: as it is written.
        value: what is the same for 3,500 and 3.500, and for 3万 and 30,000.
        slots: those that may stand for it.
    """

    start: int
    text: str
    value: str
    slots: Sequence[str]

    @property
    def end(self) -> int:
        """Where it ends, in characters."""
        return self.start + len(self.text)


def never_split(config: TokenizerConfig) -> list[str]:
    """Return the tokens that a tokenizer never splits: those of its user, and slots if it is to have them."""
    return [*config.user_symbols, *(SLOTS if config.slots else ())]


def find_slots(text: str) -> Iterator[tuple[int, str]]:
    """Yield where each slot stands in a text, and which it is."""
    return ((match.start(), match[0]) for match in _SLOT.finditer(text))


def find_entities(text: str, language: str) -> Iterator[Entity]:
    """Yield what a slot can stand for, in order. The number 1 is left out: it goes with a singular.

    So is that of a month in Chinese or Japanese, which has a name in other languages.
    """
    for match in _FOUND.finditer(text):
        kind = match.lastgroup
        if kind == "number" and text[match.end() : match.end() + 1] == _MONTH:
            continue
        if kind == "groups" and not has_spaced_groups(language):
            for number in re.finditer(_NUMBER, match[0]):
                yield from _number(match.start() + number.start(), number[0])
        elif kind in ("number", "groups"):
            yield from _number(match.start(), match[0])
        else:
            slots = NAMES if kind in ("code", "slot") else MANY
            yield Entity(match.start(), match[0], match[0], slots)


def _number(start: int, text: str) -> Iterator[Entity]:
    value = _value(text)
    if value != "1":
        few = value.isdigit() and len(value) == 1 and _FEWEST_FEW <= int(value) <= _MOST_FEW
        yield Entity(start, text, value, FEW if few else MANY)


def _value(text: str) -> str:
    """Return a number without separators of thousands, as far as it has any, and with a point before its decimals."""
    text = text.translate(_AS_ASCII)
    if not _MYRIADS.keys().isdisjoint(text):
        return str(sum(map(_in_units, _IN_MYRIADS.finditer(text))))
    whole, *parts = re.findall(r"\d+", text)
    while parts and len(parts[0]) == 3:
        whole += parts.pop(0)
    return ".".join([whole, *parts])


def _in_units(part: re.Match[str]) -> int:
    """Return the value of a part of a number such as 3亿5000万."""
    whole, decimals = part["whole"].replace(",", ""), part["decimals"] or ""
    factor = _MULTIPLES[part["multiple"]] * _MYRIADS.get(part["myriad"], 1)
    return int(whole + decimals) * factor // 10 ** len(decimals)


def written_for(text: str, src_lang: str, tgt_lang: str) -> str:
    """Write a number with the separators of another language; what may be something else stays as it is.

    ``1,250.5`` in English is ``1.250,5`` in German; times, dates and versions such as ``1.2.3`` are kept. Chinese and
    Japanese keep full-width digits, and numbers in 万 and 亿.
    """
    if base_language(tgt_lang) not in _WITH_MYRIADS:
        if not _MYRIADS.keys().isdisjoint(text):
            return f"{int(_value(text)):,}".replace(",", decimal_and_group(tgt_lang)[1])
        text = text.translate(_AS_ASCII)
    (src_point, src_group), (tgt_point, tgt_group) = decimal_and_group(src_lang), decimal_and_group(tgt_lang)
    groups = " \u00a0\u202f" if has_spaced_groups(src_lang) else re.escape(src_group)
    grouped = rf"\d{{1,3}}(?:[{groups}]\d{{3}})+"
    match = re.fullmatch(rf"(?P<whole>{grouped}|\d+)(?P<decimals>{re.escape(src_point)}\d+)?", text)
    if match is None or base_language(src_lang) == UNDETERMINED or _IP_ADDRESS.fullmatch(text):
        return text
    return re.sub(r"\D", tgt_group, match["whole"]) + (match["decimals"] or "").replace(src_point, tgt_point)


@dataclass(frozen=True)
class Slotted:
    """A text with slots.

    Attributes:
        text: the text.
        fillings: what each slot stands for in a translation.
        names: the codes and names in the text, also those that no slot was left for.
    """

    text: str
    fillings: Mapping[str, str]
    names: Sequence[str]

    @property
    def shown(self) -> str:
        """The text as people can read it: ⟨4711⟩ dogs."""
        return _SLOT.sub(lambda slot: f"⟨{self.fillings[slot[0]]}⟩", self.text)

    def fits(self, translation: str) -> bool:
        """Tell whether a translation has each slot."""
        return all(slot in translation for slot in self.fillings)

    def repeats(self, translation: str) -> bool:
        """Tell whether a translation has a slot more than once."""
        return len(_SLOT.findall(translation)) > len(self.fillings)

    def emptied(self, translation: str) -> str:
        """Put slots in place of what they stand for in a translation, or in the start of one."""
        for slot, filling in sorted(self.fillings.items(), key=lambda item: -len(item[1])):
            translation = translation.replace(filling, slot, 1)
        return translation

    def lost_names(self, translation: str) -> list[str]:
        """Return the codes and names that a translation, whose slots are filled, lacks."""
        return [name for name in self.names if name not in translation]

    def filled(self, texts: Iterable[str]) -> list[str]:
        """Put back what the slots in successive texts stand for: each once, where it comes first."""
        remaining = dict(self.fillings)

        def filling(slot: re.Match[str]) -> str:
            return slot[1] + remaining.pop(slot[2]) if slot[2] in remaining else ""

        return [_SPACED_SLOT.sub(filling, text) for text in texts]


def known_slots(text: str, source: str) -> str:
    """Drop the slots from a translation, or a part of it, that its source lacks."""
    return _SPACED_SLOT.sub(lambda slot: slot[0] if slot[2] in source else "", text)


def outside_codes(change: Callable[[str], str], text: str) -> str:
    """Change a text, but not the addresses, placeholders, names of files and other codes in it."""
    parts, place = [], 0
    for code in _CODES.finditer(text):
        parts += [change(text[place : code.start()]), code[0]]
        place = code.end()
    return "".join([*parts, change(text[place:])])


def with_slots(
    text: str,
    src_lang: str,
    tgt_lang: str,
    *,
    n_tokens: Callable[[str], int] = lambda _word: 1,
    kept: Sequence[Span] = (),
) -> Slotted | None:
    """Put slots into a text that is to be translated; None if it has nothing that needs any.

    So is a text with more slots of its own than can be replaced.

    Args:
        text: the text. If it has more numbers than there are slots, the last ones stay.
        src_lang: its language.
        tgt_lang: that of the translation, which decides how numbers are written there.
        n_tokens: returns how many tokens the model has for a word: a name that it has to spell is kept.
        kept: spans that stay as they are.
    """
    free = {slots: list(slots) for slots in (MANY, FEW, NAMES)}
    parts, fillings, names, place = [], {}, [], 0
    for entity in sorted([*find_entities(text, src_lang), *_rare_names(text, src_lang, n_tokens)]):
        if entity.start < place or not _is_free(entity, kept):
            continue
        is_name = entity.slots is NAMES
        names += [entity.text] * is_name
        slots = free[tuple(entity.slots)]
        if slots:
            slot = slots.pop(0)
            fillings[slot] = entity.text if is_name else written_for(entity.text, src_lang, tgt_lang)
            parts += [text[place : entity.start], slot]
            place = entity.end
        elif entity.text in SLOTS:
            return None
    return Slotted("".join([*parts, text[place:]]), fillings, names) if fillings else None


def pair_with_slots(pair: SentencePair, languages: Sequence[str], rng: Random) -> SentencePair | None:
    """Put slots, drawn at random, for what both sides of a pair have; None if there is nothing.

    Shared numbers and codes always get slots, and some spelled-out numbers and names: these show the model where slots
    stand in a sentence, also in a text without digits.
    """
    extra = ((_spelled_out, _SPELLED_OUT_SHARE), (_names, _NAMES_SHARE))
    finders = [find_entities, *(finder for finder, share in extra if rng.random() < share)]
    found = [
        [entity for find in finders for entity in find(text, language)]
        for text, language in zip(pair, languages, strict=True)
    ]
    free = {slots: rng.sample(slots, len(slots)) for slots in (MANY, FEW, NAMES)}
    changes: tuple[dict[Span, str], ...] = ({}, {})  # by their places
    for of_sides in _matched(*found):
        slots = free[tuple(of_sides[0].slots)]
        if slots and all(map(_is_free, of_sides, changes)):
            slot = slots.pop()
            for entity, change in zip(of_sides, changes, strict=True):
                change[entity.start, entity.end] = slot
    return SentencePair(*map(_replaced, pair, changes)) if changes[0] else None


def _rare_names(text: str, language: str, n_tokens: Callable[[str], int]) -> Iterator[Entity]:
    """Yield words that the model has to spell and that begin with a capital letter, not at the start of the text.

    In German, every noun does: there a name consists of shorter tokens than a compound, and has no article.
    """
    has_nouns = base_language(language) in _CAPITALIZED_NOUNS

    def is_name(word: re.Match[str]) -> bool:
        n = n_tokens(word[0])
        is_spelled = len(word[0]) <= _MOST_LETTERS_A_TOKEN * n
        if has_nouns:
            before = text[max(0, word.start() - _LONGEST_BEFORE) : word.start()]
            is_noun = _NOUN.search(word[0]) is not None or _is_noun_after(before)
            return n >= _FEWEST_SPELLED and is_spelled and not is_noun
        return n >= _FEWEST_TOKENS_OF_RARE or (n >= _FEWEST_SPELLED and is_spelled)

    for group in _CAPITALIZED.finditer(text):
        words = [word for word in _WORD.finditer(text, *group.span()) if word.start()]
        names = list(filter(is_name, words))
        if names:
            start = names[0].start() if has_nouns else words[0].start()
            yield Entity(start, text[start : group.end()], text[start : group.end()], NAMES)


def _is_noun_after(before: str) -> bool:
    """Tell whether a German word with a capital is a noun, by what stands before it."""
    return _DETERMINED.search(before.lower()) is not None or _GENITIVE.search(before) is not None


def _matched(src: Sequence[Entity], tgt: Sequence[Entity]) -> Iterator[tuple[Entity, Entity]]:
    """Yield what is on both sides, in order, if it is as often on one as on the other."""
    of_src, of_tgt = map(_by_value, (src, tgt))
    for value, entities in of_src.items():
        if len(entities) == len(of_tgt.get(value, ())):
            yield from zip(entities, of_tgt[value], strict=True)


def _by_value(entities: Iterable[Entity]) -> Mapping[str, list[Entity]]:
    by_value: dict[str, list[Entity]] = {}
    for entity in entities:
        by_value.setdefault(entity.value, []).append(entity)
    return by_value


def _spelled_out(text: str, language: str) -> Iterator[Entity]:
    """Yield the numbers from two to twelve that a text spells out."""
    values = _SPELLED_OUT.get(base_language(language))
    for word in _WORD.finditer(text) if values else ():
        value = values.get(word[0].lower()) if values else None
        if value is not None:
            yield Entity(word.start(), word[0], f"word {value}", FEW if value <= _MOST_FEW else MANY)


def _names(text: str, language: str) -> Iterator[Entity]:
    """Yield words that begin with a capital letter: what both sides write alike is a name, or as good as one."""
    for word in _WORD.finditer(text):
        if len(word[0]) > 1 and word[0][0].isupper():
            yield Entity(word.start(), word[0], word[0], NAMES)


def _is_free(entity: Entity, spans: Iterable[Span]) -> bool:
    return not any(entity.start < end and start < entity.end for start, end in spans)


def _replaced(text: str, changes: Mapping[Span, str]) -> str:
    for (start, end), slot in sorted(changes.items(), reverse=True):  # places to the left stay
        text = text[:start] + slot + text[end:]
    return text
