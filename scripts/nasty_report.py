"""Translate the nasty lines of tests/nasty.jsonl, and print what became of them, by category.

Columns: the lines; those whose translation failed (crashed), is empty though the source has letters or digits, is more
than three times as long as the source, or repeats itself as the source does not (loops); how many of the numbers and of
the URLs and e-mail addresses of the sources are in the translations; lines with notes; seconds.

With --repetitions, lines are made up instead on which models repeat words: of numbers and names that they do not know,
of few words many times, of many sentences without full stops. Counted are the translations with a word or phrase twice
in a row, and more often than in the source; unflagged are those of them without a note.

With --references, the guard checks translations by people instead: what it finds is false, or wrong in the corpus.
"""

import argparse
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from faithful_report import CARRIERS, lines, unknown_word
from program import run_program

from mtformer.runs.finding import find_model
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.lines import read_lines
from mtformer.text.numbers import find_numbers
from mtformer.text.repetition import repeats
from mtformer.translate.translation import FLAG, Translation
from mtformer.translate.translator import Translator

SUITE = Path(__file__).parent.parent / "tests" / "nasty.jsonl"
_ADDRESS = re.compile(r"(?:https?://|www\.|ftp://)[^\s<>\"()]+|[\w.]+@[\w.]+\w")
_COLUMNS = ("crashed", "empty", "long", "loops", "numbers", "URLs", "notes")


def read_suite() -> Iterator[tuple[str, str]]:
    """Yield the category and the text of each line."""
    for row in map(json.loads, SUITE.read_text(encoding="utf-8").splitlines()):
        yield row["category"], row["text"] * row.get("times", 1)


def _values(text: str) -> list[str]:
    return [number.value for number in find_numbers(text)]


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
        for column, find in (("numbers", _values), ("URLs", _ADDRESS.findall)):
            wanted = Counter(find(text))
            self.counts[column] += (wanted & Counter(find(best.text))).total()
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


def repetitive_lines(language: str, n: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of lines on which models repeat words."""
    rng = Random(seed)
    joiner = " " if is_written_with_spaces(language) else ""
    sentences = [line.text for line in lines(language, seed)]
    patterns = [pattern for (_, of), three in CARRIERS.items() if of == language for pattern in three]
    words = sorted({word for text in patterns for word in re.findall(r"[^\W\d_]+", text)})
    for number in range(n):
        few = rng.sample(words, 3)
        yield [
            ("numbers", rng.choice(sentences)),
            ("names", joiner.join(unknown_word(rng) for _ in range(rng.randrange(1, 8)))),
            ("few words", joiner.join(rng.choice(few) for _ in range(rng.randrange(5, 40)))),
            ("a phrase", joiner.join([joiner.join(few[: rng.randrange(1, 4)])] * rng.randrange(2, 14))),
            ("run-on", joiner.join(text.rstrip(".。?？") for text in rng.sample(sentences, rng.randrange(2, 9)))),
            ("a list", ", ".join(f"{few[0]} {rng.randrange(13, 9999)}" for _ in range(rng.randrange(3, 20)))),
        ][number % 6]


def most_in_a_row(text: str, language: str) -> int:
    """Return how often a phrase of a text, of up to eight words, occurs in a row at most; of Chinese, at least two."""
    words = re.findall(r"\w+", text.casefold())
    spaced = is_written_with_spaces(language)
    units = words if spaced else [*"".join(words)]
    most = 1
    for size in range(1 if spaced else 2, 9):
        run = 0
        for before, after in zip(units, units[size:], strict=False):
            run = run + 1 if before == after and not after.isdigit() else 0
            most = max(most, 1 + run // size)
    return most


def report_repetitions(translator: Translator, n: int, seed: int, output: Path | None) -> None:
    """Translate lines on which models repeat words, and print how many repeat some without a note."""
    counts: dict[str, Counter[str]] = {}
    saved = []
    made = list(repetitive_lines(translator.src_lang, n, seed))
    for (kind, text), [best, *_] in zip(made, translator.translate([text for _, text in made]), strict=True):
        of_kind = counts.setdefault(kind, Counter())
        of_kind["lines"] += 1
        if most_in_a_row(best.text, translator.tgt_lang) <= most_in_a_row(text, translator.src_lang):
            continue
        is_flagged = any(note.startswith(FLAG) for note in best.notes)
        of_kind.update({"repeating": 1, "unflagged": not is_flagged})
        saved.append(
            json.dumps({"kind": kind, "src": text, "text": best.text, "notes": best.notes}, ensure_ascii=False)
        )
    print(f"{'':12}{'lines':>10}{'repeating':>12}{'unflagged':>12}")
    for kind, of_kind in [*counts.items(), ("all", sum(counts.values(), Counter()))]:
        print(f"{kind:12}{of_kind['lines']:10}{of_kind['repeating']:12}{of_kind['unflagged']:12}")
    if output:
        output.write_text("".join(f"{row}\n" for row in saved), encoding="utf-8")


def report_references(translator: Translator, src: Path, ref: Path) -> None:
    """Print how many translations of a corpus have each problem that the guard knows."""
    assert translator.guard is not None
    pairs = list(zip(read_lines(src), read_lines(ref), strict=True))
    found: Counter[str] = Counter()
    for pair in pairs:
        found.update({problem.partition(":")[0] for problem in translator.guard.problems(*pair)})
        found["names lost"] += bool(translator.guard.lost_names(*pair))
    print(f"{len(pairs):,} pairs")
    for problem, n in found.most_common():
        print(f"{problem:45}{n:6}")


def main() -> None:
    """Translate the suite category by category."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("--beam-size", type=int, help="hypotheses kept at each step; the bundle's own without it")
    parser.add_argument("--engine", default="torch", help="torch (default) or ctranslate2")
    parser.add_argument("--raw", action="store_true", help="only the model, without preparations and guard")
    parser.add_argument("--repetitions", type=int, metavar="N", help="translate N made-up lines instead of the suite")
    parser.add_argument(
        "--references", type=Path, nargs=2, metavar=("SRC", "REF"), help="check a corpus instead, .gz or plain"
    )
    parser.add_argument("--seed", type=int, default=1, help="of the made-up lines (default: 1)")
    parser.add_argument("--output", type=Path, help="where to write sources, translations and notes as JSON lines")
    arguments = parser.parse_args()
    path = find_model(arguments.model)
    translator = Translator.load(path, "cpu", engine=arguments.engine, raw=arguments.raw, beam_size=arguments.beam_size)
    if arguments.references:
        report_references(translator, *arguments.references)
        return
    if arguments.repetitions:
        report_repetitions(translator, arguments.repetitions, arguments.seed, arguments.output)
        return
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
            row.add(text, best, translator.src_lang, translator.tgt_lang)
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
    run_program(main)
