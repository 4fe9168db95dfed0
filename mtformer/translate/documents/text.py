"""Text files, and the text of PDF files, which is all that is translated of them."""

import io
import logging
from typing import Any

from mtformer.support.errors import UserError
from mtformer.translate.documents.markup_tokens import decoded
from mtformer.translate.documents.plain import plain_block
from mtformer.translate.documents.seam import Settings, TextDocument


def read(content: bytes, settings: Settings) -> TextDocument:
    """Read a text, of which wrapped lines are joined.

    Raises:
        UserError: it is not UTF-8 or UTF-16.
    """
    text, encoding = decoded(content, settings.name)
    return _document(text, encoding, settings)


def _document(text: str, encoding: str, settings: Settings) -> TextDocument:
    line_end = "\r\n" if text.count("\r\n") == text.count("\n") else "\n"  # where both are used, each stays
    block = plain_block((0, len(text)), text.replace(line_end, "\n"), lambda new: new.replace("\n", line_end))
    return TextDocument(text, encoding, settings, block, errors="strict")


def read_pdf(content: bytes, settings: Settings) -> TextDocument:
    """Read the text of a PDF file: its pages, one after the other.

    Raises:
        UserError: the file is damaged, encrypted, or has no text.
    """
    import pypdf

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # which reports every fault that it reads past
    try:
        reader: Any = pypdf.PdfReader(io.BytesIO(content))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UserError(f"{settings.name} has a password: save it without one")
        pages = [page.extract_text() for page in reader.pages]
    except UserError:
        raise
    except Exception as error:  # of many kinds: a PDF file may be damaged in any place
        raise UserError(f"{settings.name} is damaged, or no PDF file: {' '.join(str(error).split())}") from None
    if not any(any(map(str.isalpha, page)) for page in pages):
        raise UserError(f"{settings.name} has no text: it may have pictures of pages, which need OCR first")
    text = "\n\n".join("\n".join(line.strip() for line in page.split("\n")) for page in pages)
    return _document(text.encode("utf-8", "replace").decode() + "\n", "utf-8", settings)
