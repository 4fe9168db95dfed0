"""Random texts that a translation copies as they are: numbers, placeholders, tags, addresses and emoji."""

import re
import string
from random import Random

# In all patterns, 0 is a digit, @ a word, and # a domain.
_NUMBERS = ("00", "000", "0000", "00000", "00:00", "(00)", "00-00", "00/00")
_PLACEHOLDERS = ("{@}", "{{@}}", "${@}", "%(@)s", "__@__", "[@]", ":@", "{0}", "%0", "$0", "[0]", "%s", "%d")
_NAMES = ("name", "user", "count", "n", "date", "title", "file", "first_name", "total", "link", "email", "id")
_TAGS = ("b", "i", "u", "em", "strong", "span", "code", "p", "a", "0")
_URLS = ("https://@.#/@", "https://www.@.#/@/0000", "http://@.#/@?@=00", "www.@.#", "https://@.@.#/@/@.html")
_E_MAIL = ("@", "@.#")  # what is before and after the at sign
_E_MAIL_SHARE = 0.2
_DOMAINS = ("com", "org", "net", "de", "cn", "eu", "io", "edu")
_SYMBOL = re.compile(r"(?P<leading>(?<![\d.,:])0(?=[.,:]?0))|[0@#]")  # no zero leads several digits
_EMOJI = (  # ranges without gaps: faces, animals, hands and things, vehicles, food, celebrations, sports
    *((0x1F600, 0x1F644), (0x1F400, 0x1F43E), (0x1F440, 0x1F4A9), (0x1F680, 0x1F69D), (0x1F337, 0x1F37C)),
    *((0x1F380, 0x1F393), (0x1F3A0, 0x1F3C4)),
)
_HANDS = (0x1F446, 0x1F450)
_SKINS = (0x1F3FB, 0x1F3FF)
_AS_EMOJI = "\ufe0f"  # shows a sign of older fonts as an emoji
_OLDER = "❤☀☎✈✔☺✌☕⚡"


def number(rng: Random) -> str:
    """Return a number, a time or the like."""
    return _filled(rng.choice(_NUMBERS), rng)


def with_other_digits(text: str, rng: Random) -> str:
    """Return a number of the same form."""
    return _filled(re.sub(r"\d", "0", text), rng)


def placeholder(rng: Random) -> str:
    """Return a placeholder of one of the kinds that programs use."""
    return _filled(rng.choice(_PLACEHOLDERS), rng)


def tags(rng: Random) -> tuple[str, str]:
    """Return an opening and a closing tag."""
    name = _filled(rng.choice(_TAGS), rng)
    return f"<{name}>", f"</{name}>"


def url(rng: Random) -> str:
    """Return a URL or an e-mail address."""
    if rng.random() < _E_MAIL_SHARE:
        return "@".join(_filled(part, rng) for part in _E_MAIL)
    return _filled(rng.choice(_URLS), rng)


def emoji(rng: Random) -> str:
    """Return an emoji; some consist of two characters."""
    if rng.random() < 0.1:
        return rng.choice(_OLDER) + _AS_EMOJI
    character = _between(*rng.choice(_EMOJI), rng)
    is_hand = _HANDS[0] <= ord(character) <= _HANDS[1]
    return character + _between(*_SKINS, rng) if is_hand and rng.random() < 0.5 else character


def _between(first: int, last: int, rng: Random) -> str:
    return chr(rng.randrange(first, last + 1))


def _filled(pattern: str, rng: Random) -> str:
    def fill(found: re.Match[str]) -> str:
        if found[0] == "#":
            return rng.choice(_DOMAINS)
        if found[0] == "@":
            return _word(rng)
        return str(rng.randrange(1 if found["leading"] else 0, 10))

    return _SYMBOL.sub(fill, pattern)


def _word(rng: Random) -> str:
    """Return a common name, or letters that only copying gets right."""
    if rng.random() < 0.5:
        return rng.choice(_NAMES)
    return "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randrange(3, 9)))
