"""What the code of a language tells about its text."""

import re

_WITHOUT_SPACES = ("zh", "yue", "ja", "th")
_MANY_CHARACTERS = ("zh", "yue", "ja", "ko")


def base_language(code: str) -> str:
    """Return the language itself, without script and region: ``zh`` of ``zh-Hant`` and ``zh_TW``."""
    return re.split("[-_]", code)[0]


def is_written_with_spaces(code: str) -> bool:
    """Tell whether spaces stand between sentences and words."""
    return base_language(code) not in _WITHOUT_SPACES


def has_many_characters(code: str) -> bool:
    """Tell whether rare characters are so many that a vocabulary had better leave them out."""
    return base_language(code) in _MANY_CHARACTERS
