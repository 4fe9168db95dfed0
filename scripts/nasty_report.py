"""Translate the nasty lines of tests/nasty.jsonl, and print what became of them, by category.

Columns: the lines; those whose translation failed (crashed), is empty though the source has letters or digits, is more
than three times as long as the source, or repeats itself as the source does not (loops); how many of the numbers and of
the URLs and e-mail addresses of the sources are in the translations; lines with notes; seconds.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mtformer.bundle.format import load_bundle
from mtformer.evaluate.analysis import repeats
from mtformer.runs.folder import find_model
from mtformer.support.errors import UserError
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

SUITE = Path(__file__).parent.parent / "tests" / "nasty.jsonl"
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_ADDRESS = re.compile(r"(?:https?://|www\.|ftp://)[^\s<>\"()]+|[\w.]+@[\w.]+\w")
_COLUMNS = ("crashed", "empty", "long", "loops", "numbers", "URLs", "notes")


def read_suite() -> Iterator[tuple[str, str]]:
    """Yield the category and the text of each line."""
    for row in map(json.loads, SUITE.read_text(encoding="utf-8").splitlines()):
        yield row["category"], row["text"] * row.get("times", 1)


@dataclass
class Row:
    """What became of the lines of a category: for each column the lines, and of how many."""

    n_lines: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    totals: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    def add(self, text: str, best: Translation | None, src_lang: str, tgt_lang: str) -> None:
        """Count a line; ``best`` is None if translating it failed."""
        self.n_lines += 1
        if best is None:
            self.counts["crashed"] += 1
            return
        self.counts["empty"] += not best.text and any(map(str.isalnum, text))
        self.counts["long"] += len(best.text) > 3 * len(text) + 20
        self.counts["loops"] += repeats(best.text, tgt_lang) and not repeats(text, src_lang)
        self.counts["notes"] += bool(best.notes)
        for column, pattern in (("numbers", _NUMBER), ("URLs", _ADDRESS)):
            wanted = Counter(pattern.findall(text))
            self.counts[column] += (wanted & Counter(pattern.findall(best.text))).total()
            self.totals[column] += wanted.total()

    def __add__(self, other: "Row") -> "Row":
        both = self.counts + other.counts, self.totals + other.totals
        return Row(self.n_lines + other.n_lines, *both, self.seconds + other.seconds)

    def __str__(self) -> str:
        cells = [
            f"{self.counts[column]}/{self.totals[column]}" if column in ("numbers", "URLs") else self.counts[column]
            for column in _COLUMNS
        ]
        return f"{self.n_lines:5}" + "".join(f"{cell:>11}" for cell in cells) + f"{self.seconds:9.1f}"


def main() -> None:
    """Translate the suite category by category."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("--beam-size", type=int, help="hypotheses kept at each step; the bundle's own without it")
    parser.add_argument("--raw", action="store_true", help="only the model, without preparations and guard")
    parser.add_argument("--output", type=Path, help="where to write sources, translations and notes as JSON lines")
    arguments = parser.parse_args()
    try:
        bundle = load_bundle(find_model(arguments.model))
        translator = Translator.load(bundle, "cpu", raw=arguments.raw, beam_size=arguments.beam_size)
    except UserError as error:
        parser.error(str(error))
    suite: dict[str, list[str]] = {}
    for category, text in read_suite():
        suite.setdefault(category, []).append(text)
    print(f"{'':22}lines" + "".join(f"{column:>11}" for column in _COLUMNS) + "  seconds")
    rows, saved = [], []
    for category, texts in suite.items():
        row, start = Row(), time.perf_counter()
        found = [_best(translator, text) for text in texts]
        row.seconds = time.perf_counter() - start
        for text, best in zip(texts, found, strict=True):
            row.add(text, best, bundle.header.src_lang, bundle.header.tgt_lang)
            shown = {"text": best.text, "notes": best.notes} if best else {}
            saved.append(json.dumps({"category": category, "src": text, **shown}, ensure_ascii=False) + "\n")
        rows.append(row)
        print(f"{category:22}{row}", flush=True)
    print(f"{'all':22}{sum(rows, Row())}")
    if arguments.output:
        arguments.output.write_text("".join(saved), encoding="utf-8")


def _best(translator: Translator, text: str) -> Translation | None:
    """Translate a line; None if that fails."""
    try:
        return translator.translate([text])[0][0]
    except Exception:  # the report counts them
        return None


if __name__ == "__main__":
    main()
