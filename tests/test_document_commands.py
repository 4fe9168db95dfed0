"""``mtformer translate`` with documents, and a trained model."""

import errno
import io
import json
import os
import re
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import docx
import polib
import pytest
from conftest import Project, Result
from documents import translated

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.files import file_digest
from mtformer.translate.documents.formats import format_of, read_document
from mtformer.translate.documents.seam import DocumentSettings, TextDocument
from mtformer.translate.documents.tasks import Task, require_free, tasks, without_translations
from mtformer.translate.plan import Plan
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

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


def test_a_url_is_a_text_even_if_it_ends_like_the_name_of_a_document(trained: Project) -> None:
    result = translate(trained, "https://example.com/missing.html")
    assert (result.status, len(result.stdout.splitlines())) == (0, 1), result.stderr


@pytest.mark.parametrize("name", ["l.txt", "L.TXT"])
def test_a_text_is_lines_as_an_input_whatever_the_case_of_its_name(trained: Project, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(f"{SOURCE}\n")
    result = translate(trained, "--input", tmp_path / name)
    assert (result.status, result.stdout) == (0, f"{TRANSLATION}\n"), result.stderr


def test_messages_call_the_units_of_text_paragraphs(trained: Project, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{SOURCE}\n\n{SOURCE}\n")
    (tmp_path / "b.html").write_text(PAGE)
    assert f"{tmp_path / 'a.txt'}: 2 paragraphs\n" in translate(trained, tmp_path / "a.txt").stderr
    (tmp_path / "a.de.txt").unlink()
    both = translate(trained, tmp_path / "a.txt", tmp_path / "b.html").stderr
    assert f"{tmp_path / 'a.txt'}: 2 units\n" in both
    assert f"{tmp_path / 'b.html'}: 1 unit\n" in both


def test_progress_shows_the_time_left_once_all_documents_are_read(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_SECONDS_TO_FIRST_LINE", "_SECONDS_BETWEEN_LINES"):
        monkeypatch.setattr(f"mtformer.support.progress.{name}", 0.0)
    monkeypatch.setattr("mtformer.translate.jobs.reading.FIRST_SIZE", 2)
    (tmp_path / "a.txt").write_text(f"{SOURCE}\n\n" * 3)
    (tmp_path / "b.txt").write_text(SOURCE)
    (tmp_path / "c.txt").write_bytes(b"\x81")
    files = [tmp_path / f"{name}.txt" for name in "abc"]
    shown = translate(trained, *files, "--on-error", "skip").stderr
    first, *_, last = re.findall(r"translating: (.*)", shown)
    assert re.fullmatch(r"\d paragraphs?, [\d.,]+ paragraphs/\w+", first)
    assert re.fullmatch(r"4 of 4 paragraphs, 0:00 left", last)


@pytest.mark.parametrize("arguments", [["--input", "{}"], ["{}/"]])
def test_all_documents_of_a_folder_are_translated(
    trained: Project, folder: Path, tmp_path: Path, arguments: Sequence[str]
) -> None:
    result = translate(trained, *(each.format(folder) for each in arguments), "--output", tmp_path / "out")
    written = [tmp_path / "out/a.html", tmp_path / "out/more/b.HTM"]
    assert (result.status, result.stdout) == (0, "".join(f"{path}\n" for path in written)), result.stderr
    expected = PAGE.replace(SOURCE, TRANSLATION, 1).replace('"en"', '"de"')
    assert [path.read_text() for path in written] == [expected, expected]
    assert "skipped 1 of 3 files, which are not documents" in result.stderr


def test_several_documents_are_not_written_to_what_is_named_like_a_file(folder: Path, report: Path) -> None:
    documents = [folder / "a.html", report]
    with pytest.raises(UserError, match=r"--output one\.docx is named like a file: name a folder for 2 documents"):
        tasks(documents, Path("one.docx"))
    assert [task.folder.name for task in tasks(documents, Path("one"))] == ["one", "one"]


def test_a_folder_beside_documents_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match="pages is not a document"):
        tasks([folder, folder / "a.html"], Path("-"))


def test_several_documents_are_one_job(trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [folder / "a.html", folder / "more" / "b.HTM"]
    batches, hashed = recorded_batches(monkeypatch), recorded_digests(monkeypatch)
    result = translate(trained, *files)
    assert (result.status, result.stdout) == (0, f"{folder / 'a.de.html'}\n{folder / 'more' / 'b.de.HTM'}\n")
    assert batches == [[SOURCE, SOURCE]]
    assert len(hashed) == 1
    assert sorted(path.name for path in folder.rglob("*.*")) == ["a.de.html", "a.html", "b.HTM", "b.de.HTM"]


def recorded_batches(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    batches: list[list[str]] = []
    translate = Translator.translate

    def record(self: Translator, texts: Sequence[str], **options: Any) -> object:
        batches.append(list(texts))
        return translate(self, texts, **options)

    monkeypatch.setattr(Translator, "translate", record)
    return batches


def recorded_digests(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    hashed: list[Path] = []

    def record(path: Path) -> str:
        hashed.append(path)
        return file_digest(path)

    monkeypatch.setattr("mtformer.translate.jobs.core.file_digest", record)
    return hashed


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


def test_several_documents_resume_and_those_that_are_written_stay(
    trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.translate.jobs.reading.FIRST_SIZE", 1)
    files = [folder / "a.html", folder / "more" / "b.HTM"]
    with monkeypatch.context() as patch:
        patch.setattr("mtformer.translate.jobs.translating.formatted", failing_after(1))
        assert translate(trained, *files).status == 1
    first, second = folder / "a.de.html", folder / "more" / "b.de.HTM"
    assert TRANSLATION in first.read_text()
    first.write_text("edited since")
    assert "a.de.html.units.part is an unfinished output" in translate(trained, *files).stderr
    different = translate(trained, files[0], "--resume")
    assert (different.status, "the list of documents was 2 (" in different.stderr) == (2, True)
    result = translate(trained, *files, "--resume")
    assert (result.status, result.stdout) == (0, f"{second}\n"), result.stderr
    assert first.read_text() == "edited since"
    assert TRANSLATION in second.read_text()
    assert not list(folder.glob("*.part*"))


def test_resume_skips_what_exists_and_translates_the_others(trained: Project, folder: Path) -> None:
    files = [folder / name for name in ("a.html", "b.html", "c.html")]
    for file in files:
        file.write_text(PAGE)
    by_hand, written = folder / "b.de.html", [folder / "a.de.html", folder / "c.de.html"]
    by_hand.write_text("by hand")
    refused = translate(trained, *files)
    assert (refused.status, "keep it and translate the others with --resume" in refused.stderr) == (2, True)
    result = translate(trained, *files, "--resume")
    assert (result.status, result.stdout) == (0, "".join(f"{path}\n" for path in written)), result.stderr
    assert f"{files[1]}: skipped: {by_hand} exists" in result.stderr
    again = translate(trained, *files, "--resume")
    assert (again.status, again.stdout, again.stderr.count(" exists")) == (0, "", 3), again.stderr
    assert by_hand.read_text() == "by hand"
    assert all(TRANSLATION in path.read_text() for path in written)
    assert not list(folder.glob("*.part*"))


def test_json_has_the_units_of_each_document_also_after_an_interruption(
    trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.translate.jobs.reading.FIRST_SIZE", 1)
    files = [folder / "a.html", folder / "b.html"]
    files[0].write_text(PAGE)
    files[1].write_text(f"<p>{SOURCE}</p><p>the <b>1,234</b> dogs.</p>")
    with monkeypatch.context() as patch:
        patch.setattr("mtformer.translate.jobs.translating.formatted", failing_after(2))
        first = translate(trained, *files, "--format", "json")
    assert first.status == 1
    assert "--format was json" in translate(trained, *files, "--resume").stderr
    second = translate(trained, *files, "--format", "json", "--resume")
    assert second.status == 0, second.stderr
    documents = [json.loads(line) for line in [*first.stdout.splitlines(), *second.stdout.splitlines()]]
    for document, file in zip(documents, files, strict=True):
        assert (document["document"], document["output"]) == (str(file), str(file.with_suffix(".de.html")))
        assert [unit["unit"] for unit in document["units"]] == list(range(1, len(document["units"]) + 1))
        [unit, *others] = document["units"]
        assert (unit["source"], unit["translation"], unit["notes"]) == (SOURCE, TRANSLATION, [])
        assert 0 < unit["confidence"] <= 1
        assert TRANSLATION in file.with_suffix(".de.html").read_text()
    assert others[0]["source"] == "the <1>1,234</1> dogs."


def test_an_unfinished_job_knows_what_it_skipped_from_what_it_wrote(
    trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.translate.jobs.reading.FIRST_SIZE", 1)
    files = [folder / name for name in ("a.html", "b.html", "c.html")]
    for file in files:
        file.write_text(PAGE)
    first, second, third = (folder / f"{name}.de.html" for name in "abc")
    first.write_text("by hand")
    with monkeypatch.context() as patch:
        patch.setattr("mtformer.translate.jobs.translating.formatted", failing_after(1))
        assert translate(trained, *files, "--resume").status == 1
    assert TRANSLATION in second.read_text()
    batches = recorded_batches(monkeypatch)
    result = translate(trained, *files, "--resume")
    assert (result.status, result.stdout) == (0, f"{third}\n"), result.stderr
    assert (f"skipped: {first} exists" in result.stderr, f"{second} exists already" in result.stderr) == (True, True)
    assert batches == [[SOURCE]]
    assert first.read_text() == "by hand"
    assert TRANSLATION in third.read_text()
    assert not list(folder.glob("*.part*"))


def test_units_stay_translated_if_their_document_cannot_be_written(
    trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = folder / "a.html"
    with monkeypatch.context() as patch:
        patch.setattr("mtformer.translate.documents.job.write_atomically", failing_after(0))
        assert translate(trained, page).status == 1
    batches, written = recorded_batches(monkeypatch), folder / "a.de.html"
    assert translate(trained, page, "--resume").status == 0
    assert not batches
    assert TRANSLATION in written.read_text()


def test_an_output_that_cannot_be_written_is_named(
    trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_file = os.open

    def refuse(path: Any, *rest: Any, **options: Any) -> int:
        if "a.de.html.units" in str(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return open_file(path, *rest, **options)

    monkeypatch.setattr("os.open", refuse)
    result = translate(trained, folder / "a.html")
    assert (result.status, result.stdout) == (2, "")
    assert f"Error: cannot write {folder / 'a.de.html'}: Permission denied\n" in result.stderr


def test_a_file_that_appears_meanwhile_stays(trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, written = folder / "a.html", folder / "a.de.html"
    with monkeypatch.context() as patch:
        patch.setattr("mtformer.translate.documents.job.UnitsJob.check", lambda self: written.write_text("by hand"))
        result = translate(trained, page)
    assert (result.status, written.read_text()) == (2, "by hand")
    assert f"{written} has appeared and would be replaced: move it, and continue with --resume" in result.stderr
    written.unlink()
    assert translate(trained, page, "--resume").status == 0
    assert TRANSLATION in written.read_text()


def failing_after(n_units: int) -> object:
    from mtformer.translate.jobs.translating import formatted

    calls: list[int] = []

    def fail(*arguments: object) -> str:
        calls.append(1)
        if len(calls) > n_units:
            raise MtformerError("no more")
        return formatted(*arguments)  # type: ignore[arg-type]

    return fail


def test_all_documents_that_cannot_be_read_are_reported_at_once(trained: Project, folder: Path) -> None:
    for name in ("0.docx", "more/1.odt"):
        (folder / name).write_bytes(b"damaged")
    result = translate(trained, "--input", folder, "--output", folder.parent / "out")
    assert result.status == 2
    assert "Error: 2 of 4 documents cannot be read:\n" in result.stderr
    assert all(f"{folder / name} is damaged: it is not a zip" in result.stderr for name in ("0.docx", "more/1.odt"))
    missing = [folder / "x.html", folder / "y.html"]
    result = translate(trained, *missing)
    assert (result.status, [f"there is no file {path}" in result.stderr for path in missing]) == (2, [True, True])


def test_one_bad_document_stops_the_job_unless_it_is_to_be_skipped(trained: Project, folder: Path) -> None:
    (folder / "0.docx").write_text("no archive")
    files = [folder / "0.docx", folder / "a.html"]
    assert translate(trained, *files).status == 2
    result = translate(trained, *files, "--on-error", "skip")
    assert (result.status, result.stdout) == (1, f"{folder / 'a.de.html'}\n")
    assert f"{folder / '0.docx'} is damaged: it is not a zip archive" in result.stderr
    assert result.stderr.endswith("1 of 2 documents could not be read: see above\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("a.html --output -", "--output - is for lines of text, not documents"),
        ("a.html --n-best 2", "--n-best is for lines of text, not documents"),
        ("a.html --document --format tsv", "--format tsv, --document are for lines of text, not documents"),
        ("a.html --input a.html", "give documents or --input, not both"),
        ("a.html --output a.html", "a.html is both input and output: name another file for the output"),
        ("a.html --output a.docx", "--output a.docx: the translation of a.html is a .html file: name one"),
        ("a.html --output a.doc", "--output a.doc: the translation of a.html is a .html file: name one"),
        ("a.html --column text", "--column is for CSV, TSV, JSON and YAML, not these documents"),
        ("a.html missing.docx", "there is no file missing.docx"),
        ("missing.docx", "there is no file missing.docx"),
        ("a.html ./notes", "notes is not a document of a known format; the formats are: "),
        ("--input .", ". is a folder: name another for the translations, as in --output translated"),
        ("--input more --output more/new", f"{Path('more/new')} is in more, which is an input"),
        ("text --bilingual", "--bilingual and --column are for documents: name one, such as report.docx"),
    ],
)
def test_what_documents_do_not_have_is_refused(trained: Project, folder: Path, arguments: str, message: str) -> None:
    inside = Project(folder, folder)
    model = trained.folder / "runs/config"
    result = inside.mtformer("translate", "--model", model, "--engine", "torch", *arguments.split())
    assert (result.status, result.stdout) == (2, "")
    assert f"Error: {message}" in result.stderr


def test_a_unit_that_fails_keeps_its_source(trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Translator.plan

    def failing(self: Translator, text: str) -> Plan[list[Translation]]:
        if "fails" in text:
            raise MtformerError("no more")
        return (yield from plan(self, text))

    monkeypatch.setattr(Translator, "plan", failing)
    (folder / "a.html").write_text(f"<p>it fails</p><p>{SOURCE}</p>")
    result = translate(trained, folder / "a.html", "--on-error", "skip")
    assert (folder / "a.de.html").read_text() == f"<p>it fails</p><p>{TRANSLATION}</p>"
    assert f"not translated: 1 unit ({folder / 'a.html'}: 1), copied" in result.stderr


def nested(depth: int) -> bytes:
    frames = "<draw:frame><text:p>a" * depth + "</text:p></draw:frame>" * depth
    names = "".join(
        f' xmlns:{prefix}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for prefix, name in (("text", "text"), ("draw", "drawing"))
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("content.xml", f"<a{names}><text:p>{frames}</text:p></a>")
    return written.getvalue()


def test_unexpected_errors_of_readers_name_the_document() -> None:
    def read(content: bytes, settings: DocumentSettings) -> TextDocument:
        raise KeyError("x")

    with pytest.raises(UserError, match=r"a\.html cannot be read as HTML \(KeyError: 'x'\)"):
        read_document(b"", replace(format_of("a.html"), read=read), DocumentSettings("de", name="a.html"))
    with pytest.raises(UserError, match=r"a\.odt is nested too deeply to be read"):
        translated(nested(2_000), "a.odt")


def test_a_catalogue_whose_encoding_lacks_a_letter_becomes_utf_8() -> None:
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=ASCII\\n"\n\n'
    catalogue = f'{header}msgid "over"\nmsgstr ""\n'
    assert b"charset=ASCII" in translated(catalogue, "a.po", lambda texts: ["uber"])
    written = translated(catalogue, "a.po", lambda texts: ["über"]).decode()
    assert "charset=UTF-8" in written
    assert polib.pofile(written).find("over").msgstr == "über"


def test_a_text_whose_encoding_lacks_a_letter_is_refused() -> None:
    document = TextDocument("für", "ascii", DocumentSettings("de", name="a.txt"), [], errors="strict")
    with pytest.raises(UserError, match=r"a\.txt: the translation has '.xfc', which ASCII, the encoding of the file"):
        document.with_translations([])


def make(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text")
    return [folder / name for name in names]


def problem(documents: Sequence[Task], *read: Path, is_resumed: bool = False) -> str:
    with pytest.raises(UserError) as caught:
        require_free(documents, "de", read, is_resumed=is_resumed)
    return str(caught.value)


def test_no_translation_replaces_a_file_that_nobody_named(tmp_path: Path) -> None:
    page, done = make(tmp_path, "r.html", "r.de.html")
    assert problem(tasks([page], Path("-"))) == (
        f"{done} exists and would be replaced: move or delete what is there, or name another place with --output"
    )
    require_free(tasks([page], done), "de", [], is_resumed=False)  # named
    require_free(tasks([page], Path("-")), "de", [], is_resumed=True)
    require_free(tasks([page], make(tmp_path, "out/x.html")[0].parent), "de", [], is_resumed=False)


def test_no_translation_replaces_a_protected_file_or_what_is_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, protected, inside = make(tmp_path, "r.html", "done.html", "folder/x.html")
    named_folder = Task(page, tmp_path, inside.parent.name, is_named=True)
    assert problem([named_folder]) == f"cannot write {inside.parent}: it is not a regular file"
    monkeypatch.setattr("os.access", lambda path, mode: path != protected)  # which is always true for root
    assert problem(tasks([page], protected)) == f"cannot write {protected}: Permission denied"


@pytest.mark.parametrize("is_resumed", [True, False])
def test_no_translation_replaces_what_is_read(tmp_path: Path, is_resumed: bool) -> None:
    memory, project, page = make(tmp_path, "project.de.tmx", "project.tmx", "a.html")
    found = tasks([project], Path("-"))
    assert f"{memory} is both input and output" in problem(found, memory, is_resumed=is_resumed)
    assert f"{page} is both input" in problem([Task(project, tmp_path, "a.html"), *tasks([page], tmp_path / "b.html")])


def test_a_missing_document_is_named_before_a_missing_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    pdf = tmp_path / "missing.pdf"
    with pytest.raises(UserError, match=re.escape(f"there is no file {pdf}")):
        tasks([pdf], tmp_path)
    pdf.touch()
    for given in (pdf, tmp_path):
        with pytest.raises(UserError, match="PDF needs the package pypdf"):
            tasks([given], tmp_path.parent / "translated")


@pytest.mark.parametrize(
    ("document", "output", "written"),
    [
        ("a.html", "out", "out/a.de.html"),
        ("a.html", "page.de", "page.de/a.de.html"),
        ("a.html", "b.HTM", "b.HTM"),
        ("a.html", "there", "there"),
        ("a.txt", "out", "out/a.de.txt"),
        ("a.txt", "text.de", "text.de"),
        ("a.pdf", "b.txt", "b.txt"),
    ],
)
def test_an_output_that_is_not_named_like_a_document_is_a_folder(
    tmp_path: Path, document: str, output: str, written: str
) -> None:
    [page, _] = make(tmp_path, document, "there")
    [task] = tasks([page], tmp_path / output)
    assert task.target("de") == tmp_path / written


def test_documents_with_one_output_are_refused(tmp_path: Path) -> None:
    pages = make(tmp_path, "a/r.html", "b/r.html", "in/x.pdf", "in/x.txt", "in/y.txt")
    assert problem(tasks(pages[:2], tmp_path)).startswith(f"{pages[0]} and {pages[1]} would both be written to one fil")
    in_folder = tasks([tmp_path / "in"], tmp_path / "out")
    assert problem(in_folder).startswith(f"{pages[2]} and {pages[3]} would both be written to one file")


def test_capitals_alone_tell_no_outputs_apart_where_the_system_ignores_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = tasks(make(tmp_path, "a/r.html", "b/R.html"), tmp_path)
    monkeypatch.setattr("sys.platform", "linux")
    require_free(pages, "de", [], is_resumed=False)
    monkeypatch.setattr("sys.platform", "darwin")
    assert "would both be written" in problem(pages)


def test_lock_files_of_open_documents_are_skipped(tmp_path: Path) -> None:
    report, lock = make(tmp_path, "in/report.docx", "in/~$report.docx")
    for inputs, output in (([report.parent], tmp_path / "out"), ([report, lock], Path("-"))):
        assert [task.input for task in tasks(inputs, output)] == [report]
    assert [task.input for task in tasks([lock], Path("-"))] == [lock]


def test_translations_of_other_documents_are_skipped(tmp_path: Path) -> None:
    files = make(tmp_path, "r.html", "r.de.html", "s.de.html", "t.pdf", "t.de.txt", "u/r.de.html")
    kept = without_translations(tasks(files, Path("-")), "de")
    assert [task.input for task in kept] == [files[0], files[2], files[3], files[5]]
