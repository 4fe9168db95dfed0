"""Languages by their codes: scripts, spaces, numbers, names of codes."""

import re
from collections.abc import Sequence
from functools import lru_cache

_WITHOUT_SPACES = ("zh", "yue", "ja", "th")
_MANY_CHARACTERS = ("zh", "yue", "ja", "ko")
CHINESE_LANGUAGES = ("zh", "yue")
DENSITY = 3  # characters of a spaced language that say as much as one of Chinese or Japanese
# CLDR
_DECIMAL_POINTS = "am bn cy en ga gu he hi ja kn ko ml mn mr ms mt my ne pa si so sw ta te th ti ur yue zh".split()
_SIGNS_BEHIND = "ca da de el es gl hr is it ro sl sr".split()  # 5 €; so do those of the next line
_SPACED_GROUPS = "be bg cs et fi fr hu lt lv nb nn no pl ru sk sv uk".split()
_ORDINALS = ("de", "da", "nb", "nn", "no", "fi", "cs", "sk", "pl", "hu", "hr", "sl", "et", "lv", "tr")


_SCRIPTS = {"ja": "\u3040-\u30ff", "ko": "\uac00-\ud7af", "th": "\u0e00-\u0e7f", "zh": "\u4e00-\u9fff"}
_LATIN = "A-Za-zªº\u00c0-\u024f\u1e00-\u1eff"
_LETTERS = {
    _LATIN: "af ca cs cy da de en es et eu fi fr ga gl hr hu id is it lt lv mt nb nl nn no pl pt ro sk sl sq sv tr vi",
    "\u0370-\u03ff\u1f00-\u1fff": "el",
    "\u0400-\u052f": "be bg kk ky mk mn ru tg uk",
    "\u0590-\u05ff": "he yi",
    "\u0600-\u06ff\u0750-\u077f": "ar fa ps ug ur",
    "\u0900-\u097f": "hi mr ne sa",
    "\u0e00-\u0e7f": "th",
    "\u10a0-\u10ff": "ka",
    "\u0530-\u058f": "hy",
    "\uac00-\ud7af\u1100-\u11ff\u4e00-\u9fff": "ko",
    "\u3040-\u30ff\u3005\u4e00-\u9fff": "ja",
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff": "zh yue",
}
_WRITTEN_LIKE = dict(  # of each script in ISO 15924, a language
    pair.split()
    for pair in (
        "Latn en, Grek el, Cyrl ru, Hebr he, Arab ar, Deva hi, Thai th, Geor ka, Armn hy, Hang ko, Kore ko, Jpan ja, "
        "Hans zh, Hant zh"
    ).split(", ")
)
UNDETERMINED = "und"  # ISO 639-2's code of a language that is not known


def language_of_script(text: str) -> str:
    """Tell Japanese, Korean, Thai and Chinese by their script; other languages are undetermined.

    A tenth of the letters is enough: Japanese has kana among its characters, and all have names in Latin letters.
    """
    n_letters = sum(character.isalpha() for character in text)
    for language, script in _SCRIPTS.items():
        if n_letters and len(re.findall(f"[{script}]", text)) > 0.1 * n_letters:
            return language
    return UNDETERMINED


def letters_of(code: str) -> str | None:
    """Return the letters that a language is written in, as a range for a regular expression; None if not known.

    A script in the code, as in ``srp_Cyrl``, says which.
    """
    scripts = [_WRITTEN_LIKE[part] for part in re.split("[-_]", code) if part in _WRITTEN_LIKE]
    language = scripts[0] if scripts else base_language(code)
    return next((letters for letters, codes in _LETTERS.items() if language in codes.split()), None)


def may_be_written_in(text: str, code: str) -> bool:
    """Tell whether a text has a letter of a language, as far as its letters are known, or no letters at all."""
    letters = letters_of(code)
    return letters is None or bool(re.search(f"[{letters}]", text)) or not any(map(str.isalpha, text))


def has_latin_units(code: str) -> bool:
    """Return whether a language writes "5 km", as far as is known, as those in Latin and East Asian letters do."""
    return letters_of(code) in (_LATIN, None) or has_many_characters(code)


def is_written_from_right(code: str) -> bool:
    """Return whether a language is written from right to left, as far as is known."""
    return (letters_of(code) or "")[:1] in ("\u0590", "\u0600")  # Hebrew, Arabic


def base_language(code: str) -> str:
    """Return the language without script and region: ``zh`` for ``zh-Hant``, ``zh_TW`` and ``zho_Hans``."""
    language = _first_part(code)
    return _CODES.get(language, language)


def _first_part(code: str) -> str:
    return re.split("[-_]", code)[0]


def has_full_stops_in_ordinals(code: str) -> bool:
    """Return whether a language writes ordinal numbers with a full stop, as in "am 3. Mai"."""
    return base_language(code) in _ORDINALS


def decimal_and_group(code: str) -> tuple[str, str]:
    """Return the characters before the decimals and between the thousands of a number, as in 1,250.5 and 1.250,5."""
    language = base_language(code)
    if language in _DECIMAL_POINTS:
        return ".", ","
    return ",", "\u202f" if language in _SPACED_GROUPS else "."


def has_spaced_groups(code: str) -> bool:
    """Return whether a language separates thousands by spaces, as in 12 500."""
    return base_language(code) in _SPACED_GROUPS


def has_signs_behind(code: str) -> bool:
    """Return whether a language writes the sign of a currency behind the amount, as in 5 €."""
    return base_language(code) in (*_SIGNS_BEHIND, *_SPACED_GROUPS)


