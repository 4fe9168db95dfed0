"""Codes in texts, which a translation keeps as they are: addresses, placeholders, names of files, words with digits."""

import re
from collections.abc import Callable

GAP = "[ \u00a0\u202f]?"  # before a unit
LATIN = r"A-Za-z0-9_\u00c0-\u024f"  # what a code ends before: Chinese follows without a space
CURRENCY = "EUR|USD|GBP|CHF|CNY|JPY|CZK|PLN|SEK|NOK|DKK|HUF|RUB|INR|KRW|AUD|CAD|NZD|BRL|ZAR"
# {{user}}, ${first}, {0}, {price:.2f}, %1$s, %HOME%
_FORMAT = r"(?:[:!][\w.,<>^=+#%-]{1,12})?"
PLACEHOLDER = (
    rf"\{{\{{\w+\}}\}}|\$?\{{\w+{_FORMAT}\}}|%[A-Z][A-Z0-9_]+%|%\(\w+\)[sd]|%(?:\d{{1,2}}\$)?[sd@](?![{LATIN}])"
)
_NO_URL = r"\s<>\"'\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"  # also what is Chinese
# To its last character that ends no sentence, or to a bracket with its counterpart: example.org/a_(b).
_IN_URL = rf"(?:\([^{_NO_URL}()]*\)|[.,;:!?)\]]*[^{_NO_URL}.,;:!?)\]])"
_TOP_LEVEL = "com|org|net|edu|gov|eu|uk|de|fr|cz|cn"  # most countries' are also words, and a space may be missing
_EXTENSION = (
    "pdf|txt|docx?|xlsx?|pptx?|od[tsp]|epub|csv|tsv|jsonl?|xml|ya?ml|toml|ini|md|html?|css|jpe?g|png|gif|svg|webp|mp[34]"
    "|wav|zip|tar|gz|exe|dmg|apk|iso|sql|sh|py|js|rs|java|cpp|php|rb|log|cfg|conf|ipynb|tex|rtf|jar|deb|rpm|bat|tiff?"
)
_START, _END = rf"(?<![{LATIN}.-])", rf"(?![{LATIN}-])"
# What a language translates after a code: the pandemic of German COVID-19-Pandemie, but not that of python3-dev
COMPOUND = rf"-(?=[A-Za-z\u00c0-\u024f][a-z\u00df-\u024f]{{3,}}(?:-[A-Za-z\u00c0-\u024f]|(?![{LATIN}-])))"
_TAIL, _TAIL_END = rf"(?:(?!{COMPOUND})[-_.][A-Za-z0-9]+)*", rf"(?![{LATIN}]|(?!{COMPOUND}|-\s)-)"
_LOW, _HIGH = "\u2080-\u2089", "\u00b2\u00b3\u00b9\u2070\u2074-\u207b"  # small digits; the upper ones with + and -
SMALL_DIGITS = f"{_LOW}{_HIGH}"
_PART_END = rf"(?![{LATIN}{SMALL_DIGITS}%/-]|[.,:][0-9])"  # not of a date, a decimal or a unit, as in A4/24.12.2024
_SIGNS = "!#-&*+=@^~"  # of a password
_HEX = "[0-9A-Fa-f]"
# A capitalized word of four letters or more; not Spanish "siglo XX", Italian "Nel XX secolo" or World War II
_NAME_BEFORE = "|".join(rf"(?<=[A-Z\u00c0-\u00de][a-z\u00df-\u024f]{{{n}}} )" for n in range(3, 12))
# In order: of two that match at one place, the first wins.
_CODES = {
    "URL": rf"(?:https?://|www\.|HTTPS?://|WWW\.){_IN_URL}+",
    "e-mail": rf"(?<![{LATIN}.+-])[{LATIN}.+-]+@[{LATIN}-]+(?:\.[{LATIN}-]+)+",
    "handle": rf"(?<![{LATIN}&/.+-])[@#](?=[0-9_]*[A-Za-z])[A-Za-z0-9_]+(?![{LATIN}@]|[.-][A-Za-z])",  # also #hashtag
    "domain": rf"{_START}(?:[A-Za-z0-9-]+\.)+(?:{_TOP_LEVEL}|{_TOP_LEVEL.upper()}){_END}"
    rf"(?::[0-9]{{2,5}}(?![0-9]))?(?:[/?#]{_IN_URL}*)?",
    "placeholder": rf"(?:{PLACEHOLDER})(?:%%|{GAP}(?:[€£¥]|\$(?![\w{{])|°[CF](?![{LATIN}])))?|%%",  # {price} €, %d%%
    "file": rf"(?<![{LATIN}./-])[A-Za-z0-9]+(?:[-_./][A-Za-z0-9]+)*"
    rf"\.(?:{_EXTENSION}|{_EXTENSION.upper()})(?![{LATIN}])",
    "path": rf"(?<![{LATIN}.~*/<\\-])(?:(?:~|\.{{1,2}})/|/[A-Za-z0-9_.*-]+/)(?:[A-Za-z0-9_.*-]+/)*"
    r"(?:[A-Za-z0-9_*-]|\.(?=[A-Za-z0-9*]))+",  # ~/.bashrc, /etc/hosts
    "option": r"(?<!\S)--[a-z0-9]+(?:-[a-z0-9]+)*=[^\s,;]+(?<![.!?])",  # --max-size=5
    "keys": rf"{_START}(?:Ctrl|Alt|Shift|Cmd|Strg|Win)(?:\+(?:[A-Z][a-z]+|[A-Z0-9]))+{_END}",
    "DOI": rf"{_START}(?:10\.[0-9]{{4,9}}/[A-Za-z0-9._;()/:-]*[A-Za-z0-9]"
    rf"|arXiv:[0-9]{{4}}\.[0-9]{{4,5}}(?:v[0-9]+)?){_END}",
    "plate": rf"{_START}[A-ZÄÖÜ]{{1,3}}-[A-Z]{{1,2}} [0-9]{{1,4}}[EH]?{_END}",  # B-MW 1234
    "zone": rf"{_START}(?:UTC|GMT)[+-][0-9]{{1,2}}(?::[0-9]{{2}})?{_END}",
    "day": rf"{_START}[0-9]{{1,2}}-(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)-[0-9]{{2,4}}{_END}",
    "IBAN": rf"{_START}[A-Z]{{2}}[0-9]{{2}}(?: [A-Z0-9]{{4}}){{2}}(?: (?=[A-Z]*[0-9])[A-Z0-9]{{4}}){{1,5}}"
    rf"(?: (?=[A-Z]*[0-9])[A-Z0-9]{{1,3}})?{_END}",
    "password": rf"(?<![^\s\"'„“”‘«(:])(?=[A-Za-z][A-Za-z0-9]{{0,30}}(?:[{_SIGNS}]{{1,9}}[A-Za-z0-9]{{1,30}}){{2}})"
    rf"(?=[^\s0-9]{{0,60}}[0-9])(?!\S{{0,60}}\$[0-9])[A-Za-z0-9{_SIGNS}_.-]+(?<![.!])",  # Xy7$kL9!pQ, not US$5+US$3
    "MAC": rf"{_START}{_HEX}{{2}}(?::{_HEX}{{2}}){{5}}{_END}",
    "IPv6": rf"{_START}(?=[0-9A-Fa-f:]{{1,35}}::|(?:{_HEX}{{1,4}}:){{7}})"
    rf"{_HEX}{{1,4}}(?:::?{_HEX}{{1,4}}){{1,7}}(?:::)?(?:/[0-9]{{1,3}})?{_END}",  # fe80::1ff:fe23/64
    "version": rf"{_START}[vV]?[0-9]+(?:\.[0-9]+)+-(?:alpha|beta|rc|dev)(?:[.-]?[0-9]+)*{_END}",
    "word with digits": rf"{_START}(?:(?!(?:{CURRENCY})[0-9])[A-Za-z]+[0-9][A-Za-z0-9]*(?:,[0-9]{{3}})*"  # mp3
    r"|[A-Z][A-Za-z]*[-_][0-9]+[A-Za-z0-9]*"  # COVID-19
    rf"|(?<![$€£])[0-9]+[A-Z][A-Za-z0-9]*){_TAIL}(?:/(?:[A-Za-z]|[0-9]+){_PART_END})?{_TAIL_END}",  # 3D, A-12/b
    "formula": rf"{_START}(?:(?=[A-Za-z()]{{1,6}}[{_LOW}])[A-Z](?:[A-Za-z{_LOW}]|\([A-Za-z{_LOW}]+\))*[{_HIGH}]*"  # CO₂
    rf"|(?<![0-9])(?<![0-9]\s)[A-Za-z]{{1,2}}[{_HIGH}{_LOW}]+){_TAIL_END}",  # x², but not of 5 m²
    "number with letters": rf"{_START}[0-9]+(?:/[0-9]+)?-[A-Z]{{1,2}}[0-9]*(?:-[A-Z0-9]+)*{_END}",  # 12-AB
    "house": rf"{_START}[0-9]{{1,4}}[a-c]{_END}(?!\.?m)",  # 221b, but not 9a.m. and French 24e
    "section": rf"§§? ?[0-9]+[a-z]?(?:\([0-9]*[a-z]*\))*{_END}",
    "coordinate": rf"{_START}[0-9]{{1,3}}° ?[0-9]{{1,2}}(?:[.,][0-9]+)?['’′]"  # 48°51′30″ N
    rf"(?: ?[0-9]{{1,2}}(?:[.,][0-9]+)?(?:[\"”″]|''|′′))?(?: ?[NSEW](?![{LATIN}]))?",
    "time": rf"{_START}[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}(?::[0-9]{{2}}(?:\.[0-9]+)?)?"  # ISO 8601
    rf"(?:Z|[+-][0-9]{{2}}:?[0-9]{{2}})?{_END}",
    "timestamp": rf"{_START}[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}[.,][0-9]{{3}}{_END}",  # of subtitles
    "UUID": rf"{_START}{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}{_END}",
    "hexadecimal": rf"{_START}(?:0x{_HEX}+|[0-9]+[a-f]+[0-9][0-9a-f]*){_END}",  # also 3f2a9c1 and 1e5
    "power": rf"{_START}(?:[0-9]+\^-?[0-9]+|[0-9](?:\.[0-9]+)?e[+-]?[0-9]+){_END}",  # 10^6, 1.5e-5
    "host": rf"{_START}localhost:[0-9]+{_END}",
    # But not German jede_r and lehrer_innen.
    "identifier": rf"{_START}(?:(?=[A-Za-z0-9-]*_)(?=[A-Za-z_-]*[0-9])[A-Za-z]+(?:[-_]+[A-Za-z0-9]+)+"  # My_Var2
    rf"|__[A-Za-z]\w*__|[a-z]+(?:_(?!innen|[mnrs](?![a-z0-9]))[a-z0-9]+)+|[A-Z]+(?:_[A-Z0-9]+)+){_END}",
    "numeral": rf"(?=[IVX]{{2}})(?:{_NAME_BEFORE})X{{0,3}}(?:IX|IV|V?I{{0,3}})(?![{LATIN}'’-])",  # Louis XIV
}
CODES = "|".join(_CODES.values())
WITH_CASING = re.compile(rf"{CODES}|(?<![{LATIN}])(?:{CURRENCY})(?:(?=[0-9])|(?![{LATIN}]))")


def outside_codes(change: Callable[[str], str], text: str) -> str:
    """Change a text, but not the addresses, placeholders, currencies, names of files and other codes in it."""
    parts, place = [], 0
    for code in WITH_CASING.finditer(text):
        parts += [change(text[place : code.start()]), code[0]]
        place = code.end()
    return "".join([*parts, change(text[place:])])
