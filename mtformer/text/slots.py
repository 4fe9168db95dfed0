"""Slots: characters of private use that stand in a text for a number, a code or a name, which a translation keeps.

A model that has only seen a few numbers garbles the others. One that was trained with slots sees a token that says
"several", as in "⟨4711⟩ dogs", and learns to write the same token beside the translation of *dogs*. What stands for
what is remembered outside of the model, so that no digit can change.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from mtformer.config import TokenizerConfig
from mtformer.text.entities import (
    FEW,
    MANY,
    NAME,
    SLOT,
    Entity,
    find_entities,
)
from mtformer.text.names import capitalized, rare_names
from mtformer.text.ordinals import ordinal_ending
from mtformer.text.pairs import SentencePair
from mtformer.text.spelled_amounts import larger_spelled_out, spelled_amounts, spelled_out
from mtformer.text.words import Span

# Those of each kind, which are one token each.
OF_KIND = {
    MANY: tuple(map(chr, range(0xE000, 0xE008))),
    FEW: tuple(map(chr, range(0xE008, 0xE00C))),
    NAME: tuple(map(chr, range(0xE00C, 0xE010))),
}
SLOTS = tuple(slot for slots in OF_KIND.values() for slot in slots)
SPACED_SLOT = re.compile(rf"([.,;:，、；：。]?\s*)({SLOT.pattern})")
COMMA = re.compile(r"[,;]\s+(?=\S)|[，；、](?=.)")
ENDS_A_PART = re.compile("[.,;:!?…，、；：。！？]")
_LETTERS = r"A-Za-z\u00c0-\u024f\u0370-\u052f\u1e00-\u1fff"  # of languages that separate words
# At any place, what makes one number of two, and what makes a word of a name.
MERGED = re.compile(rf"(?=((?:{SLOT.pattern}|\d[.,:'’]?){SLOT.pattern}|{SLOT.pattern}[.,:'’]?\d))")
GLUED = re.compile(rf"(?=([{_LETTERS}]{SLOT.pattern}|{SLOT.pattern}[{_LETTERS}]+))")
ENDING = re.compile(
    rf"{SLOT.pattern}(?:s|st|nd|rd|th|[ap]m|h|x|[ckm]?[gml]|t|[kM]?[VW]|e|ern?|mal|fach)"
)  # 3rd, 5km, 80er
ORDINAL_SLOT = re.compile(rf"({SLOT.pattern})(st|nd|rd|th|er(?=n?(?![a-z])))(?!(?<!er)[a-z])")
TAKES_ENDING = re.compile(r"\d(?:st|nd|rd|th|er)?$")
_NEAR = 20  # characters around a slot that tell whether it is glued
_SPELLED_OUT_SHARE, _NAMES_SHARE = 0.2, 0.1  # of the pairs that have any
_WORDS_SHARE = 0.5


def never_split(config: TokenizerConfig) -> list[str]:
    """Return the tokens that a tokenizer never splits: those of its user, and slots if it is to have them."""
    return list(dict.fromkeys([*config.user_symbols, *(SLOTS if config.slots else ())]))


@dataclass(frozen=True)
class Slotted:
    """A text with slots.

    Attributes:
        text: the text.
        originals: what each slot stands for in the text.
        fillings: what it stands for in a translation.
        names: the codes and names in the text, also those that no slot was left for.
        is_full: whether there were too few slots.
    """

    text: str
    originals: Mapping[str, str] = field(default_factory=dict)
    fillings: Mapping[str, str] = field(default_factory=dict)
    names: Sequence[str] = ()
    is_full: bool = False

    @property
    def shown(self) -> str:
        """The text as people can read it: ⟨4711⟩ dogs."""
        return readable(self.text, self.originals)

    @property
    def parts(self) -> list[str]:
        """The text without slots, cut at each comma and semicolon that is outside of them."""
        parts = COMMA.split(self.text)
        return [SLOT.sub(lambda slot: self.originals.get(slot[0], slot[0]), part) for part in parts]

    def keeps(self, translation: str) -> bool:
        """Tell whether a translation has each slot, apart from other slots and digits: 99 and 02 would become 9902."""
        once = self._once(translation)
        return all(slot in once for slot in self.fillings) and not self._is_merged(once)

    def fits(self, translation: str) -> bool:
        """Tell whether a translation keeps each slot, apart from letters: a name would become another one."""
        return self.keeps(translation) and not self._is_glued(self._once(translation))

    def lost(self, translation: str) -> list[str]:
        """Return the fillings of the slots that a translation lacks."""
        return [filling for slot, filling in self.fillings.items() if slot not in translation]

    def _once(self, translation: str) -> str:
        return _put({slot: slot for slot in self.fillings}, [translation])[0]

    def _is_merged(self, text: str) -> bool:
        return any(merged not in self.text for merged in MERGED.findall(text))

    def _is_glued(self, text: str) -> bool:
        """Tell whether a slot touches letters that it does not touch in the source, and that are no usual ending."""
        return any(
            glued not in self.text
            and not (ENDING.fullmatch(glued) and self._takes_ending(glued[0]))
            and not (glued[1:].isalpha() and re.search(rf"{glued[0]}(?:['’.-] ?)?[{_LETTERS}]", self.text))
            for glued in GLUED.findall(text)
        )

    def _takes_ending(self, slot: str) -> bool:
        """Tell whether an ending may follow a slot, as in 3rd and Tom's; not in 3 kmth."""
        return slot in OF_KIND[NAME] or bool(TAKES_ENDING.search(self.fillings.get(slot, "")))

    def repeats(self, translation: str) -> bool:
        """Tell whether a translation has a slot more than once."""
        return len(SLOT.findall(translation)) > len(self.fillings)

    def emptied(self, translation: str) -> str:
        """Put the slots back in place of their fillings in a translation, or in the start of one."""
        for slot, filling in sorted(self.fillings.items(), key=lambda item: -len(item[1])):
            for place in re.finditer(re.escape(filling), translation):
                before, after = translation[: place.start()], translation[place.end() :]
                near = before[-2:] + slot + after[:_NEAR]
                if not (self._is_merged(near) or self._is_glued(near)):
                    translation = before + slot + after
                    break
        return translation

    def lost_names(self, translation: str) -> list[str]:
        """Return the codes and names that a translation, whose slots are filled, lacks."""
        return [name for name in self.names if name not in translation]

    def filled(self, texts: Iterable[str]) -> list[str]:
        """Replace the slots in successive texts by their fillings: each once, where it comes first."""
        return _put(self.fillings, texts)


