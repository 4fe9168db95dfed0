"""HTML from Python: text is escaped unless it is markup already; and the frame that all pages of runs share."""

import html
import logging
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from mtformer.support import __version__
from mtformer.support.page import MAX_PAGE_BYTES, assemble

log = logging.getLogger(__name__)

T = TypeVar("T")

_VOID = ("br", "input")
_ASSETS = [
    ("mtformer.report", "report.css"),
    ("mtformer.support", "dom.js"),
    *(("mtformer.report", name) for name in ("charts.js", "samples.js")),
]


class Html(str):
    """Text that is markup."""

    __slots__ = ()


def markup(content: object) -> Html:
    """Return ``content`` as markup: the parts of a sequence one after the other, text escaped, nothing for None."""
    if isinstance(content, Html):
        return content
    if isinstance(content, Iterable) and not isinstance(content, str):
        return Html("\n".join(map(markup, content)))
    return Html("" if content is None else html.escape(str(content)))


def element(name: str, *contents: object, **attributes: object) -> Html:
    """Return an element; in the names of attributes, ``class_`` is ``class`` and ``data_x`` is ``data-x``."""
    pairs = ((key.rstrip("_").replace("_", "-"), value) for key, value in attributes.items() if value is not None)
    opening = name + "".join(f' {key}="{html.escape(str(value))}"' for key, value in pairs)
    return Html(f"<{opening}>" if name in _VOID else f"<{opening}>{''.join(map(markup, contents))}</{name}>")


def table(head: Sequence[object], rows: Iterable[Sequence[object]], *, numbers: Sequence[int] = ()) -> Html:
    """Return a table that scrolls by itself where the page is narrow.

    Args:
        head: the titles of the columns; none for a table without.
        rows: their cells, of which the first is the row's title.
        numbers: the columns of numbers, which are aligned at the right.
    """

    def line(name: str, row: Sequence[object]) -> Html:
        cells = (element(name, cell, class_="number" if i in numbers else None) for i, cell in enumerate(row))
        return element("tr", *cells)

    top = element("thead", line("th", head)) if head else ""
    body = element("tbody", (line("td", row) for row in rows))
    return element("div", element("table", top, body), class_="scroll", tabindex=0)


def facts(rows: Iterable[tuple[object, object]]) -> Html:
    """Return a table of names and values; rows without a value are left out."""
    shown = ((element("span", name, class_="muted"), value) for name, value in rows if value not in (None, ""))
    return table((), list(shown))


def muted(*contents: object) -> Html:
    """Return a paragraph of less important text."""
    return element("p", *contents, class_="muted")


def marked(segments: Sequence[tuple[str, bool]], kind: str) -> Html:
    """Return text in which the segments that differ are marked."""
    return Html("".join(element("mark", text, class_=kind) if differs else markup(text) for text, differs in segments))


def sentence_card(
    src: str,
    reference: Sequence[tuple[str, bool]],
    hypothesis: Sequence[tuple[str, bool]],
    *,
    title: object,
    name: str = "source",
    id_: str | None = None,
) -> Html:
    """Return a sentence with its reference and translation, whose differences scripts find by their classes."""
    rows = (
        (name, src, None),
        ("reference", marked(reference, "missing"), "reference"),
        ("translation", marked(hypothesis, "extra"), "hypothesis"),
    )
    shown = ([element("dt", each), element("dd", text, class_=class_)] for each, text, class_ in rows)
    return element("div", element("p", title, class_="score"), element("dl", shown), class_="sentence", id=id_)


@dataclass(frozen=True)
class Detail:
    """The most that a page shows.

    Attributes:
        points: of a curve; a screen has no pixels for more.
        rows: of the table of validations.
        sampled: validations with samples.
        samples: at each of them.
    """

    points: int = 1_000
    rows: int = 1_000
    sampled: int = 200
    samples: int = 100

    def halved(self) -> "Detail":
        """Return half of it."""
        return Detail(*(max(1, n // 2) for n in (self.points, self.rows, self.sampled, self.samples)))


def thinned(items: Sequence[T], most: int) -> list[T]:
    """Return all of ``items``, or every n-th of them and the last: ``most``, or one more."""
    every = -(-len(items) // most) or 1
    return [*items[:-1:every], *items[-1:]]


def fitted(render: Callable[[Detail], str]) -> str:
    """Return the page with as much detail as ``MAX_PAGE_BYTES`` allows."""
    detail = Detail()
    while (n_bytes := len((page := render(detail)).encode())) > MAX_PAGE_BYTES and detail != detail.halved():
        detail = detail.halved()
    if n_bytes > MAX_PAGE_BYTES:
        log.warning("the page has %.1f MB, most of it text that cannot be left out", n_bytes / 1e6)
    return page


def document(
    title: str, top: object, sections: Sequence[tuple[str, str, object]], command: Sequence[str], data: Any
) -> str:
    """Return a whole page.

    Args:
        title: its heading.
        top: what follows the heading.
        sections: the anchor, the title and the contents of each.
        command: the words of the command that writes the page again.
        data: for the scripts.
    """
    links = [element("a", name, href=f"#{anchor}") for anchor, name, _ in sections]
    written = f"Written on {datetime.now(UTC):%Y-%m-%d %H:%M UTC} by mtformer {__version__}: "
    body = [
        element("header", element("h1", title), top),
        element("nav", links, class_="contents", aria_label="Contents"),
        *(element("section", element("h2", name), content, id=anchor) for anchor, name, content in sections),
        element("footer", muted(written, element("code", shlex.join(command)))),
    ]
    return assemble(title, markup(body), data=data, assets=_ASSETS)
