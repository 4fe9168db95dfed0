"""What a format offers: the units of a file, and the file with their translations."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mtformer.support.errors import UserError
from mtformer.support.packages import require_package
from mtformer.text.languages import base_language, is_language
from mtformer.translate.documents.archive import Archive
from mtformer.translate.documents.source import Source


@dataclass(frozen=True)
class Settings:
    """How a document is read and written.

    Attributes:
        tgt_lang: the target language, which some formats name.
        src_lang: the source language, which a file of several languages needs.
        bilingual: whether the translation follows the source, instead of replacing it.
        columns: the columns of a table to translate, by their names or numbers; all of them if it is empty.
        name: what messages call the document.
    """

    tgt_lang: str
    src_lang: str = "und"
    bilingual: bool = False
    columns: Sequence[str] = ()
    name: str = "the document"

    def new_target_language(self, named: str) -> str | None:
        """Return the language that a file has to name as that of its translations; None if it names it already.

        Args:
            named: the one that it names; empty if there is none. Templates name that of the source.

        Raises:
            UserError: it is another language, so that the file would have translations into two.
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


@dataclass(frozen=True)
class TextDocument:
    """A document that is one text.

    Attributes:
        source: the text.
        encoding: how it is encoded.
        settings: how it is read and written.
        errors: how characters are written that the encoding lacks, as in :func:`codecs.encode`.
        declaration: where the text names its encoding, in a group of its own; it becomes UTF-8 where characters lack.
    """

    source: Source
    encoding: str
    settings: Settings
    errors: str = "xmlcharrefreplace"
    declaration: re.Pattern[str] | None = None

    @property
    def units(self) -> Sequence[str]:
        """The texts to translate, in order: one line each, with tags for what stands inside of them."""
        return self.source.units

    def with_translations(self, translations: Sequence[str]) -> bytes:
        """Return the document with one translation for each unit.

        Raises:
            UserError: the encoding of the text lacks a character.
        """
        text = self.source.with_translations(translations, bilingual=self.settings.bilingual)
        try:
            return text.encode(self.encoding, self.errors)
        except UnicodeEncodeError as error:
            if self.declaration is not None and (declared := self.declaration.search(text)):
                return f"{text[: declared.start(1)]}UTF-8{text[declared.end(1) :]}".encode()
            character = text[error.start]
            raise UserError(
                f"{self.settings.name}: the translation has {character!a}, which {self.encoding.upper()}, the encoding "
                "of the file, lacks: save the file in UTF-8"
            ) from None


@dataclass(frozen=True)
class ArchiveDocument:
    """A document that is an archive of texts and other parts; its properties and methods are those of a text."""

    archive: Archive
    parts: Sequence[tuple[str, TextDocument]]

    @property
    def units(self) -> Sequence[str]:
        """See :attr:`TextDocument.units`."""
        return [unit for _, part in self.parts for unit in part.units]

    def with_translations(self, translations: Sequence[str]) -> bytes:
        """See :meth:`TextDocument.with_translations`; the archive may be damaged where nothing was read before."""
        changed, position = {}, 0
        for name, part in self.parts:
            n_units = len(part.units)
            changed[name] = part.with_translations(translations[position : position + n_units])
            position += n_units
        return self.archive.with_parts(changed)


Document = TextDocument | ArchiveDocument


@dataclass(frozen=True)
class Format:
    """A kind of document.

    Attributes:
        name: what users call it.
        suffixes: how the names of its files end, the usual one first.
        media_type: what it is called on the web.
        read: reads a document.
        written_as: the suffix of what is written, if that is another format.
        has_both: whether the source may stand beside its translation.
        package: the package that reads it, one of the extra ``documents``; empty if none is needed.
    """

    name: str
    suffixes: tuple[str, ...]
    media_type: str
    read: Callable[[bytes, Settings], Document]
    written_as: str = ""
    has_both: bool = True
    package: str = ""

    def require_package(self) -> None:
        """Check that the package that reads it is installed.

        Raises:
            UserError: it is not.
        """
        if self.package:
            require_package(self.package, self.name, "documents")
