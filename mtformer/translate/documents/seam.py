"""The interface of a format: the units of a file, and the file with their translations."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from mtformer.support.errors import UserError
from mtformer.support.packages import require_package
from mtformer.text.languages import base_language, is_language
from mtformer.translate.documents.archive import Archive
from mtformer.translate.documents.blocks import Block, rendered
from mtformer.translate.documents.inline import Span

MAX_UNITS = 1_000_000  # of an archive, which take some kilobyte of memory each; a book of 500 pages has about 5,000
_MACROLANGUAGES = {"nb": "no", "nn": "no"}


@dataclass(frozen=True)
class DocumentSettings:
    """The settings for reading and writing a document.

    Attributes:
        tgt_lang: the target language, which some formats name.
        src_lang: the source language, which a file of several languages needs.
        bilingual: whether the translation follows the source, instead of replacing it.
        columns: the columns of a table to translate, by name or number, or the keys of JSON and YAML with the values
            to translate; all if empty.
        name: the name of the document in messages.
    """

    tgt_lang: str
    src_lang: str = "und"
    bilingual: bool = False
    columns: Sequence[str] = ()
    name: str = "the document"

    def new_target_language(self, named: str) -> str | None:
        """Return the target language to declare in a file; None if the file declares it already.

        Args:
            named: the declared language; empty if there is none. Templates declare the source language.

        Raises:
            UserError: another language is declared, so the file would contain translations into two languages.
        """
        language = base_language(named.strip().lower())
        if language == base_language(self.tgt_lang):
            return None
        if is_language(named) and language != base_language(self.src_lang):
            raise UserError(
                f"{self.name} names {named.strip()} as the language of its translations, not {self.tgt_lang}: take a "
                "file without translations, or correct the language in it"
            )
        return self.tgt_lang

    def is_foreign(self, named: str) -> bool:
        """Tell whether a language that a file names is another one than the source language, if that is known."""
        codes = [base_language(code.strip().lower()) for code in (named, self.src_lang)]
        return is_language(self.src_lang) and len({_MACROLANGUAGES.get(code, code) for code in codes}) == 2

    def require_source_language(self, named: str) -> None:
        """Check the language that a file declares for its texts, if the model's source language is known.

        Raises:
            UserError: it is another one.
        """
        if is_language(named) and self.is_foreign(named):
            raise UserError(
                f"{self.name} names {named.strip()} as the language of its texts, not {self.src_lang}: take a model "
                "of that language, or correct the language in it"
            )


class TextDocument:
    """A document that is one text.

    Attributes:
        units: the texts to translate, in order: one line each, with tags for inline marks.
    """

    def __init__(
        self,
        text: str,
        encoding: str,
        settings: DocumentSettings,
        blocks: Iterable[Block],
        edits: Iterable[tuple[Span, str]] = (),
        *,
        errors: str = "xmlcharrefreplace",
        declaration: re.Pattern[str] | None = None,
    ) -> None:
        """Take a text.

        Args:
            text: the text.
            encoding: its encoding.
            settings: how it is read and written.
            blocks: what of it is translated; a block may stand inside of a mark of another.
            edits: other changes, by span.
            errors: how to encode characters that the encoding lacks, as in :func:`codecs.encode`.
            declaration: a pattern whose group matches the declared encoding, which becomes UTF-8 if that lacks one.
        """
        self._text, self._encoding, self._settings = text, encoding, settings
        self._blocks = sorted(blocks, key=lambda block: block.span[0])
        self._edits, self._errors, self._declaration = list(edits), errors, declaration
        self.units: Sequence[str] = [unit.text for block in self._blocks for unit in block.units]

    def with_translations(self, translations: Sequence[str]) -> bytes:
        """Return the document with one translation for each unit.

        Raises:
            UserError: the encoding of the text lacks a character.
        """
        bilingual = self._settings.bilingual
        text = rendered(self._text, self._blocks, self._edits, translations, bilingual=bilingual)
        try:
            return text.encode(self._encoding, self._errors)
        except UnicodeEncodeError as error:
            if self._declaration is not None and (declared := self._declaration.search(text)):
                return f"{text[: declared.start(1)]}UTF-8{text[declared.end(1) :]}".encode()
            character = text[error.start]
            raise UserError(
                f"{self._settings.name}: the translation has {character!a}, which {self._encoding.upper()}, the "
                "encoding of the file, lacks: save the file in UTF-8"
            ) from None


class ArchiveDocument:
    """A document that is an archive of texts and other parts.

    Attributes:
        units: see :class:`TextDocument`.
    """

    def __init__(self, archive: Archive, parts: Iterable[tuple[str, TextDocument]]) -> None:
        """Take an archive and its texts by name, which are read one by one.

        Raises:
            UserError: they have too many units.
        """
        self._archive, self._parts = archive, list[tuple[str, TextDocument]]()
        self.units: list[str] = []
        for name, part in parts:
            self.units += part.units
            if len(self.units) > MAX_UNITS:
                raise UserError(f"{archive.name} has more than {MAX_UNITS:,} units, and is refused")
            self._parts.append((name, part))

    def with_translations(self, translations: Sequence[str]) -> bytes:
        """See :meth:`TextDocument.with_translations`; parts not read before may be damaged."""
        left = iter(translations)
        changed = {name: part.with_translations(list(islice(left, len(part.units)))) for name, part in self._parts}
        return self._archive.with_parts(changed)


Document = TextDocument | ArchiveDocument


@dataclass(frozen=True)
class Format:
    """A kind of document.

    Attributes:
        name: its name for users.
        suffixes: the suffixes of its files, the usual one first.
        media_type: its media type.
        read: reads a document.
        written_as: the suffix of the written file, if that has another format.
        has_both: whether the source can be kept beside its translation.
        has_columns: whether it has columns or keys, of which some can be translated.
        package: the package of the extra ``documents`` that reads it; empty if none is needed.
        unit: what messages call its units.
    """

    name: str
    suffixes: tuple[str, ...]
    media_type: str
    read: Callable[[bytes, DocumentSettings], Document]
    written_as: str = ""
    has_both: bool = True
    has_columns: bool = False
    package: str = ""
    unit: str = "unit"

    def require_package(self) -> None:
        """Check that the required package is installed.

        Raises:
            UserError: it is not installed.
        """
        if self.package:
            require_package(self.package, self.name, "documents")
