"""The examples of docs/tour.md and docs/tour.zh.md do what the pages show; see scripts/run_tour.py."""

import os
import re
import runpy
import shlex
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import Project
from filelock import FileLock
from nbclient import NotebookClient

ROOT = Path(__file__).parent.parent
TOUR = runpy.run_path(str(ROOT / "scripts/run_tour.py"))
PAGES = {path.name: path.read_text(encoding="utf-8") for path in TOUR["PAGES"]}
Outcome = TOUR["Outcome"]

PAGE = """
# Without a model

    >>> x = 0.25
    >>> x
    0.25
    >>> len(5)
    Traceback (most recent call last):
        ...
    TypeError: object of type 'int' has no len()

# With one

    >>> model = "runs/x: a cat".split()
    >>> print(f"text: {model[1:]} {x:.2f}", True, "x.y_z")
    text: ['a', 'cat'] 0.85 True x.y_z
    >>> for token in model:
    ...     print(token, "←", len(token))
    ein ← 2
    >>> x
    0.25
    $ mtformer translate --model runs/x "a"
    b

    mtformer train config.yaml
"""


def translate(command: str) -> Any:
    return Outcome("c\n")


def failures(text: str, run_command: Any = translate) -> list[str]:
    return TOUR["failures"]("page", TOUR["parse"](text), run_command)


def test_what_a_model_says_may_differ() -> None:
    assert [example.uses_model for example in TOUR["parse"](PAGE)] == [False] * 3 + [True] * 3 + [False, True]
    assert failures(PAGE) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    >>> x\n    0.25", "    >>> x\n    0.26"),
        ("x = 0.25", "x = y"),
        ("len(5)", "5"),
        ("object of", "objects of"),
        ('"runs/x: a cat"', '"runs/x"[9]'),
        ("text: [", "word: ["),
        ("['a', 'cat']", "a cat"),
        ("0.85 True", "True"),
        ("0.85 True", "0.85 False"),
        ("x.y_z\n    >>>", "x.y_a\n    >>>"),
        ("ein ← 2", "ein: 2"),
        ("    ein ← 2\n", ""),
        ("    b\n", ""),
        ("    b\n", "    b\n    [c]\n"),
    ],
)
def test_any_other_difference_is_reported_with_its_line(old: str, new: str) -> None:
    changed = PAGE.replace(old, new, 1)
    assert changed != PAGE
    reported = failures(changed)
    assert reported
    assert all(re.match(r"page:\d+: ", failure) for failure in reported)


def test_an_example_that_raises_or_exits_is_a_failure_whatever_its_page_shows() -> None:
    raising = PAGE.replace('print(f"text', 'prnt(f"text')
    [failure] = failures(raising)
    assert failure.startswith("page:15: prnt(")
    assert "NameError" in failure
    [failure] = failures(PAGE, lambda _: Outcome("b\n", failed=True))
    assert failure.startswith("page:22: mtformer translate")


def test_the_script_fails_if_an_example_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "tour.md"
    monkeypatch.setitem(TOUR["main"].__globals__, "PAGES", [page])
    monkeypatch.setattr("sys.argv", ["run_tour.py", str(tmp_path / "runs")])
    monkeypatch.chdir(tmp_path)  # which main leaves
    for shown, problem in (("3", "None"), ("4", "tour.md:1")):
        page.write_text(f"    >>> 1 + 2\n    {shown}\n", encoding="utf-8")
        with pytest.raises(SystemExit) as end:
            TOUR["main"]()
        assert problem in str(end.value.code)


def test_pasting_writes_what_the_examples_print(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace("    0.25\n", "").replace("0.85", "0.95").replace("    b\n", "    c\n    d\n"))
    TOUR["paste"](page, translate)
    assert failures(page.read_text()) == []
    assert "text: ['a', 'cat'] 0.25 True x.y_z\n" in page.read_text()
    assert "runs/x: ← 7\n    a ← 1\n    cat ← 3\n" in page.read_text()


