"""The documents of a command, and the files that their translations are written to.

A translation replaces an existing file only if the user has named that very file, and never an input.
"""

import errno
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from mtformer.support.errors import Problems, UserError
from mtformer.support.files import require_distinct
from mtformer.text.lines import is_standard_output
from mtformer.translate.documents.formats import find_format, format_of
from mtformer.translate.jobs.reading import structured_suffix

log = logging.getLogger(__name__)

_MOST_SHOWN = 3  # files in a message
_LOCK = "~$"  # what the names of Office's lock files begin with, which stand beside open documents


class Task(NamedTuple):
    """A document to translate.

    Attributes:
        input: its file.
        folder: the folder to write to.
        name: the name of the file to write; empty if it follows from that of the input.
        is_named: whether the user has named that very file, which is then replaced.
    """

    input: Path
    folder: Path
    name: str = ""
    is_named: bool = False

    def target(self, tgt_lang: str) -> Path:
        """Return the file to write."""
        return self.folder / (self.name or translated_name(self.input, tgt_lang))


def translated_name(path: PurePath, tgt_lang: str) -> str:
    """Return the usual name of a translation: ``report.de.docx`` for ``report.docx``."""
    return f"{path.stem}.{tgt_lang}{_suffix(path)}"


def _suffix(path: PurePath) -> str:
    return format_of(path.name).written_as or path.suffix


def tasks(inputs: Sequence[Path], output: Path) -> list[Task]:
    """Return the documents to translate.

    Args:
        inputs: files; or one folder, whose documents are translated recursively.
        output: a file for a single document, if the file exists or its name has the suffix of a document; otherwise a
            folder. Standard output stands for the folder of each input.

    Raises:
        UserError: there is no document, its format is unknown or differs from that of the output, or a required package
            is not installed.
    """
    if len(inputs) == 1 and inputs[0].is_dir():
        return _in_folder(inputs[0], output)
    inputs = [path for path in inputs if not path.name.startswith(_LOCK)] or inputs
    [first, *others] = inputs
    problems = Problems()
    for path in inputs:
        with problems.collected():
            format = format_of(path.name)
            if not path.is_file():
                raise UserError(f"there is no file {path}")
            format.require_package()
    problems.raise_all()
    if is_standard_output(output):
        return [Task(path, path.parent) for path in inputs]
    if others and output.exists() and not output.is_dir():
        raise UserError(f"--output {output} is a file: name a folder for {len(inputs)} documents")
    if others and find_format(output.name) and not output.exists():
        raise UserError(f"--output {output} is named like a file: name a folder for {len(inputs)} documents")
    if others or output.is_dir():
        return [Task(path, output) for path in inputs]
    found = find_format(output.name) or structured_suffix(output)
    if found and found is not find_format(f"x{_suffix(first)}"):
        raise UserError(f"--output {output}: the translation of {first} is a {_suffix(first)} file: name one")
    is_named = output.suffix if _suffix(first) == ".txt" else found  # texts may have any suffix, as in text.de
    if not is_named and not output.exists():
        return [Task(first, output)]
    return [Task(first, output.parent, output.name, is_named=True)]


def _in_folder(folder: Path, output: Path) -> list[Task]:
    if is_standard_output(output):
        raise UserError(f"{folder} is a folder: name another for the translations, as in --output translated")
    if output.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"{output} is in {folder}, which is an input: name a folder elsewhere for the output")
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith((".", _LOCK)))
    formats = {path: format for path in files if (format := find_format(path.name))}
    if not formats:
        raise UserError(f"{folder} has no documents among its {len(files)} files")
    for format in formats.values():
        format.require_package()
    n_others = len(files) - len(formats)
    if n_others:
        log.info("%s: skipped %d of %d files, which are not documents", folder, n_others, len(files))
    return [Task(path, output / path.relative_to(folder).parent, f"{path.stem}{_suffix(path)}") for path in formats]


def without_translations(documents: Sequence[Task], tgt_lang: str) -> list[Task]:
    """Leave out documents whose names mark them as translations of others, made by an earlier command."""
    inputs = {task.input for task in documents}
    made = {path.with_name(translated_name(path, tgt_lang)): path for path in inputs}
    kept = [task for task in documents if task.input not in made]
    if skipped := [task.input for task in documents if task.input in made]:
        log.info("%s: skipped, as the translation of %s", _shown(skipped), _shown([made[path] for path in skipped]))
    return kept


def require_free(documents: Sequence[Task], tgt_lang: str, read: Iterable[Path], *, is_resumed: bool) -> None:
    """Refuse to overwrite files that must be kept.

    Args:
        documents: the documents.
        tgt_lang: the target language.
        read: other files that are read, such as the model and a glossary.
        is_resumed: whether the job is resumed, or has to be: it keeps existing files.

    Raises:
        UserError: two documents have the same output; or an output is an input, cannot be replaced, or exists and was
            not named.
    """
    inputs = {(found.st_dev, found.st_ino) for found in (task.input.stat() for task in documents)}
    sources: defaultdict[str, list[Path]] = defaultdict(list)
    others, present = list(read), list[Path]()
    for task in documents:
        target = task.target(tgt_lang)
        sources[_same(target)].append(task.input)
        if not target.exists():
            continue
        found = target.stat()
        require_distinct(target, [*others, *([target] if (found.st_dev, found.st_ino) in inputs else [])])
        if not task.is_named:
            present.append(target)
        elif not target.is_file() or not os.access(target, os.W_OK):
            reason = os.strerror(errno.EACCES) if target.is_file() else "it is not a regular file"
            raise UserError(f"cannot write {target}: {reason}")
    for paths in sources.values():
        if len(paths) > 1:
            both = " and ".join(map(str, paths))
            raise UserError(f"{both} would both be written to one file: translate them one by one, with --output")
    if present and not is_resumed:
        verb = "exists" if len(present) == 1 else "exist"
        what = "it" if len(present) == 1 else "them"
        others_too = f"keep {what} and translate the others with --resume, " if len(documents) > 1 else ""
        raise UserError(
            f"{_shown(present)} {verb} and would be replaced: {others_too}move or delete what is there, or name "
            "another place with --output"
        )


def _same(path: Path) -> str:
    """Return a key that is equal for all paths of a file, ignoring case where the system does."""
    resolved = str(path.resolve())
    return resolved.casefold() if sys.platform in ("win32", "darwin") else resolved


def _shown(paths: Sequence[Path]) -> str:
    more = len(paths) - _MOST_SHOWN
    return ", ".join(map(str, paths[:_MOST_SHOWN])) + (f" and {more} more" if more > 0 else "")
