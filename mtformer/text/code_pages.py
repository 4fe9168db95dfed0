"""The encodings that texts had before Unicode."""

import re
from contextlib import suppress

from mtformer.text.languages import base_language

OF_MANY_CHARACTERS = {"euc_jp", "cp932", "cp949", "cp950", "gb18030"}  # most of which are rare in any text
_TRADITIONAL = re.compile("Hant|(?<=[-_])(?:TW|HK|MO)$")
_KANA = re.compile("[\u3041-\u30fe]")
_CODE_PAGES = {  # of Windows, after an encoding that hardly any text in it can be
    language: encodings.split()
    for encodings, languages in (
        ("cp1252", "af ca da de en es eu fi fo fr ga gl id is it lb ms nb nl nn no pt sv sw"),
        ("cp1250", "bs cs hr hu pl ro sk sl sq"),
        ("cp1251", "be bg mk ru sr uk"),
        ("cp1253", "el"),
        ("cp1254", "az tr"),
        ("cp1255", "he"),
        ("cp1256", "ar fa ur"),
        ("cp1257", "et lt lv"),
        ("cp1258", "vi"),
        ("cp874", "th"),
        ("euc_jp cp932", "ja"),
        ("cp949", "ko"),
        ("gb18030", "zh"),
    )
    for language in languages.split()
}


def knows_code_page(language: str) -> bool:
    """Tell whether the encodings of a language are known, rather than assumed."""
    return base_language(language) in _CODE_PAGES


def code_pages_of(language: str) -> list[str]:
    """Return the encodings that a language had before Unicode, Windows-1252 where they are not known."""
    code_pages = _CODE_PAGES.get(base_language(language), ["cp1252"])
    if _TRADITIONAL.search(language):
        return ["cp950"]
    return ["cp1250"] if "Latn" in language and code_pages == ["cp1251"] else code_pages  # Serbian


def read_in_code_page(raw: bytes, language: str) -> tuple[str, str] | None:
    """Read bytes in the encoding that a language had before Unicode; return the text and the encoding, None if none."""
    for code_page in code_pages_of(language):
        with suppress(UnicodeDecodeError):
            text = raw.decode(code_page)
            if code_page != "euc_jp" or _KANA.search(text):  # else, they may be half-width letters
                return text, code_page
    return None