def _put(fillings: Mapping[str, str], texts: Iterable[str]) -> list[str]:
    """Replace slots in successive texts by their fillings: each once, where it comes first."""
    remaining = dict(fillings)

    def ordinal(number: re.Match[str]) -> str:
        return number[1] + _ordinal_ending(fillings.get(number[1], ""), number[2])

    def filling(slot: re.Match[str]) -> str:
        if slot[2] not in remaining:
            return _dropped(slot)
        text = slot[1] + remaining.pop(slot[2])
        return text.removesuffix(".") if slot.string.startswith(".", slot.end()) else text  # one full stop of two

    return [SPACED_SLOT.sub(filling, ORDINAL_SLOT.sub(ordinal, text)) for text in texts]


def _ordinal_ending(number: str, ending: str) -> str:
    """Return the ending that is right for a number: 1th becomes 1st; none if it has one, as 1990er."""
    if number[-1:].isdigit() and ending != "er":
        return ordinal_ending(number, "en")
    return ending if number[-1:].isdigit() or not TAKES_ENDING.search(number) else ""


def readable(text: str, meanings: Mapping[str, str]) -> str:
    """Return a text, or a token, with its slots resolved, as in ⟨4711⟩ dogs; ⟨?⟩ is a slot without an original."""
    return SLOT.sub(lambda slot: f"⟨{meanings.get(slot[0], '?')}⟩", text)


