"""Translate documents of many formats and check what has become of them.

    python scripts/check_documents.py runs/phrasebook_en_de

The documents are made here, written by LibreOffice from those, or shipped by packages. Each is translated three times.
With a translation that equals its source, all bytes of its parts have to be the same. In capitals, another program has
to read it with the same letters: LibreOffice, which renders it before and after with the same images and as many pages,
give or take one; or a reader of its format. Comments, addresses, formulas and headings of tables stay. With a model
of the phrasebook, whose words' translations are known, tags have to be around exactly the right words, where the model
has translated the sentence as the reference does. LibreOffice and poppler (Debian: ``apt install libreoffice
poppler-utils``) have to be installed, and the packages of the extra ``dev``.
"""

import argparse
import io
import re
import shutil
import subprocess
import sys
import tempfile
import tracemalloc
import zipfile
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from markup_placement import cases
from program import run_program
from read_documents import kept, texts, without_translations
from sample_documents import BUILDERS, HEADER, bold_texts, long_document, plain, shipped

from mtformer.phrasebook.splits import LANGUAGES
from mtformer.support.errors import UserError
from mtformer.translate.documents.formats import format_of, translate_document
from mtformer.translate.documents.seam import DocumentSettings
from mtformer.translate.markup.scanner import scan
from mtformer.translate.translator import Translator

