"""The regular expressions that pages share with Python: a script that declares them."""

import re

from mtformer.text import (
    beside_numbers,
    codes,
    dates,
    entities,
    lost_names,
    lost_numbers,
    marks,
    names,
    notation,
    numbers,
    repetition,
    scales,
    sentences,
    slots,
    unit_words,
)

_SHARED: tuple[tuple[str, str | re.Pattern[str], str], ...] = (  # name in JavaScript, and flags for its use there
    ("NUMBER", numbers.NUMBER, "g"),
    ("NUMBER_PARTS", numbers.DIGITS, "g"),
    ("IN_MYRIADS", numbers.IN_MYRIADS, "g"),
    ("SPACED_NUMBER", numbers.GROUPS, "g"),
    ("SINGLE", numbers.PLAIN, "g"),
    ("WHOLE_RANGE", f"^(?:{numbers.RANGE})$", ""),
    ("WHOLE_SHORT_MYRIADS", f"^(?:{numbers.SHORT_MYRIADS})$", ""),
    ("SCALE", scales.SCALE, "y"),
    ("ANY_SCALE", scales.ANY_SCALE, "y"),
    ("LARGE", scales.LARGE, ""),
    ("CLOCK", lost_numbers.CLOCK, ""),
    ("AND_A_HALF", lost_numbers.AND_A_HALF, ""),
    ("DECADE", lost_numbers.DECADE, "y"),
    ("CENTURY", lost_numbers.CENTURY, ""),
    ("DATE_IN_DIGITS", dates.IN_DIGITS, "g"),
    ("DAY_AND_MONTH", lost_numbers.DATE, ""),
    ("DECADE_BEFORE", lost_numbers.DECADE_BEFORE, ""),
    ("DECADE_OF_CENTURY", lost_numbers.DECADE_OF_CENTURY, "y"),
    ("ROMAN", lost_numbers.ROMAN, "g"),
    ("SMALL_RANGE", lost_numbers.SMALL_RANGE, "g"),
    ("MONTH_IN_DIGITS", lost_numbers.MONTH_IN_DIGITS, "g"),
    ("ABOUT", numbers.ABOUT, ""),
    ("WHOLE_ABOUT_MYRIADS", f"^(?:{numbers.ABOUT_MYRIADS})$", ""),
    ("UNIT_IN_COMPOUND", unit_words.UNIT_IN_COMPOUND, "g"),
    ("PERCENT", lost_numbers.PERCENT, "y"),
    ("ATTACHED_BEFORE", lost_numbers.ATTACHED_BEFORE, ""),
    ("ATTACHED_AFTER", lost_numbers.ATTACHED_AFTER, "y"),
    ("FOUND", entities.FOUND, "g"),
    ("WITH_CASING", codes.WITH_CASING, "g"),
    ("LONG", notation.LONG, ""),
    ("SHARING", beside_numbers.SHARING, ""),
    ("IN_FRONT", beside_numbers.IN_FRONT, ""),
    ("BEHIND", beside_numbers.BEHIND, ""),
    ("BEFORE_PERCENT", beside_numbers.BEFORE_PERCENT, "g"),
    ("BEFORE", beside_numbers.BEFORE, ""),
    ("OF_MONEY", beside_numbers.OF_MONEY, ""),
    ("ATTACHED", beside_numbers.ATTACHED, "y"),
    ("SIGN_BEFORE", beside_numbers.SIGN_BEFORE, ""),
    ("MINUS", beside_numbers.MINUS, ""),
    ("MINUS_BEFORE", beside_numbers.MINUS_BEFORE, ""),
    ("DEGREES", beside_numbers.DEGREES, "y"),
    ("AFTER", beside_numbers.AFTER, "y"),
    ("PRICE", beside_numbers.PRICE, ""),
    ("DASH", beside_numbers.DASH, "y"),
    ("ALONE", beside_numbers.ALONE, "y"),
    ("NAMED", beside_numbers.NAMED, ""),
    ("WHOLE_POINTED", f"^(?:{beside_numbers.POINTED})$", ""),
    ("NO_PLAIN_SPACE", beside_numbers.NO_PLAIN_SPACE, ""),
    ("LATIN_UNIT", beside_numbers.LATIN_UNIT, ""),
    ("IP_ADDRESS", f"^(?:{notation.IP_ADDRESS.pattern})$", ""),
    ("SPACED_SLOT", slots.SPACED_SLOT, "g"),
    ("COMMA", slots.COMMA.pattern, ""),
    ("ENDS_A_PART", f"^{slots.ENDS_A_PART.pattern}", ""),
    ("MERGED", slots.MERGED, "g"),
    ("GLUED", slots.GLUED, "g"),
    ("ORDINAL_SLOT", slots.ORDINAL_SLOT, "g"),
    ("TAKES_ENDING", slots.TAKES_ENDING, ""),
    ("ENDING", f"^(?:{slots.ENDING.pattern})$", ""),
    ("ACRONYM", names.ACRONYM, "g"),
    ("CAPITALIZED", names.CAPITALIZED, "g"),
    ("CAPITALIZED_IN_GERMAN", names.CAPITALIZED_IN_GERMAN, "g"),
    ("NAME_WORD", names.WORD, "g"),
    ("DETERMINED", names.DETERMINED, ""),
    ("GENITIVE", names.GENITIVE, ""),
    ("NOUN", names.NOUN, ""),
    ("LOOP_IN_WORD", repetition.LOOP_IN_WORD, "g"),
    ("LOOPS_OF_WORDS", repetition.LOOPS_OF_WORDS, "g"),
    ("LOOPS_OF_CHARACTERS", repetition.LOOPS_OF_CHARACTERS, "g"),
    ("DOUBLED_WORDS", repetition.DOUBLED_WORDS, "g"),
    ("DOUBLED_CHARACTERS", repetition.DOUBLED_CHARACTERS, "g"),
    ("DOUBLED_ONES", repetition.DOUBLED_ONES, "g"),
    ("INSIDE", lost_names.INSIDE, "g"),
    ("SENTENCE_END", sentences.END, "g"),
    ("INITIALS", f"^(?:{sentences.INITIALS.pattern})$", ""),
    ("ORDINAL", f"^(?:{sentences.ORDINAL.pattern})$", ""),
    ("LINE_START", f"^{marks.START.pattern}", ""),
    ("LINE_START_WITH_ORDINALS", f"^{marks.START_WITH_ORDINALS.pattern}", ""),
    ("SENTENCE_OR_HEADING", f"^(?:{marks.SENTENCE_OR_HEADING.pattern})", ""),
    ("EMPHASIZED", marks.EMPHASIZED, "y"),
    ("TABLE_ROW", f"^{marks.TABLE_ROW.pattern}$", ""),
    ("BAR", marks.BAR, "g"),
    ("LONG_WORD", marks.LONG_WORD, "g"),
    ("EMOJI", f"(?![©®™‼⁉]){marks.EMOJI}", "g"),
)
_PARTS = re.compile(r"\[\^\\W\\d_\]|\\.|\(\?P<|\(\?P=(?P<name>\w+)\)|[][.]")
_IN_JAVASCRIPT = {  # with the constants of unicode.js: Python's classes are those of Unicode, JavaScript's of ASCII
    **{".": r"[^\n]", r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\Z": "$", "(?P<": "(?<", r"[^\W\d_]": "[${LETTER}]"},
    **{r"\w": "[${WORD}]", r"\W": "[^${WORD}]", r"\s": "[${SPACE}]", r"\S": "[^${SPACE}]"},
    **{r"\"": '"', r"\'": "'"},
    r"\b": "(?:(?<![${WORD}])(?=[${WORD}])|(?<=[${WORD}])(?![${WORD}]))",
}
_IN_A_CLASS = {r"\"": '"', r"\'": "'", r"\d": r"\p{Nd}", r"\w": "${WORD}", r"\s": "${SPACE}"}


def patterns_script() -> str:
    """Return the script, which needs that of unicode.js before it."""
    return '"use strict";\n' + "".join(
        f"const {name} = new RegExp(String.raw`{in_javascript(pattern)}`, '{_flags(pattern)}{flags}');\n"
        for name, pattern, flags in _SHARED
    )


def in_javascript(pattern: str | re.Pattern[str]) -> str:
    """Return a pattern of Python as JavaScript has it inside of a template literal, for regular expressions with u."""
    is_class = False

    def replaced(part: re.Match[str]) -> str:
        nonlocal is_class
        if part["name"]:
            return rf"\k<{part['name']}>"
        known = _IN_A_CLASS if is_class else _IN_JAVASCRIPT
        is_class = part[0] == "[" or (is_class and part[0] != "]")
        return known.get(part[0], part[0])

    return _PARTS.sub(replaced, pattern if isinstance(pattern, str) else pattern.pattern)


def _flags(pattern: str | re.Pattern[str]) -> str:
    return "iu" if isinstance(pattern, re.Pattern) and pattern.flags & re.IGNORECASE else "u"
