"""500 snippets of text with markup and placeholders, as interfaces, manuals, mails and web pages have them.

    python tests/snippets.py | mtformer translate --model RUN > translated
    python tests/snippets.py translated

The second command counts the translations that have all marks of their snippets and are as well-formed.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from mtformer.translate.markup.scanner import scan

# [ ] is a phrase to be marked, < > another, and | is where a value goes.
SENTENCES = """
[The order] | will be shipped to <your address> tomorrow.
Please [confirm your account] | before <the end of the week>.
Two dogs | play in [the snow] near <a frozen lake>.
[We could not find] the file | in <this folder>.
You can <change the language> at any time in [the settings] |.
Dear |, thank you for [your message] and <your patience>.
[The meeting] starts at | in <the large room> on the left.
<A woman> in a [red coat] | is waiting for the bus.
Do not [turn off the computer] while | <is being installed>.
Your [password] | was changed; <was that you>?
<Three children> are [building a castle] of sand |.
If you have <any questions>, write to | or [call us].
[This page] was last changed on | by <an editor>.
The train to | leaves [in ten minutes] from <the second platform>!
[An old man] sits on a bench | and reads <the newspaper>.
Select <a photo> | from [your library], or take a new one.
Our [new shop] | opens on Monday in <the old town>.
<Press and hold> the button | until [the light] turns green.
The [weather] in | will be <cold and sunny>, with little wind.
You are using | of <your storage>; [delete old files] to make room.
[A cyclist] | rides through <the empty street> at night.
Read [the manual] | carefully before <the first use>.
"I will be there at |," said [the driver], <smiling>.
We sent <a code> to | (it may take [a few minutes]).
[Welcome back], |! <Nothing has changed> since your last visit.
""".strip().splitlines()


@dataclass(frozen=True)
class Style:
    """How the places of a sentence are marked.

    Attributes:
        first: put around the first phrase.
        second: put around the second.
        value: put where a value goes.
        whole: put around the sentence.
    """

    first: tuple[str, str]
    second: tuple[str, str]
    value: str
    whole: tuple[str, str] = ("", "")


STYLES = [
    Style(("<b>", "</b>"), ("<i>", "</i>"), "{{name}}"),
    Style(("<strong>", "</strong>"), ('<a href="https://example.org/?q=a&amp;b=1">', "</a>"), "{0}", ("<p>", "</p>")),
    Style(('<a href="/help" title="a > b">', "</a>"), ("<em>", "</em>"), "<br/>", ("<li>", "</li>")),
    Style(("<b><u>", "</u></b>"), ("<code>", "</code>"), "https://example.org/a_(b)?c=1#d", ("<h2>", "</h2>")),
    Style(("<g id='1'>", "</g>"), ("<g id='2'>", "</g>"), "<x id='3'/>", ("<td>", "</td>")),
    Style(('<span class="a b">', "</span>"), ("<b>", "</b>"), "<img src='a.png' alt='A'>", ("<div>", "</div>")),
    Style(("**", "**"), ("*", "*"), "`--force`", ("# ", "")),
    Style(("[", "](https://example.org/a)"), ("__", "__"), "{user.name}", ("- ", "")),
    Style(("_", "_"), ("[**", "**](b.html)"), "![a cat](cat.png)", ("> ", "")),
    Style(("~~", "~~"), ("***", "***"), "<https://example.org>", ("1. ", "")),
    Style(("", ""), ("", ""), "%s"),
    Style(('"', '"'), ("(", ")"), "%1$d"),
    Style(("'", "'"), ("“", "”"), "%(count)d%"),
    Style(("", ""), ("", ""), "${HOME}", ("", "\\n")),
    Style(("<0>", "</0>"), ("<1>", "</1>"), "{count, plural, one {# day} other {# days}}"),
    Style(("", ""), ("", ""), "jane.doe@example.com"),
    Style(("", ""), ("**", "**"), "👩‍💻", ("🎉 ", " 👍🏽")),
    Style(("", ""), ("<mark>", "</mark>"), "#trains @maria :tada:", ("", " 😀😀")),
    Style(("<b>", ""), ("", "</i>"), "<!-- a note -->", ("", "&nbsp;&copy;")),
    Style(("<b>", "</b>"), ("", ""), "$price", ("Tom &amp; Jerry: ", "")),
]


def write(sentence: str, style: Style) -> str:
    """Mark a sentence."""
    signs = dict(zip("[]<>|", (*style.first, *style.second, style.value), strict=True))
    return style.whole[0] + "".join(signs.get(character, character) for character in sentence) + style.whole[1]


def snippets() -> list[str]:
    """Return all sentences in all styles."""
    return [write(sentence, style) for sentence in SENTENCES for style in STYLES]


def marks_of(text: str) -> Counter[str]:
    """Count what must not be lost. Markdown's emphasis is, where no word is left to put it on."""
    found = (text[mark.start : mark.end].strip() for mark in scan(text))
    return Counter(mark for mark in found if not mark.startswith(("*", "_", "~")))


class _Tags(HTMLParser):
    """Checks that tags are closed in the order in which they were opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.is_nested = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        self.is_nested = self.is_nested and bool(self.open) and self.open.pop() == tag


def is_well_formed(text: str) -> bool:
    """Return whether the tags of ``text`` are paired and nested."""
    tags = _Tags()
    tags.feed(text)
    tags.close()
    return tags.is_nested and not tags.open


def main() -> None:
    """Print the snippets, or check their translations."""
    if len(sys.argv) == 1:
        print("\n".join(snippets()))
        return
    pairs = list(zip(snippets(), Path(sys.argv[1]).read_text(encoding="utf-8").splitlines(), strict=True))
    kept = sum(marks_of(text) == marks_of(translation) for text, translation in pairs)
    well_formed = [is_well_formed(translation) for text, translation in pairs if is_well_formed(text)]
    print(f"{kept} of {len(pairs)} translations have all marks; of {len(well_formed)} well-formed snippets, "
          f"{sum(well_formed)} have well-formed translations")  # fmt: skip


if __name__ == "__main__":
    main()
