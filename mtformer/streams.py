"""Translate lines as they come, and write the results in order."""

import json
from collections.abc import Iterable
from itertools import islice
from typing import IO

from mtformer.progress import Progress
from mtformer.translator import Translation, Translator


def translate_stream(
    translator: Translator,
    lines: Iterable[str],
    output: IO[str],
    *,
    n_best: int,
    format: str,
    lines_at_once: int = 1_000,
) -> None:
    """Translate ``lines`` as they come and write them to ``output`` in order, one or ``n_best`` results a line."""
    rest = iter(lines)
    number = 1
    with Progress("translating", unit="lines") as progress:
        while texts := list(islice(rest, lines_at_once)):
            found = translator.translate(texts, n_best=n_best, first_line=number, on_progress=progress.advance)
            for text, translations in zip(texts, found, strict=True):
                output.write(_format(number, text, translations, format))
                number += 1
            output.flush()


def _format(number: int, text: str, translations: list[Translation], format: str) -> str:
    if format == "json":
        found = [{"text": t.text, "score": round(t.score, 4), "log_prob": round(t.log_prob, 4)} for t in translations]
        return json.dumps({"line": number, "src": text, "translations": found}, ensure_ascii=False) + "\n"
    if format == "tsv":
        return "".join(f"{number}\t{rank}\t{t.score:.4f}\t{t.text}\n" for rank, t in enumerate(translations, 1))
    return "".join(f"{t.text}\n" for t in translations)
