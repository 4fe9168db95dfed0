"""Run the examples of docs/tour.md and docs/tour.zh.md on trained models, and report output that differs.

usage: python scripts/run_tour.py FOLDER [--tolerance X | --paste]

FOLDER contains the runs that the pages name, such as runs/phrasebook_en_zh. ``--paste`` writes into the pages what the
examples print.

An example starts with ``>>>`` (Python) or ``$ mtformer`` and ends with a blank line; its output stands below it. All of
a page runs in one session. In sections that use a trained model, decimal numbers may differ by the tolerance, because
processors round differently during training. Sections that name a run that FOLDER lacks are not run.
"""

import argparse
import functools
import os
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import torch

DOCS = Path(__file__).absolute().parent.parent / "docs"
PAGES = sorted(DOCS.glob("tour*.md"))

_PROMPT = re.compile(r"    (>>>|\$) (.*)")
_CONTINUATION = re.compile(r"    \.\.\.(?: (.*))?")
_MODEL = re.compile(r"(?<![.\w])(translator|model)\b")  # the names of trained ones
_RUN = re.compile(r"\bruns/\w+")
_DECIMAL = re.compile(r"-?\d+\.\d+")

Run = Callable[[str], str]


@dataclass(frozen=True)
class Example:
    """A command or Python statement, and the output that the page shows.

    Attributes:
        line: the number of its first line in the page.
        end: the number of the line after its last one.
        source: what a reader types, without prompts.
        is_command: whether that is a command of the shell.
        want: the lines of output.
    """

    line: int
    end: int
    source: str
    is_command: bool
    want: tuple[str, ...]

    @property
    def is_run(self) -> bool:
        """Whether this script runs it: trainings take minutes and are not repeated."""
        return not self.is_command or (self.source.startswith("mtformer ") and " train " not in self.source)


@dataclass(frozen=True)
class Section:
    """The examples under one heading.

    Attributes:
        heading: the text of the heading.
        examples: in their order.
    """

    heading: str
    examples: list[Example] = field(default_factory=list)

    @property
    def uses_model(self) -> bool:
        """Whether its output depends on a trained model."""
        return bool(self.runs) or any(_MODEL.search(example.source) for example in self.examples)

    @property
    def runs(self) -> set[str]:
        """The runs whose models it uses."""
        return {run for example in self.examples if example.is_run for run in _RUN.findall(example.source)}


def parse(text: str) -> list[Section]:
    """Return the sections of a page that have examples."""
    sections = [Section("")]
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        if lines[number].startswith("#"):
            sections.append(Section(lines[number].lstrip("# ")))
        if match := _PROMPT.fullmatch(lines[number]):
            start = number
            source = [match[2]]
            while continued := _CONTINUATION.fullmatch(_line(lines, number + 1)):
                source.append(continued[1] or "")
                number += 1
            want = []
            while _line(lines, number + 1).startswith("    ") and not _PROMPT.fullmatch(lines[number + 1]):
                want.append(lines[number + 1].removeprefix("    "))
                number += 1
            example = Example(start + 1, number + 2, "\n".join(source), match[1] == "$", tuple(want))
            sections[-1].examples.append(example)
        number += 1
    return [section for section in sections if section.examples]


def run_sections(sections: list[Section], run_command: Run) -> Iterator[tuple[Section, Example, str]]:
    """Run all examples in one session and yield what each prints; sections that name a missing run are left out."""
    names: dict[str, Any] = {}
    whole = [section for section in sections if all(Path(run).exists() for run in section.runs)]
    runnable = [(section, example) for section in whole for example in section.examples if example.is_run]
    with torch.enable_grad():  # the session may disable gradients, but for itself only
        for section, example in runnable:
            source = example.source
            yield section, example, run_command(source) if example.is_command else _run_python(source, names)


def differs(want: tuple[str, ...], got: str, tolerance: float) -> bool:
    """Return whether the output differs by more than spaces and, in decimal numbers, by more than ``tolerance``."""
    wanted, found = " ".join(" ".join(want).split()), " ".join(got.split())
    if tolerance == 0:
        return wanted != found
    if _DECIMAL.sub("#", wanted) != _DECIMAL.sub("#", found):
        return True
    numbers = zip(_DECIMAL.findall(wanted), _DECIMAL.findall(found), strict=True)
    return any(abs(float(a) - float(b)) > tolerance for a, b in numbers)


def differences(page: str, sections: list[Section], run_command: Run, tolerance: float) -> list[str]:
    """Describe the examples of ``page`` that print something else; only sections with a model get the tolerance."""
    return [
        f"{page}:{example.line}: {example.source}\nexpected:\n" + "\n".join(example.want) + f"\nfound:\n{got}"
        for section, example, got in run_sections(sections, run_command)
        if differs(example.want, got, tolerance if section.uses_model else 0.0)
    ]


def paste(path: Path, run_command: Run) -> None:
    """Replace the output in the page at ``path``."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for _, example, got in reversed(list(run_sections(parse(text), run_command))):
        n_typed = len(example.source.split("\n"))
        lines[example.line - 1 + n_typed : example.end - 1] = [f"    {line}" for line in got.splitlines()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@functools.cache
def mtformer(command: str) -> str:
    """Run a command line of mtformer in a process of its own, once for all pages, and return its standard output."""
    words = [sys.executable, "-m", *shlex.split(command)]
    return subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout


def _run_python(source: str, names: dict[str, Any]) -> str:
    """Run a statement as Python's prompt does; of an exception, only the first and last lines are shown."""
    out = StringIO()
    with redirect_stdout(out):
        try:
            exec(compile(source + "\n", "<tour>", "single"), names)
        except Exception as error:
            print("Traceback (most recent call last):", "    ...", sep="\n")
            print(*traceback.format_exception_only(error), sep="", end="")
    return out.getvalue().rstrip("\n")


def _line(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def main() -> None:
    """Compare the pages with what their examples print, or paste it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of the runs")
    parser.add_argument("--tolerance", type=float, default=0.0, metavar="X", help="of decimal numbers; 0: none")
    parser.add_argument("--paste", action="store_true", help="write the output into the pages")
    arguments = parser.parse_args()
    os.chdir(arguments.folder.parent)
    found = []
    for page in PAGES:
        if arguments.paste:
            paste(page, mtformer)
        sections = parse(page.read_text(encoding="utf-8"))
        found += differences(page.name, sections, mtformer, arguments.tolerance)
    sys.exit("\n\n".join(found))


if __name__ == "__main__":
    main()
