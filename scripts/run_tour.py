"""Run the examples of docs/tour.md and docs/tour.zh.md, and report those that fail or print something else.

usage: python scripts/run_tour.py FOLDER [--paste]

FOLDER contains the runs that the pages name, such as runs/phrasebook_en_zh. ``--paste`` writes into the pages what the
examples print.

An example starts with ``>>>`` (Python) or ``$ mtformer`` and ends with a blank line; its output stands below it. All of
a page runs in one session. An example that raises an exception, or a command that fails, is always reported, unless the
page shows the traceback. What does not depend on a trained model must be exactly as shown; what does is compared by its
structure (:func:`structure`), because training ends with other weights on another processor.
"""

import argparse
import ast
import dis
import functools
import itertools
import os
import re
import shlex
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import CodeType
from typing import Any

import torch
from program import run_program

from mtformer.support.errors import UserError

DOCS = Path(__file__).absolute().parent.parent / "docs"
PAGES = sorted(DOCS.glob("tour*.md"))

_PROMPT = re.compile(r"    (>>>|\$) (.*)")
_CONTINUATION = re.compile(r"    \.\.\.(?: (.*))?")
_RUN = re.compile(r"\bruns/\w+")
_MADE_BY_READERS = {"runs/demo", "runs/recurrent", "runs/recurrent2", "runs/tour"}  # which no example uses
_PART = re.compile(r"(?P<number>-?\d+(?:\.\d+)?(?:e-?\d+)?)|(?P<word>[\w.]*[^\W\d][\w.]*)|(?P<mark>[][(){}<>=←→])")
FAILED = "Traceback (most recent call last):"

Run = Callable[[str], "Outcome"]


@dataclass(frozen=True)
class Outcome:
    """What an example did.

    Attributes:
        output: what it printed, the traceback of an exception included.
        failed: whether it raised an exception, or its command had another status than 0.
    """

    output: str
    failed: bool = False


@dataclass(frozen=True)
class Example:
    """A command or Python statement, and the output that the page shows.

    Attributes:
        line: the number of its first line in the page.
        end: the number of the line after its last one.
        source: what a reader types, without prompts.
        is_command: whether that is a command of the shell.
        want: the lines of output.
        uses_model: whether the output depends on a trained model.
    """

    line: int
    end: int
    source: str
    is_command: bool
    want: tuple[str, ...]
    uses_model: bool = False

    @property
    def is_run(self) -> bool:
        """Whether this script runs it: trainings take minutes and are not repeated."""
        return not self.is_command or (self.source.startswith("mtformer ") and " train " not in self.source)

    def is_met_by(self, outcome: Outcome) -> bool:
        """Return whether the outcome is what the page promises."""
        if outcome.failed != (FAILED in self.want):
            return False
        want = "\n".join(self.want)
        if self.uses_model:
            return structure(outcome.output, self._labels) == structure(want, self._labels)
        return outcome.output.split() == want.split()

    @property
    def _labels(self) -> set[str]:
        """The words that it prints whatever the model says: those in its f-strings."""
        if self.is_command:
            return set()
        strings = [node for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.JoinedStr)]
        literals = [part.value for string in strings for part in string.values if isinstance(part, ast.Constant)]
        return {match["word"] for text in literals for match in _PART.finditer(str(text)) if match["word"]}


def parse(text: str) -> list[Example]:
    """Return the examples of a page."""
    examples = []
    lines = text.splitlines()
    number = 0
    while number < len(lines):
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
            examples.append(Example(start + 1, number + 2, "\n".join(source), match[1] == "$", tuple(want)))
        number += 1
    return _marked(examples)


def structure(output: str, labels: set[str]) -> list[str]:
    """Return the form of what a model's example prints: brackets, numbers, labels and texts, whatever these say.

    Adjacent lines of one form count once, as a translation of more tokens has more of them.

    Args:
        output: what the example prints.
        labels: words that are not the model's; so are True, False, None and the names of modules and keys.
    """

    def form(part: re.Match[str]) -> str:
        word = part["word"]
        if word is None:
            return part["mark"] or "#"
        is_fixed = word in labels or word in ("True", "False", "None") or re.fullmatch(r"[\w.]+_[\w.]+", word, re.ASCII)
        return word if is_fixed else "…"

    lines = [[key for key, _ in itertools.groupby(map(form, _PART.finditer(line)))] for line in output.splitlines()]
    return [" ".join(parts) for parts, _ in itertools.groupby(lines)]


