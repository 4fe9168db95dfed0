"""Glossaries in requests, and those that requests name: small enough to be read and used in no time."""

import asyncio
import csv
from collections.abc import Sequence

from mtformer.serve.errors import ServiceError
from mtformer.serve.http import ParsedRequest
from mtformer.serve.store import StoredGlossary
from mtformer.support.errors import UserError
from mtformer.text.glossary import Glossary

_SEPARATORS = {"tsv": "\t", "csv": ","}
_MOST_TERMS = 10_000  # of a glossary
_LONGEST_TERM = 200  # in characters; so is its translation


async def stored_glossary(asked: ParsedRequest, id: str) -> StoredGlossary:
    """Return a glossary of the caller of a request.

    Raises:
        ServiceError: there is none of this id, or the database does not answer.
    """
    stored = await asked.service.database.run(asked.service.store.glossary, asked.caller.name, id)
    if stored is None:
        raise ServiceError(404, f"there is no glossary {id}")
    return stored


async def read_glossary(terms: Sequence[tuple[str, str]]) -> Glossary:
    """Return a glossary of terms and their translations.

    Raises:
        ServiceError: they are too many, or one is too long.
        UserError: one is empty, or has two translations.
    """
    if len(terms) > _MOST_TERMS:
        raise ServiceError(413, f"a glossary may have {_MOST_TERMS:,} terms, not {len(terms):,}")
    if any(len(side) > _LONGEST_TERM for term in terms for side in term):
        raise ServiceError(413, f"a term and its translation may have {_LONGEST_TERM} characters")

    def read() -> Glossary:
        glossary = Glossary(terms)
        glossary.digest  # noqa: B018  # which is computed once
        return glossary

    return await asyncio.to_thread(read)


async def parsed_entries(entries: str, format: str) -> list[tuple[str, str]]:
    """Read terms and their translations, one on each line.

    Raises:
        ServiceError: the format is unknown.
        UserError: a line has fewer than two columns, or there is none.
    """
    if format not in _SEPARATORS:
        raise ServiceError(400, f"entries_format: {format} is not supported; it is {' or '.join(_SEPARATORS)}")
    return await asyncio.to_thread(_parsed, entries, _SEPARATORS[format])


def _parsed(entries: str, separator: str) -> list[tuple[str, str]]:
    lines = entries.splitlines(keepends=separator == ",")  # in CSV, quotes may have several lines between them
    try:
        rows = [line.split(separator) for line in lines] if separator == "\t" else list(csv.reader(lines))
    except csv.Error as error:
        raise UserError(f"entries: this is not CSV: {error}") from None
    rows = [row for row in rows if any(map(str.strip, row))]
    if not rows:
        raise UserError("entries: there are none")
    for number, row in enumerate(rows, 1):
        if len(row) < 2:
            raise UserError(f"entries: entry {number} has no translation")
    return [(row[0], row[1]) for row in rows]
