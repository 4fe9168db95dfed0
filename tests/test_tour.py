"""The examples of docs/tour.md and docs/tour.zh.md print what the pages show; see scripts/run_tour.py."""

import os
import re
import runpy
import shlex
from pathlib import Path

import pytest
from conftest import Project
from filelock import FileLock

ROOT = Path(__file__).parent.parent
TOUR = runpy.run_path(str(ROOT / "scripts/run_tour.py"))
PAGES = {path.name: path.read_text(encoding="utf-8") for path in TOUR["PAGES"]}
TOLERANCE = 0.3  # of decimal numbers that a trained model prints: processors round differently, so models differ

SECTIONS = """
# Without a model

    >>> x = 0.25
    >>> x
    0.25

# With one

    >>> translator = x + 0.5
    >>> print("a:", translator)
    a: 0.85
    $ mtformer translate --model runs/x "a"
    b

    mtformer train config.yaml

# With one that is missing

    $ mtformer translate --model runs/y "a"
    z
"""


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a folder of runs the current one."""
    (tmp_path / "runs/x").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)


def differences(text: str) -> list[str]:
    return TOUR["differences"]("page", TOUR["parse"](text), lambda _: "b\n", TOLERANCE)


def test_numbers_of_a_trained_model_may_differ_a_little() -> None:
    assert differences(SECTIONS) == []
    assert len(differences(SECTIONS.replace("0.85", "1.15"))) == 1


@pytest.mark.parametrize(
    ("old", "new"), [("    0.25", "    0.26"), ("a: 0.85", "b: 0.85"), ("    b\n", "    c\n"), ("    b\n", "")]
)
def test_any_other_difference_is_reported_with_its_line(old: str, new: str) -> None:
    assert SECTIONS.count(old) == 1
    [found] = differences(SECTIONS.replace(old, new))
    line = SECTIONS[: SECTIONS.index(old)].count("\n")
    assert found.startswith(f"page:{line}: ")


def test_pasting_writes_what_the_examples_print(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SECTIONS.replace("    0.25\n", "").replace("0.85", "0.95").replace("    b\n", "    c\n    d\n"))
    TOUR["paste"](page, lambda _: "b\n")
    assert page.read_text() == SECTIONS.replace("0.85", "0.75")


@pytest.fixture(scope="session")
def phrasebook(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A folder with ``runs/phrasebook_en_zh``, trained once for all processes of pytest-xdist."""
    in_parallel = "PYTEST_XDIST_WORKER" in os.environ
    shared = tmp_path_factory.getbasetemp().parent if in_parallel else tmp_path_factory.getbasetemp()
    project = Project(shared / "tour", ROOT / "configs/phrasebook_en_zh.yaml")
    with FileLock(shared / "tour.lock"):
        if not (project.folder / "runs/phrasebook_en_zh/model.safetensors").exists():
            project.folder.mkdir()
            result = project.mtformer("train", project.config, "--quiet")
            assert result.status == 0, result.stderr
    return project


@pytest.mark.parametrize("page", PAGES)
def test_examples_without_a_trained_model_print_exactly_what_the_page_shows(page: str) -> None:
    sections = [section for section in TOUR["parse"](PAGES[page]) if not section.uses_model]
    assert len(sections) > 5
    assert TOUR["differences"](page, sections, lambda _: "", 0.0) == []


def test_most_examples_with_a_trained_model_print_what_the_pages_show(
    phrasebook: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not all: on another processor, training ends with other weights, and some translations may change."""
    monkeypatch.chdir(phrasebook.folder)

    def run_command(command: str) -> str:
        result = phrasebook.mtformer(*shlex.split(command)[1:])
        assert result.status == 0, result.stderr
        return result.stdout

    for page, text in PAGES.items():  # in one test: a second process would only wait for the training
        sections = TOUR["parse"](text)
        found = TOUR["differences"](page, sections, run_command, TOLERANCE)
        n_examples = sum(len(section.examples) for section in sections if section.uses_model)
        assert n_examples > 40
        assert len(found) <= n_examples // 4, "\n\n".join(found)


def test_both_pages_show_the_same_trainings() -> None:
    blocks = {
        tuple(re.findall(r"\$ python scripts/tour_experiments.py.*\n(?: {4}.*\n)+", text)) for text in PAGES.values()
    }
    assert len(blocks) == 1
    rows = re.findall(r"^ {4}(\S.*?) {2,}\d", "".join(*blocks), re.MULTILINE)
    variants = runpy.run_path(str(ROOT / "scripts/tour_experiments.py"))["VARIANTS"]
    assert rows
    assert [name for name in rows if name not in variants] == []