def is_written_with_spaces(code: str) -> bool:
    """Return whether spaces separate sentences and words."""
    return base_language(code) not in _WITHOUT_SPACES


def separator_of(code: str) -> str:
    """Return the separator of sentences and words: a space or nothing."""
    return " " if is_written_with_spaces(code) else ""


def has_many_characters(code: str) -> bool:
    """Return whether the script has so many characters that a vocabulary should leave out the rare ones."""
    return base_language(code) in _MANY_CHARACTERS


def suit_joint_vocabulary(src_langs: Sequence[str], tgt_langs: Sequence[str]) -> bool:
    """Return whether a joint vocabulary suits two sides.

    They have a language in common, or all languages separate words by spaces, or none does.
    """
    is_common = not set(src_langs).isdisjoint(tgt_langs)
    return is_common or len(set(map(is_written_with_spaces, [*src_langs, *tgt_langs]))) < 2


def max_token_length(code: str) -> int:
    """Return the maximum length of a token in characters: 16, the default of SentencePiece, or less.

    Chinese has no spaces to stop a token from growing over a whole clause; few of its words exceed three characters.
    Japanese and Thai have no spaces either, but spell long words in kana and letters.
    """
    return 3 if base_language(code) in CHINESE_LANGUAGES else 16


def function_words(code: str) -> tuple[str, ...]:
    """Return words so frequent that statistics merge them with any neighbour, where spaces do not prevent it.

    Each is nearly always a word of its own: particles, adverbs of degree, negation, *it* and conjunctions.
    """
    if base_language(code) not in CHINESE_LANGUAGES:
        return ()
    return tuple("的 了 吗 呢 吧 它 太 很 没 因为 所以 虽然 但是 如果".split())


# The codes of each language in ISO 639-1, and in ISO 639-2 and 639-3.
_TABLE = (
    "af afr, ar ara arb, be bel, bg bul, bn ben, ca cat, cs ces cze, cy cym wel, da dan, de deu ger, el ell gre, "
    "en eng, es spa, et est, eu eus baq, fa fas per, fi fin, fr fra fre, ga gle, gl glg, he heb, hi hin, hr hrv, "
    "hu hun, hy hye arm, id ind, is isl ice, it ita, ja jpn, ka kat geo, kk kaz, km khm, ko kor, lt lit, lv lav, "
    "mk mkd mac, mn mon, mr mar, ms msa may, mt mlt, nb nob, ne nep, nl nld dut, nn nno, no nor, pl pol, ps pus, "
    "pt por, ro ron rum, ru rus, sk slk slo, sl slv, sq sqi alb, sr srp, sv swe, sw swa, ta tam, te tel, th tha, "
    "tr tur, uk ukr, ur urd, uz uzb, vi vie, yue, zh zho chi cmn"
)
_CODES = {code: row.split()[0] for row in _TABLE.split(",") for code in row.split()}
_SUBTAG = re.compile(r"[a-z]{4}|[a-z]{2}|\d{3}")  # a script or a region, as in zh-hant-tw

_NAMES = (
    "Afrikaans, Arabic, Belarusian, Bulgarian, Bengali, Catalan, Czech, Welsh, Danish, German, Greek, English, "
    "Spanish, Estonian, Basque, Persian, Finnish, French, Irish, Galician, Hebrew, Hindi, Croatian, Hungarian, "
    "Armenian, Indonesian, Icelandic, Italian, Japanese, Georgian, Kazakh, Khmer, Korean, Lithuanian, Latvian, "
    "Macedonian, Mongolian, Marathi, Malay, Maltese, Norwegian Bokmål, Nepali, Dutch, Norwegian Nynorsk, Norwegian, "
    "Polish, Pashto, Portuguese, Romanian, Russian, Slovak, Slovenian, Albanian, Serbian, Swedish, Swahili, Tamil, "
    "Telugu, Thai, Turkish, Ukrainian, Urdu, Uzbek, Vietnamese, Cantonese, Chinese"
)
_ENGLISH_NAMES = {row.split()[0]: name for row, name in zip(_TABLE.split(", "), _NAMES.split(", "), strict=True)}

EXACT, VARIANT = 2, 1


def english_name(code: str) -> str:
    """Return the English name of a language, with the rest of its code in parentheses; the code if it has none."""
    name = _ENGLISH_NAMES.get(base_language(code))
    if name is None:
        return code
    variant = code[len(_first_part(code)) :].lstrip("-_")
    return f"{name} ({variant})" if variant else name


@lru_cache(1_000)  # a translation memory asks for each of its texts
def matches_language(name: str, code: str) -> int:
    """Tell how well ``name`` names the language ``code``: ``EXACT``, ``VARIANT``, or 0 if it names another or none.

    A variant is the same language with or without a region or script, or under the code of another standard.
    """
    name, code = _normalized(name), _normalized(code)
    if name == code:
        return EXACT
    if not is_language(name):
        return 0
    same = base_language(name) == base_language(code)
    return VARIANT if same and ("-" not in name or "-" not in code) else 0


def is_language(name: str) -> bool:
    """Tell whether ``name`` is the code of a known language."""
    base, *subtags = _normalized(name).split("-")
    return base in _CODES and all(_SUBTAG.fullmatch(part) for part in subtags)


def language_code(name: str) -> str | None:
    """Return the shortest code of a language, with its region or script; None if ``name`` is none."""
    if not is_language(name):
        return None
    return base_language(name.lower()) + name[len(_first_part(name)) :]


def _normalized(name: str) -> str:
    return name.strip().lower().replace("_", "-")