def known_slots(text: str, source: str) -> str:
    """Drop the slots from a translation, or a part of it, that its source lacks."""
    return SPACED_SLOT.sub(lambda slot: slot[0] if slot[2] in source else _dropped(slot), text)


def _dropped(slot: re.Match[str]) -> str:
    """Return the mark and the space that stay when a slot after them is dropped.

    The space stays if letters follow, and the mark unless another one follows, or a comma would be the last character.
    """
    mark, after = slot[1].rstrip(), slot.string[slot.end() : slot.end() + 1]
    if re.match(r"\w", after):
        return slot[1]
    return "" if ENDS_A_PART.match(after or mark.strip(".。")) else mark


def with_slots(
    text: str,
    src_lang: str,
    tgt_lang: str,
    *,
    n_tokens: Callable[[str], int] = lambda _word: 1,
    kept: Sequence[Span] = (),
    words: bool = False,
    bare: bool = False,
) -> Slotted | None:
    """Put slots into a text that is to be translated; None if it has nothing that needs any.

    So is a text with more slots of its own than can be replaced.

    Args:
        text: the text. If it has more numbers than there are slots, the last ones stay.
        src_lang: its language.
        tgt_lang: that of the translation, which decides how numbers are written there.
        n_tokens: returns how many tokens the model has for a word: a name that it has to spell is kept.
        kept: spans that stay as they are.
        words: whether a number shares its slot with a unit that is a word, as 5 kilometers, and whether larger numbers
            that are words have slots, as twenty-one.
        bare: whether units and currencies stay outside of slots.
    """
    free = {kind: list(slots) for kind, slots in OF_KIND.items()}
    parts, originals, fillings, names, place, is_full = [], {}, {}, [], 0, False
    for each in _candidates(text, src_lang, n_tokens, words=words):
        entity = each.bare if bare else each
        if entity.start < place or not _is_free(entity, kept) or not entity.suits(tgt_lang):
            continue
        names += [entity.text] * (entity.kind == NAME)
        if free[entity.kind]:
            slot, [before, after] = free[entity.kind].pop(0), ("", "") if bare else _brackets(text, entity, place)
            originals[slot] = before + entity.text + after
            fillings[slot] = before + entity.written_for(src_lang, tgt_lang) + after
            parts += [text[place : entity.start - len(before)], entity.with_slot(slot)]
            place = entity.end + len(after)
        elif entity.text in SLOTS:
            return None
        else:
            is_full = True
    return Slotted("".join([*parts, text[place:]]), originals, fillings, names, is_full) if fillings else None


def _brackets(text: str, entity: Entity, start: int) -> Sequence[str]:
    """Return the brackets around an entity that contain nothing else, and begin neither before ``start`` nor a call."""
    before, after = text[max(start, entity.start - 1) : entity.start], text[entity.end : entity.end + 1]
    is_call = text[entity.start - 2 : entity.start - 1].isalnum()
    return (before, after) if before + after in ("()", "[]") and not is_call else ("", "")


def places_for_slots(text: str, language: str, n_tokens: Callable[[str], int]) -> set[int]:
    """Return the places of the characters in a text that slots are for; see :func:`with_slots`."""
    return {place for each in _candidates(text, language, n_tokens) for place in range(each.start, each.end)}


def _candidates(text: str, language: str, n_tokens: Callable[[str], int], *, words: bool = False) -> list[Entity]:
    entities = [*_entities(text, language, words=words), *rare_names(text, language, n_tokens)]
    return sorted(entities, key=lambda each: (each.start, -each.end))  # of two that overlap, the first counts


def _entities(text: str, language: str, *, words: bool = False) -> list[Entity]:
    """Return the entities of a text; without ``words``, none with units or larger numbers that are words."""
    if words:
        in_words = (*spelled_amounts(text, language), *larger_spelled_out(text, language))
        return [*find_entities(text, language), *in_words]
    return [entity for entity in find_entities(text, language) if not entity.unit]


