"""Elements of HTML and XML that a request wants left alone: they are taken out of a text, and put back."""

import re
from collections.abc import Sequence

_STAND_IN = re.compile(r"<code>(\d+)</code>")  # an element that translations have unchanged
_UNTRANSLATED = r"""[^<>]*\s(?:translate=["']?no\b|class=["'][^"'<>]*\bnotranslate\b)"""


class Protected:
    """A text without the elements that are left alone.

    Attributes:
        text: with an element ``code`` in the place of each.
    """

    def __init__(self, text: str, tags: Sequence[str] = ()) -> None:
        """Take out elements with ``translate="no"``, those of the class ``notranslate``, and those of some tags.

        Args:
            text: HTML or XML. If it has an element that looks like ours, nothing is taken out.
            tags: the names of elements.
        """
        self._elements: list[str] = []
        if _STAND_IN.search(text):
            self.text = text
            return
        names = "|".join(map(re.escape, tags))
        opening = rf"<(?P<tag>{names})(?=[\s/>])[^<>]*" if tags else r"<(?P<tag>(?!))"
        pattern = rf"(?:{opening}|<(?P<other>[A-Za-z][\w:.-]*){_UNTRANSLATED}[^<>]*)(?<!/)>"
        self.text = re.sub(rf"{pattern}.*?</(?:(?P=tag)|(?P=other))\s*>", self._take, text, flags=re.DOTALL)

    def _take(self, match: "re.Match[str]") -> str:
        self._elements.append(match[0])
        return f"<code>{len(self._elements) - 1}</code>"

    def restore(self, translation: str) -> str:
        """Put the elements into a translation of :attr:`text`."""
        if not self._elements:
            return translation
        return _STAND_IN.sub(lambda match: self._element(int(match[1]), match[0]), translation)

    def _element(self, number: int, stand_in: str) -> str:
        return self._elements[number] if number < len(self._elements) else stand_in
