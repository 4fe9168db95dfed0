"""Make a notebook of docs/tour.md, or of the Chinese docs/tour.zh.md.

usage: python scripts/tour_notebook.py [PAGE] [--output tour.ipynb]

The notebook has the page's text, its examples as cells to run, and below them the output that the page shows. Run it in
the folder that contains ``runs/``, with the runs that the page names. It is made when one wants it and not kept in the
repository, where it would be a second copy of the page. Needs nbformat, which the extra ``dev`` installs.
"""

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from run_tour import DOCS, FAILED, Example, parse

_LINK = re.compile(r"""(?P<before>\]\(|src=")(?P<target>[^)":\s]+)""")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def notebook_of(page: Path, folder: Path) -> NotebookNode:
    """Return the notebook of ``page``, whose links work in ``folder``."""
    text = page.read_text(encoding="utf-8")
    cells = []
    for number, part in enumerate(_parts(text)):
        if isinstance(part, str):
            cells.append(new_markdown_cell(_with_links(part, text, page.parent, folder), id=f"text-{number}"))
        else:
            cells.append(_code_cell(part))
    return new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"},
            "language_info": {"name": "python"},
        },
    )


def _parts(text: str) -> Iterator[str | list[Example]]:
    """Yield the page's text and its examples in order; those that print nothing together with the one after them."""
    lines = text.splitlines()
    start, waiting = 0, list[Example]()
    for example in filter(lambda example: example.is_run, parse(text)):
        between = "\n".join(lines[start : example.line - 1]).strip("\n")
        if waiting and (between or example.is_command or waiting[-1].is_command):
            yield waiting
            waiting = []
        if between:
            yield between
        waiting.append(example)
        start = example.end - 1
        if example.want:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
    yield "\n".join(lines[start:]).strip("\n")


def _code_cell(examples: Sequence[Example]) -> NotebookNode:
    """Return a cell that runs ``examples``, with the number of the page's line where the last one starts."""
    last = examples[-1]
    source = "\n".join(f"!{example.source}" if example.is_command else example.source for example in examples)
    output = [new_output("stream", name="stdout", text="\n".join(last.want) + "\n")] if last.want else []
    metadata = {"line": last.line, "tags": ["raises-exception"] if FAILED in last.want else []}
    return new_code_cell(source, id=f"line-{last.line}", outputs=output, metadata=metadata)


def _with_links(part: str, text: str, docs: Path, folder: Path) -> str:
    """Let relative links start at ``folder``, and those to a heading name it as notebooks do."""
    headings = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-"): title for title in _HEADING.findall(text)}

    def renamed(link: re.Match[str]) -> str:
        path, _, heading = link["target"].partition("#")
        if not path:
            return f"{link['before']}#{headings[heading].replace(' ', '-')}"
        moved = Path(os.path.relpath(docs / path, folder)).as_posix()
        return f"{link['before']}{moved}{'#' * bool(heading)}{heading}"

    return _LINK.sub(renamed, part)


def main() -> None:
    """Write the notebook."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", type=Path, nargs="?", default=DOCS / "tour.md", help="default: docs/tour.md")
    parser.add_argument("--output", type=Path, default=Path("tour.ipynb"), help="default: tour.ipynb")
    arguments = parser.parse_args()
    notebook = notebook_of(arguments.page.absolute(), arguments.output.absolute().parent)
    nbformat.write(notebook, arguments.output)


if __name__ == "__main__":
    main()
