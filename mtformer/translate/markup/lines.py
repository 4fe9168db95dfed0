"""Lines of which some have marks, translated together."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from mtformer.translate.markup.atoms import Links
from mtformer.translate.markup.marked import take_out
from mtformer.translate.translation import Translation, ranked

if TYPE_CHECKING:
    from mtformer.translate.alignment import Alignment

Align = Callable[[Sequence[str], Sequence[str]], "Sequence[Alignment]"]


class MarkedLines:
    """Lines without their marks.

    Attributes:
        texts_of: what is translated of each line: several texts or none of a line with marks, else the line itself.
    """

    def __init__(self, lines: Sequence[str], src_lang: str, is_known: Callable[[str], bool]) -> None:
        """Take the marks out of lines in the language ``src_lang``, by a model that knows the letters ``is_known``."""
        self._marked = [take_out(line, src_lang, is_known) for line in lines]
        self.texts_of = [
            [line] if marked is None else marked.texts for line, marked in zip(lines, self._marked, strict=True)
        ]

    def put_back(self, translations: Sequence[list[Translation]], align: Align) -> list[list[Translation]]:
        """Return the translations of each line, best first, with the marks of the line.

        Args:
            translations: those of each text of all lines, best first.
            align: aligns sources with translations; see :meth:`mtformer.translate.translator.Translator.align`.
        """
        rest = iter(translations)
        found = [list(islice(rest, len(texts))) for texts in self.texts_of]
        places = [place for place, marked in enumerate(self._marked) if marked is not None]
        pairs = {
            (text, translation.text)
            for place in places
            for text, best in zip(self.texts_of[place], found[place], strict=True)
            for translation in best
        }
        links = _links(sorted(pairs), align) if pairs else {}
        results = []
        for texts, marked, of_texts in zip(self.texts_of, self._marked, found, strict=True):
            if marked is None:
                results.append(of_texts[0])
                continue
            results.append(
                [
                    marked.put_back(chosen, [links[text, each.text] for text, each in zip(texts, chosen, strict=True)])
                    for chosen in ranked(of_texts) or [[]]
                ]
            )
        return results


def _links(pairs: Sequence[tuple[str, str]], align: Align) -> dict[tuple[str, str], Links]:
    """Align texts with their translations, as they would be written in small letters if they are in capitals."""
    as_read = [tuple(side.lower() if src.isupper() else side for side in (src, tgt)) for src, tgt in pairs]
    found = align([src for src, _ in as_read], [tgt for _, tgt in as_read])
    return {pair: alignment.word_weights() for pair, alignment in zip(pairs, found, strict=True)}