def failures(page: str, examples: Sequence[Example], run_command: Run) -> list[str]:
    """Describe the examples of ``page`` whose outcome is not the one that it shows."""
    return [
        f"{page}:{example.line}: {example.source}\nexpected:\n" + "\n".join(example.want) + f"\ngot:\n{outcome.output}"
        for example, outcome in run(examples, run_command)
        if not example.is_met_by(outcome)
    ]


def run(examples: Sequence[Example], run_command: Run) -> Iterator[tuple[Example, Outcome]]:
    """Run examples in one session and yield what each does."""
    names: dict[str, Any] = {}
    with torch.enable_grad():  # the session may disable gradients, but for itself only
        for example in examples:
            if not example.is_run:
                continue
            yield example, run_command(example.source) if example.is_command else _run_python(example.source, names)


def paste(path: Path, run_command: Run) -> None:
    """Replace the output in the page at ``path``."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for example, outcome in reversed(list(run(parse(text), run_command))):
        n_typed = len(example.source.split("\n"))
        lines[example.line - 1 + n_typed : example.end - 1] = [f"    {line}" for line in outcome.output.splitlines()]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@functools.cache
def mtformer(command: str) -> Outcome:
    """Run a command line of mtformer in a process of its own, once for all pages."""
    done = subprocess.run([sys.executable, "-m", *shlex.split(command)], capture_output=True, text=True)
    return Outcome(done.stdout + done.stderr, failed=True) if done.returncode else Outcome(done.stdout)


def _marked(examples: list[Example]) -> list[Example]:
    """Mark the examples that depend on a trained model: that name a run, or a variable that comes from one."""
    dependent: set[str] = set()
    imported: set[str] = set()
    marked = []
    for example in examples:
        uses_model = bool(_RUN.search(example.source))
        if not example.is_command:
            code = compile(example.source + "\n", "<tour>", "single")
            read, bound = _names(code)
            if re.match(r"(?:from|import) ", example.source):
                imported |= bound
            uses_model = uses_model or not dependent.isdisjoint(read)
            dependent = dependent | bound | _changed(example.source) - imported if uses_model else dependent - bound
        marked.append(replace(example, uses_model=uses_model))
    return marked


def _names(code: CodeType) -> tuple[set[str], set[str]]:
    """Return the variables of the session that a statement reads before it binds them, and those that it binds."""
    read, bound = set[str](), set[str]()
    for instruction in dis.get_instructions(code):  # in the order of evaluation
        if instruction.opname == "STORE_NAME":
            bound.add(instruction.argval)
        elif instruction.opname in ("LOAD_NAME", "LOAD_GLOBAL"):
            read |= {instruction.argval} - bound
        elif isinstance(instruction.argval, CodeType):
            read |= _names(instruction.argval)[0] - bound
    return read, bound


def _changed(source: str) -> set[str]:
    """Return the variables whose items and attributes a statement uses: it may change them."""
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Attribute | ast.Subscript)]
    return {node.value.id for node in nodes if isinstance(node.value, ast.Name)}


def _run_python(source: str, names: dict[str, Any]) -> Outcome:
    """Run a statement as Python's prompt does; of an exception, only the first and last lines are shown."""
    out = StringIO()
    failed = False
    with redirect_stdout(out):
        try:
            exec(compile(source + "\n", "<tour>", "single"), names)
        except Exception as error:
            failed = True
            print(FAILED, "    ...", sep="\n")
            print(*traceback.format_exception_only(error), sep="", end="")
    return Outcome(out.getvalue().rstrip("\n"), failed)


def _line(lines: list[str], number: int) -> str:
    return lines[number] if number < len(lines) else ""


def main() -> None:
    """Compare the pages with what their examples print, or paste it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the folder of the runs")
    parser.add_argument("--paste", action="store_true", help="write the output into the pages")
    arguments = parser.parse_args()
    os.chdir(arguments.folder.parent)
    named = set(_RUN.findall("".join(page.read_text(encoding="utf-8") for page in PAGES))) - _MADE_BY_READERS
    if missing := sorted(run for run in named if not Path(run).is_dir()):
        raise UserError(f"{arguments.folder} lacks the runs {', '.join(missing)}")
    failed = []
    for page in PAGES:
        if arguments.paste:
            paste(page, mtformer)
        failed += failures(page.name, parse(page.read_text(encoding="utf-8")), mtformer)
    sys.exit("\n\n".join(failed) or None)


if __name__ == "__main__":
    run_program(main)
