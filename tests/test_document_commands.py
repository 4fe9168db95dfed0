"""``mtformer translate`` with documents, and a trained model."""

from pathlib import Path

import docx
import pytest
from conftest import Project, Result

SOURCE, TRANSLATION = "the red house sees a small dog.", "das rote Haus sieht ein kleiner Hund."
PAGE = f'<html lang="en"><p>{SOURCE}</p><pre>{SOURCE}</pre>\n'


@pytest.fixture
def report(tmp_path: Path) -> Path:
    document = docx.Document()
    paragraph = document.add_paragraph("the ")
    paragraph.add_run("red house").bold = True
    paragraph.add_run(" sees a sm")
    paragraph.add_run("all dog")
    paragraph.add_run(".").bold = True
    document.save(str(tmp_path / "report.docx"))
    return tmp_path / "report.docx"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "pages"
    (folder / "more").mkdir(parents=True)
    (folder / "a.html").write_text(PAGE)
    (folder / "more" / "b.HTM").write_text(PAGE)
    (folder / "notes").write_text("no document")
    return folder


def translate(project: Project, *arguments: str | Path) -> Result:
    return project.mtformer("translate", "--model", "runs/config", "--engine", "torch", *arguments)


def test_a_document_is_written_beside_its_source_and_its_path_is_printed(trained: Project, report: Path) -> None:
    result = translate(trained, report)
    written = report.with_name("report.de.docx")
    assert (result.status, result.stdout) == (0, f"{written}\n"), result.stderr
    [paragraph] = docx.Document(str(written)).paragraphs
    assert paragraph.text == TRANSLATION
    [bold] = [run.text for run in paragraph.runs if run.bold]
    assert bold in TRANSLATION
    assert sorted(path.name for path in report.parent.iterdir()) == ["report.de.docx", "report.docx"]


def test_all_documents_of_a_folder_are_translated(trained: Project, folder: Path, tmp_path: Path) -> None:
    result = translate(trained, "--input", folder, "--output", tmp_path / "out")
    written = [tmp_path / "out/a.html", tmp_path / "out/more/b.HTM"]
    assert (result.status, result.stdout) == (0, "".join(f"{path}\n" for path in written)), result.stderr
    expected = PAGE.replace(SOURCE, TRANSLATION, 1).replace('"en"', '"de"')
    assert [path.read_text() for path in written] == [expected, expected]
    assert "1 of 3 files are no documents, and are skipped" in result.stderr


def test_several_documents_are_translated_and_a_job_that_is_resumed_skips_those_that_are_done(
    trained: Project, folder: Path
) -> None:
    files = [folder / "a.html", folder / "more" / "b.HTM"]
    (folder / "a.de.html").write_text("done before")
    result = translate(trained, *files, "--resume")
    assert (result.status, result.stdout) == (0, f"{folder / 'more' / 'b.de.HTM'}\n"), result.stderr
    assert (folder / "a.de.html").read_text() == "done before"


def test_an_interrupted_document_resumes(trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.translate.jobs.reading.FIRST_SIZE", 1)
    page = folder / "a.html"
    page.write_text(PAGE * 2)
    with monkeypatch.context() as patch:
        patch.setattr("mtformer.translate.jobs.translating.formatted", failing_after(1))
        assert translate(trained, page).status == 1
    assert (folder / "a.de.html.units.part").read_text() == f"{TRANSLATION}\n"
    assert "a.de.html.units.part is an unfinished output" in translate(trained, page).stderr
    assert translate(trained, page, "--resume").status == 0
    assert (folder / "a.de.html").read_text().count(TRANSLATION) == 2
    assert sorted(path.name for path in folder.glob("a.*")) == ["a.de.html", "a.html"]


def failing_after(n_units: int) -> object:
    from mtformer.support.errors import MtformerError
    from mtformer.translate.jobs.translating import formatted

    calls: list[int] = []

    def fail(*arguments: object) -> str:
        calls.append(1)
        if len(calls) > n_units:
            raise MtformerError("no more")
        return formatted(*arguments)  # type: ignore[arg-type]

    return fail


def test_one_bad_document_stops_the_job_unless_it_is_to_be_skipped(trained: Project, folder: Path) -> None:
    (folder / "0.docx").write_text("no archive")
    files = [folder / "0.docx", folder / "a.html"]
    assert translate(trained, *files).status == 2
    result = translate(trained, *files, "--on-error", "skip")
    assert (result.status, result.stdout) == (0, f"{folder / 'a.de.html'}\n")
    assert f"{folder / '0.docx'} is damaged: it is no zip archive" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("a.html --n-best 2", "--n-best is for lines of text, not documents"),
        ("a.html --document --format tsv", "--format, --document are for lines of text, not documents"),
        ("a.html --input a.html", "give documents or --input, not both"),
        ("a.html --output a.html", "a.html is both input and output: name another file for the output"),
        ("a.html missing.docx", "there is no file missing.docx"),
        ("missing.docx", "there is no file missing.docx"),
        ("a.html ./notes", "notes is no document of a known format, which are: "),
        ("--input .", ". is a folder: name one for the translations with --output"),
        ("--input more --output more/new", "more/new/any is in more, which is an input"),
        ("text --bilingual", "--bilingual and --column are for documents: name one, such as report.docx"),
    ],
)
def test_what_documents_do_not_have_is_refused(trained: Project, folder: Path, arguments: str, message: str) -> None:
    inside = Project(folder, folder)
    model = trained.folder / "runs/config"
    result = inside.mtformer("translate", "--model", model, "--engine", "torch", *arguments.split())
    assert (result.status, result.stdout) == (2, "")
    assert f"Error: {message}" in result.stderr
