"""Deterministic translators of the units of documents, which treat marks as a model does."""

import io
import sys
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

from mtformer.text.words import word_spans
from mtformer.translate.documents.formats import format_of, translate_document
from mtformer.translate.documents.seam import DocumentSettings
from mtformer.translate.markup.line import take_out
from mtformer.translate.translation import Translation

Translate = Callable[[Sequence[str]], list[str]]


def identity(texts: Sequence[str]) -> list[str]:
    return list(texts)


def capitals(texts: Sequence[str]) -> list[str]:
    """Write words in capitals, and leave marks as they are."""
    return [_through_markup(text, lambda words: [word.upper() for word in words], backwards=False) for text in texts]


def backwards(texts: Sequence[str]) -> list[str]:
    """Write words in the opposite order, with their marks."""
    return [_through_markup(text, lambda words: words[::-1], backwards=True) for text in texts]


def _through_markup(text: str, translate: Callable[[list[str]], list[str]], *, backwards: bool) -> str:
    def translated(plain: str) -> str:
        return " ".join(translate(plain.split()))

    marked = take_out(text, "en")
    if marked is None:
        return translated(text)
    sizes = [len(word_spans(plain)) for plain in marked.texts]
    links = [[(i, size - 1 - i if backwards else i, 1.0) for i in range(size)] for size in sizes]
    return marked.put_back([Translation(translated(plain), 0.0, 0.0) for plain in marked.texts], links).text


def translated(content: bytes | str, name: str, translate: Translate = capitals, **settings: object) -> bytes:
    """Translate a document from English to German."""
    content = content.encode() if isinstance(content, str) else content
    given = DocumentSettings(**{"tgt_lang": "de", "src_lang": "en", "name": name} | settings)  # type: ignore[arg-type]
    return translate_document(content, format_of(name), translate, given)


def units(content: bytes | str, name: str, **settings: object) -> list[str]:
    """Return the units of a document."""
    seen: list[str] = []

    def note(texts: Sequence[str]) -> list[str]:
        seen.extend(texts)
        return list(texts)

    translated(content, name, note, **settings)
    return seen


def n_steps(function: Callable[[], object]) -> int:
    """Return how many lines of Python a function runs, a measure of its work that no other program disturbs."""
    count, tracer = 0, sys.gettrace()

    def note(*event: object) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return note

    sys.settrace(note)
    try:
        function()
    finally:
        sys.settrace(tracer)
    return count


def parts(content: bytes) -> dict[str, bytes]:
    """Return the parts of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def with_part(content: bytes, name: str, part: bytes) -> bytes:
    """Return an archive with one part replaced or added."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, old in {**parts(content), name: part}.items():
            archive.writestr(each, old)
    return written.getvalue()