def pair_with_slots(pair: SentencePair, languages: Sequence[str], rng: Random) -> SentencePair | None:
    """Put slots, drawn at random, for the entities that both sides of a pair have; None if they share none.

    Shared numbers and codes always get slots, and some spelled-out numbers and names: these show the model where slots
    stand in a sentence, also in a text without digits.
    """
    extra = ((spelled_out, _SPELLED_OUT_SHARE), (capitalized, _NAMES_SHARE))
    finders = [finder for finder, share in extra if rng.random() < share]
    words = rng.random() < _WORDS_SHARE
    found = []
    for text, language in zip(pair, languages, strict=True):
        of_finders = [entity for find in finders for entity in find(text, language)]
        found.append([*_entities(text, language, words=words), *of_finders])
        if not found[-1]:
            return None
    placed = _placed(found, {kind: rng.sample(slots, len(slots)) for kind, slots in OF_KIND.items()})
    return SentencePair(*map(_replaced, pair, placed)) if any(placed) else None


def pair_with_its_slots(
    pair: SentencePair, languages: Sequence[str], n_tokens: Callable[[str], int]
) -> tuple[Slotted, str]:
    """Put slots for the entities that a text and a given translation share; see :func:`with_slots`."""
    names = {name.text for name in rare_names(pair.src, languages[0], n_tokens)}
    of_tgt = [
        *_entities(pair.tgt, languages[1]),
        *(Entity(each.start(), name, name, NAME) for name in names for each in re.finditer(re.escape(name), pair.tgt)),
    ]
    placed = _placed([_candidates(pair.src, languages[0], n_tokens), of_tgt], OF_KIND)
    originals, fillings = ({slot: entity.text for slot, entity in side.items()} for side in placed)
    src, tgt = map(_replaced, pair, placed)
    return Slotted(src, originals, fillings), tgt


def _placed(found: Iterable[Sequence[Entity]], slots: Mapping[str, Sequence[str]]) -> list[dict[str, Entity]]:
    """Return the entities for slots on both sides: values that both have equally often, the longest first."""
    of_src, of_tgt = map(_by_value, found)
    pairs: list[tuple[Entity, Entity]] = []
    left = {kind: len(of_kind) for kind, of_kind in slots.items()}
    for value, entities in sorted(of_src.items(), key=lambda item: -len(item[1][0].text)):
        taken = [[(entity.start, entity.end) for entity in side] for side in zip(*pairs, strict=True)] or [[], []]
        sides = (entities, of_tgt.get(value, []))
        free = [[each for each in side if _is_free(each, spans)] for side, spans in zip(sides, taken, strict=True)]
        for of_sides in zip(*free, strict=True) if len(free[0]) == len(free[1]) else ():
            if left[of_sides[0].kind]:
                left[of_sides[0].kind] -= 1
                pairs.append(of_sides)
    free_slots = {kind: iter(of_kind) for kind, of_kind in slots.items()}
    pairs.sort()
    chosen = [next(free_slots[entity.kind]) for entity, _ in pairs]
    return [dict(zip(chosen, side, strict=True)) for side in zip(*pairs, strict=True)] or [{}, {}]


def _by_value(entities: Iterable[Entity]) -> Mapping[str, list[Entity]]:
    by_value: dict[str, list[Entity]] = {}
    for entity in entities:
        by_value.setdefault(entity.value, []).append(entity)
    return by_value


def _is_free(entity: Entity, spans: Iterable[Span]) -> bool:
    return not any(entity.start < end and start < entity.end for start, end in spans)


def _replaced(text: str, placed: Mapping[str, Entity]) -> str:
    for entity, slot in sorted(((entity, slot) for slot, entity in placed.items()), reverse=True):
        text = text[: entity.start] + entity.with_slot(slot) + text[entity.end :]  # places to the left stay
    return text
