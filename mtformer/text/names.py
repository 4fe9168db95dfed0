"""Names in texts: capitalized words, and those that a model has to spell, which a translation keeps."""

import re
from collections.abc import Callable, Iterator

from mtformer.text.codes import COMPOUND
from mtformer.text.entities import NAME, Entity
from mtformer.text.languages import base_language

WORD = re.compile(r"(?:O['’])?[^\W\d_]+")
_LATIN = r"A-Za-z\u00c0-\u0259\u1e00-\u1eff"
# Above \u00ff, most capitals stand before their small letters: a match may begin with one of these.
LATIN_NAME = rf"[A-Z\u00c0-\u00de\u0100-\u024f\u1e00-\u1eff][a-z\u00df-\u0259\u1e00-\u1eff]+(?![{_LATIN}])"
_WHOLE_NAME = rf"(?:O['’]|Ma?c)?{LATIN_NAME}"  # O'Connor, McDonald
CAPITALIZED, CAPITALIZED_IN_GERMAN = (  # Jean-Pierre is one name, and a German Hilton-Hotel a name and a noun
    re.compile(rf"(?<![{_LATIN}'’-]){_WHOLE_NAME}(?:{between}{_WHOLE_NAME})*") for between in ("[ -]", " ")
)
ACRONYM = re.compile(rf"(?<![{_LATIN}0-9_'’-])[A-Z\u00c0-\u00d6\u00d8-\u00de]{{2,6}}(?![{_LATIN}0-9_]|(?!{COMPOUND})-)")
_CAPITALIZED_NOUNS = ("de", "lb")
DETERMINED = re.compile(  # what comes next in German is a noun rather than a name: 12, der, ihren alten, Toms
    r"(?:\d|(?<!\w)(?:de[rmns]|die|das|(?:k?ein|[mds]ein|ihr|unser|eue?r)(?:e[mnrs]?)?"
    r"|(?:dies|jed|jen|welch|manch|solch|all|einig|mehrer|viel|wenig)(?:e[mnrs]?)?|[ai]m|[ai]ns|zu[mr]|vom|beim|aufs)"
    r"(?: [a-zäöüß]+e[mnrs]?)?) [„»\"]?$"
)
_LONGEST_BEFORE = 100  # characters before a word that tell a noun
GENITIVE = re.compile(r"(?<!\w)[A-ZÄÖÜ]\w*s [„»\"]?$")
FEWEST_TOKENS_OF_RARE = 4  # of a word that training has hardly seen
_FEWEST_SPELLED, _MOST_LETTERS_A_TOKEN = 3, 1.8  # of a word that is spelled; a German compound has longer tokens
NOUN = re.compile(  # of German
    r"[ÄÖÜäöüß]|(?:(?:ung|heit|keit|schaft|lein|ismus|tät|ion|nis)[ns]?|e[nrs]?|ik|ch|st|[lr]n|[fhk]t)$"
)


def rare_names(text: str, language: str, n_tokens: Callable[[str], int]) -> Iterator[Entity]:
    """Yield words that the model has to spell and that begin with a capital letter, not at the start of the text.

    In German, every noun does: there a name consists of shorter tokens than a compound, and has no article. Acronyms
    are yielded as well, after the others; they may be at the start.
    """
    has_nouns = base_language(language) in _CAPITALIZED_NOUNS

    def is_name(word: re.Match[str]) -> bool:
        n = n_tokens(word[0])
        is_spelled = len(word[0]) <= _MOST_LETTERS_A_TOKEN * n
        if has_nouns:
            before = text[max(0, word.start() - _LONGEST_BEFORE) : word.start()]
            is_noun = NOUN.search(word[0]) is not None or _is_noun_after(before)
            return n >= _FEWEST_SPELLED and is_spelled and not is_noun
        return n >= FEWEST_TOKENS_OF_RARE or (n >= _FEWEST_SPELLED and is_spelled)

    for group in (CAPITALIZED_IN_GERMAN if has_nouns else CAPITALIZED).finditer(text):
        words = [word for word in WORD.finditer(text, *group.span()) if word.start() and word[0][0].isupper()]
        names = list(filter(is_name, words))
        if names:
            start = names[0].start() if has_nouns else words[0].start()
            yield Entity(start, text[start : words[-1].end()], text[start : words[-1].end()], NAME)
    for word in ACRONYM.finditer(text):
        if _is_spelled_in_any_case(word[0], n_tokens):
            yield Entity(word.start(), word[0], word[0], NAME)


def _is_spelled_in_any_case(word: str, n_tokens: Callable[[str], int]) -> bool:
    """Tell whether a word in capitals is an acronym, letter by letter: ONLY has fewer tokens in small letters."""
    fewest = max(2, len(word) - 1)
    return n_tokens(word) >= len(word) and min(n_tokens(word.lower()), n_tokens(word.capitalize())) >= fewest


def _is_noun_after(before: str) -> bool:
    """Tell whether a German word with a capital is a noun, by the words before it."""
    return DETERMINED.search(before.lower()) is not None or GENITIVE.search(before) is not None


def capitalized(text: str, language: str) -> Iterator[Entity]:
    """Yield words that begin with a capital letter; one that both sides write alike is a name, or as good as one."""
    for word in WORD.finditer(text):
        if len(word[0]) > 1 and word[0][0].isupper():
            yield Entity(word.start(), word[0], word[0], NAME)