TEXTS = 8  # in each document
LONG = 4_000  # paragraphs of the longest document
VARIANTS = 5  # of each format that is made here
OFFICE = (".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".html")
WITHOUT_TAGS = (".srt", ".vtt", ".xlsx", ".yaml", ".csv")  # in the documents that are made here
BILINGUAL = (".po", ".xlf", ".tmx")  # which have source and translation
WRITTEN_BY_LIBREOFFICE = {".docx": ("odt", "docx"), ".pptx": ("odp",), ".xlsx": ("ods",), ".html": ("odt",)}


class Sample(NamedTuple):
    """A document.

    Attributes:
        path: its file.
        expected: what its texts with tags are in the translation, by the texts without tags; none if it is not known.
    """

    path: Path
    expected: list[str]


def capitals(texts: Sequence[str]) -> list[str]:
    """Write texts in capitals, and leave marks as they are."""
    return list(map(_capitals, texts))


def _capitals(text: str) -> str:
    written, position = "", 0
    for mark in [*scan(text, "en"), None]:
        start, end = (mark.start, mark.end) if mark else (len(text), len(text))
        stretch = re.split(r"(&\w+;)", text[position:start])
        written += "".join(part if place % 2 else part.upper() for place, part in enumerate(stretch)) + text[start:end]
        position = end
    return written


def samples(folder: Path, languages: tuple[str, str]) -> list[Sample]:
    """Make documents in a folder."""
    sentences = list(cases(*languages, 400))
    made, number = [], 0
    for suffix, build in BUILDERS.items():
        for variant in range(VARIANTS):
            of_document = [sentences[(number + step * 7) % len(sentences)] for step in range(TEXTS)]
            number += TEXTS * 7
            path = folder / f"made_{suffix[1:]}_{variant}{suffix}"
            path.write_bytes(build([src for src, _, _ in of_document], variant))
            made.append(Sample(path, [tgt for _, _, tgt in of_document]))
    for suffix, kinds in WRITTEN_BY_LIBREOFFICE.items():
        for kind in kinds:
            sources = [sample.path for sample in made if sample.path.suffix == suffix][:3]
            written = convert(sources, kind, folder / f"written_{suffix[1:]}_{kind}")
            made += [Sample(path, []) for path in written]
    for number, path in enumerate(shipped()):
        made.append(Sample(Path(shutil.copy(path, folder / f"shipped{number}{path.suffix}")), []))
    return made


def convert(paths: Sequence[Path], kind: str, folder: Path) -> list[Path]:
    """Convert documents with LibreOffice, and return those that it has written."""
    folder.mkdir(exist_ok=True)
    profile = folder.parent / "profile"
    command = ["soffice", f"-env:UserInstallation=file://{profile}", "--headless", "--convert-to", kind]
    subprocess.run([*command, "--outdir", folder, *paths], check=True, capture_output=True)
    return sorted(folder.glob(f"*.{kind}"))


def translated(path: Path, translate: Callable[[Sequence[str]], Sequence[str]], languages: tuple[str, str]) -> bytes:
    """Return the translation of a document."""
    columns = ("2",) if path.suffix == ".csv" else ()
    settings = DocumentSettings(languages[1], languages[0], columns=columns, name=path.name)
    return translate_document(path.read_bytes(), format_of(path.name), translate, settings)


def is_same(path: Path, content: bytes, languages: tuple[str, str]) -> bool:
    """Tell whether a document has the same bytes, or its parts have; but for translations and their language."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as before, zipfile.ZipFile(io.BytesIO(content)) as after:
            return [(n, before.read(n)) for n in before.namelist()] == [(n, after.read(n)) for n in after.namelist()]
    return path.read_bytes() == without_translations(content, path.suffix, languages)


def check_texts(before: Path, after: Path, language: str) -> str:
    """Return what readers other than ours find wrong with a document in capitals; nothing if all is right."""
    try:
        if before.suffix in OFFICE:
            was, now = kept(before), kept(after)
            return "" if was == now else f"{was} became {now}"
        old, new = before.read_bytes(), after.read_bytes()
        source = texts(old, before.suffix, None)
        if before.suffix in BILINGUAL and source != texts(new, before.suffix, None):
            return "the source has changed"
        expected, found = _letters(source), _letters(texts(new, before.suffix, language))
    except Exception as error:  # of any reader
        return f"another program does not read it: {type(error).__name__}: {error}"
    for place, (one, two) in enumerate(zip_longest(expected, found)):
        if one != two:
            return f"text was lost, added or moved: {expected[place:][:40]} became {found[place:][:40]}"
    return ""


def _letters(found: Sequence[str]) -> str:
    return re.sub(r"\s+", "", "".join(found)).upper()


class Rendered(NamedTuple):
    """What LibreOffice has made of a document.

    Attributes:
        n_pages: how many pages it has.
        n_images: how many images.
        letters: how often it has each, in capitals; those of the header, which more pages have more often, left out.
    """

    n_pages: int
    n_images: int
    letters: Counter[str]


def rendered(pdf: Path) -> Rendered:
    """Read a document that LibreOffice has rendered."""

    def output(*command: str | Path) -> str:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    [n_pages] = re.findall(r"^Pages:\s+(\d+)", output("pdfinfo", pdf), re.MULTILINE)
    letters = re.sub(r"\W+", "", output("pdftotext", pdf, "-").upper())  # lines are broken in other places
    letters = letters.replace(HEADER.replace(" ", "").upper(), "")
    return Rendered(int(n_pages), output("pdfimages", "-list", pdf).count(" image "), Counter(letters))


def check_rendering(before: Path, after: Path, report: Callable[[str, str], None]) -> int:
    """Compare the documents of two folders as LibreOffice renders them; return how many there are."""
    names = sorted(path.name for path in before.glob("*") if path.suffix in OFFICE)
    for folder in (before, after):
        convert([folder / name for name in names], "pdf", folder / "pdf")
    for name in names:
        both = [folder / "pdf" / Path(name).with_suffix(".pdf") for folder in (before, after)]
        if not all(pdf.is_file() for pdf in both):
            report(name, "LibreOffice does not render it")
            continue
        one, two = map(rendered, both)
        if abs(one.n_pages - two.n_pages) > 1 or one.n_images != two.n_images:
            report(name, f"{one.n_pages} pages and {one.n_images} images became {two.n_pages} and {two.n_images}")
        if one.letters != two.letters:
            report(name, f"text was lost or added: {one.letters - two.letters} {two.letters - one.letters}")
    return len(names)


def check_tags(made: Sequence[Sample], translator: Translator, languages: tuple[str, str]) -> tuple[int, int]:
    """Return how many tags are around exactly the right words, and of how many."""

    def translate(texts: Sequence[str]) -> list[str]:
        return [best.text for best, *_ in translator.translate(texts)]

    n_right = n_all = 0
    for sample in made:
        if not sample.expected or sample.path.suffix in WITHOUT_TAGS:
            continue
        found = bold_texts(translated(sample.path, translate, languages), sample.path.suffix)
        expected = {plain(text): set[str]() for text in sample.expected}
        for text in sample.expected:
            expected[plain(text)].add(_tidy(text))
        known = [text for text in map(_tidy, found) if plain(text) in expected]
        n_all += len(known)
        n_right += sum(text in expected[plain(text)] for text in known)
        for text in known:
            if text not in expected[plain(text)]:
                print(f"  {sample.path.name}: {text}  (expected: {' or '.join(expected[plain(text)])})")
    return n_right, n_all


def memory(languages: tuple[str, str]) -> str:
    """Return how much memory a long document of Word takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "long.docx"
        path.write_bytes(long_document(LONG))
        [pdf] = convert([path], "pdf", Path(folder) / "pdf")
        n_pages = rendered(pdf).n_pages
        tracemalloc.start()
        translated(path, capitals, languages)
        _, peak = tracemalloc.get_traced_memory()
    return f"a document of Word with {LONG:,} paragraphs on {n_pages} pages took {peak / 2**20:.0f} MiB of memory"


def _tidy(text: str) -> str:
    text = re.sub(r"(\s*)</b>", r"</b>\1", re.sub(r"<b>(\s*)", r"\1<b>", text.replace("</b><b>", "")))
    return " ".join(text.split())


def main() -> None:
    """Check all documents, and end with 1 if one is not as it has to be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle of the phrasebook")
    parser.add_argument("--keep", type=Path, help="keep the documents in this folder")
    args = parser.parse_args()
    if missing := [program for program in ("soffice", "pdfinfo") if shutil.which(program) is None]:
        raise UserError(f"there is no {' and no '.join(missing)}: install LibreOffice and poppler")
    translator = Translator.load(args.run, "cpu")
    languages = translator.src_lang, translator.tgt_lang
    if not set(languages) <= set(LANGUAGES):
        raise UserError("use a model of the phrasebook")
    problems = []

    def report(name: str, problem: str) -> None:
        problems.append(name)
        print(f"{name}: {problem}", flush=True)

    with tempfile.TemporaryDirectory() as temporary:
        before, after = ((args.keep or Path(temporary)) / name for name in ("before", "after"))
        before.mkdir(parents=True, exist_ok=True)
        after.mkdir(exist_ok=True)
        made = samples(before, languages)
        for number, sample in enumerate(made):
            if sample.path.parent != before:  # written by LibreOffice, in a folder of its own
                path = before / f"written{number}{sample.path.suffix}"
                made[number] = Sample(Path(shutil.move(sample.path, path)), [])
        for path in [sample.path for sample in made]:
            if not is_same(path, translated(path, list, languages), languages):
                report(path.name, "an unchanged translation has other bytes")
            (after / path.name).write_bytes(translated(path, capitals, languages))
            if problem := check_texts(path, after / path.name, languages[1]):
                report(path.name, problem)
        n_rendered = check_rendering(before, after, report)
        n_right, n_all = check_tags(made, translator, languages)
    suffixes = Counter(sample.path.suffix for sample in made)
    print(f"{len(made)} documents: {', '.join(f'{n} {suffix}' for suffix, n in suffixes.items())}")
    print(f"{len(made) - len(set(problems))} of {len(made)} as they have to be, {n_rendered} rendered by LibreOffice")
    print(memory(languages))
    print(f"tags around exactly the right words: {n_right} of {n_all} ({100 * n_right / n_all:.1f} %)")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    run_program(main)
