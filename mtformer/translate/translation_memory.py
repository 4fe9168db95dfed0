"""Translation memories: translations by people, reused where a text, or a sentence of it, is one that they have."""

import logging
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from mtformer.config import Source, TmxFile, TsvFile, parse_source
from mtformer.config.sources import MULTIPLE, SOURCE_KINDS
from mtformer.data.clean.seen import hashes
from mtformer.data.sources.parallel import ParallelText, source_name
from mtformer.support.errors import UserError
from mtformer.support.progress import watched
from mtformer.text.languages import UNDETERMINED
from mtformer.text.pairs import Drops
from mtformer.text.tokenizer.vocabulary import normalize

log = logging.getLogger(__name__)


class TranslationMemory:
    """Texts with their translations, by people. It takes the bytes of its text and 20 more for each pair."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Take pairs of a text and its translation; those with a blank side are left out."""
        self._text, self._ends = bytearray(), array("Q", [0])  # the pairs in UTF-8, and where each of them ends
        keys = hashes(self._stored(pairs))
        order = np.argsort(keys, kind="stable")
        self._keys, self._numbers = keys[order], order.astype(np.uint32)  # of the pairs, by the hashes of their texts

    @classmethod
    def read(cls, memory: str | Path, src_lang: str, tgt_lang: str) -> "TranslationMemory":
        """Read a memory; see :func:`memory_source`. One without pairs, or with many that are left out, gets a warning.

        Raises:
            UserError: a language is open, or the file cannot be used; the message names it and the line.
        """
        if {src_lang, tgt_lang} & {MULTIPLE, UNDETERMINED}:
            raise UserError("a translation memory needs both languages: name them with --from and --to")
        source, drops = memory_source(memory, src_lang, tgt_lang), Drops()
        examples = ParallelText([source], src_lang, tgt_lang).examples(drops)
        read = cls((src, tgt) for src, tgt, _ in watched(examples, "reading the translation memory", "pairs"))
        if warning := drops.warning(source_name(source), len(read)):
            log.warning("%s", warning)
        elif not len(read):
            log.warning("%s has no pairs: nothing is reused", source_name(source))
        return read

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self._keys)

    def find(self, text: str) -> str | None:
        """Return the translation of a text; None if there is none.

        Texts are the same if they differ only in spaces and in how Unicode composes their characters. Of several
        translations the most frequent one counts, and of equally frequent ones the last.
        """
        text = normalize(text)
        key = hashes([text])
        start, end = (int(np.searchsorted(self._keys, key, side)[0]) for side in ("left", "right"))
        pairs = map(self.pair, self._numbers[start:end].tolist())
        translations = [tgt for src, tgt in pairs if src == text]
        counts = Counter(translations)
        return max(reversed(translations), key=counts.__getitem__, default=None)

    def _stored(self, pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
        """Store pairs, and yield the text of each."""
        for pair in pairs:
            src, tgt = map(normalize, pair)
            if src and tgt:
                self._text += f"{src}\t{tgt}".encode()
                self._ends.append(len(self._text))
                yield src

    def pair(self, number: int) -> tuple[str, str]:
        """Return a text and its translation, as they are stored: normalized."""
        src, _, tgt = self._text[self._ends[number] : self._ends[number + 1]].decode().partition("\t")
        return src, tgt


def memory_source(memory: str | Path, src_lang: str, tgt_lang: str) -> Source:
    """Return where a memory is read from: a file, or a source such as ``tsv:memory.tsv,src_column:2,tgt_column:3``.

    A file is TMX if its name ends so; others have a text, a tab and its translation on each line.

    Raises:
        UserError: such a source is not written as it has to be.
    """
    kind, colon, _ = str(memory).partition(":")
    if colon and kind in (*SOURCE_KINDS, "src", "tgt"):
        return parse_source(str(memory), src_lang, tgt_lang)
    path = Path(memory)
    return TmxFile(tmx=path) if ".tmx" in path.suffixes else TsvFile(tsv=path)