@pytest.fixture(scope="session")
def phrasebook(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A folder with the runs of the tour: one that has learned to translate, and two that were merely started."""
    in_parallel = "PYTEST_XDIST_WORKER" in os.environ
    shared = tmp_path_factory.getbasetemp().parent if in_parallel else tmp_path_factory.getbasetemp()
    project = Project(shared / "tour", ROOT / "configs/phrasebook_en_zh.yaml")
    with FileLock(shared / "tour.lock"):
        if not project.folder.exists():
            project.folder.mkdir()
            started = ["tokenizer.vocab_size=1000", "training.max_steps=5", "training.precision=fp32"]
            few = ["max_epochs=2", "max_tokens=512", "ema_decay=0.95", "learning_rate=0.006"]  # learn in few updates
            train(project, "phrasebook_en_zh", 5_000, *(f"training.{setting}" for setting in few))
            train(project, "phrasebook_en_de", 1_000, *started)
            train(project, "phrasebook_en_de", 1_000, *started, "data.src_lang=de", "data.tgt_lang=en")
    return project


def train(project: Project, config: str, size: int, *settings: str) -> None:
    corpora = ("train", f"size: {size}"), ("valid", "split: valid, size: 20")
    texts = [f"data.{use}=[{{builtin: phrasebook, {corpus}}}]" for use, corpus in corpora]
    options = [word for setting in (*texts, *settings) for word in ("--set", setting)]
    result = project.mtformer("train", ROOT / f"configs/{config}.yaml", "--quiet", *options)
    assert result.status == 0, result.stderr


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_examples_do_what_the_page_shows(page: str, phrasebook: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_command(command: str) -> Any:
        result = phrasebook.mtformer(*shlex.split(command)[1:])
        return Outcome(result.stdout, False) if result.status == 0 else Outcome(result.stderr, True)

    monkeypatch.chdir(phrasebook.folder)
    examples = TOUR["parse"](PAGES[page])
    failed = TOUR["failures"](page, examples, run_command)
    assert not failed, "\n\n".join(failed)
    assert sum(example.uses_model for example in examples) > 40
    assert sum(bool(example.want) and not example.uses_model for example in examples) > 25


@pytest.fixture
def notebook_of(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The function of the script, which imports its neighbour."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return runpy.run_path(str(ROOT / "scripts/tour_notebook.py"))["notebook_of"]


@pytest.mark.parametrize("page", PAGES)
def test_the_notebook_has_all_of_the_page(page: str, notebook_of: Any, tmp_path: Path) -> None:
    notebook = notebook_of(ROOT / "docs" / page, tmp_path)
    nbformat.validate(notebook)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    assert all(line in text for line in PAGES[page].splitlines() if line[:1] not in tuple(" |<") and "](" not in line)
    examples = [example for example in TOUR["parse"](PAGES[page]) if example.is_run]
    assert code == "\n".join("!" * example.is_command + example.source for example in examples)
    shown = [cell.outputs[0].text.rstrip() for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    assert shown == ["\n".join(example.want) for example in examples if example.want]
    links = re.findall(r"\]\(([^):]+)\)", text) + re.findall('src="([^"]+)"', text)
    assert len(links) > 20
    headings = {title.replace(" ", "-") for title in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
    targets = [link.partition("#") for link in links]
    assert all((tmp_path / path).exists() if path else heading in headings for path, _, heading in targets)


@pytest.mark.slow
def test_the_notebook_runs_and_shows_what_the_page_does(notebook_of: Any, phrasebook: Project) -> None:
    """As far as the first trace, which shows itself as a page; the page's own test runs all examples.

    Commands are left out: each is a process.
    """
    notebook = notebook_of(ROOT / "docs/tour.md", phrasebook.folder)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and not cell.source.startswith("!")]
    notebook.cells = cells[: 1 + next(place for place, cell in enumerate(cells) if cell.source == "trace")]
    NotebookClient(notebook, resources={"metadata": {"path": str(phrasebook.folder)}}).execute()
    examples = {example.line: example for example in TOUR["parse"](PAGES["tour.md"])}
    for cell in notebook.cells:
        example, outcome = examples[cell.metadata.line], outcome_of(cell)
        assert example.is_met_by(outcome), f"{cell.source}\n{outcome.output}"
    assert any("<iframe" in output.data.get("text/html", "") for cell in notebook.cells for output in results_of(cell))


def outcome_of(cell: Any) -> Any:
    """What a cell prints and returns, in the form of the page."""
    texts = [output.text for output in cell.outputs if output.output_type == "stream"]
    texts += [output.data["text/plain"] for output in results_of(cell)]
    errors = [output for output in cell.outputs if output.output_type == "error"]
    texts += [f"{TOUR['FAILED']}\n...\n{error.ename}: {error.evalue}" for error in errors]
    return Outcome("".join(texts), failed=bool(errors))


def results_of(cell: Any) -> list[Any]:
    return [output for output in cell.outputs if output.output_type == "execute_result"]


def test_both_pages_show_the_same_trainings() -> None:
    blocks = {
        tuple(re.findall(r"\$ python scripts/tour_experiments.py.*\n(?: {4}.*\n)+", text)) for text in PAGES.values()
    }
    assert len(blocks) == 1
    rows = re.findall(r"^ {4}(\S.*?) {2,}\d", "".join(*blocks), re.MULTILINE)
    variants = runpy.run_path(str(ROOT / "scripts/tour_experiments.py"))["VARIANTS"]
    assert rows
    assert [name for name in rows if name not in variants] == []
