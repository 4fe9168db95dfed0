"""Write the text of a config without the pairs that a checkup has found."""

import json
import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO

import yaml

from mtformer.config import TextFiles
from mtformer.config.sources import SourceSection
from mtformer.data.clean.checkup import Checkup, SourceCheck
from mtformer.data.clean.report import as_json, as_text
from mtformer.support.errors import UserError
from mtformer.support.files import write_new_folder
from mtformer.text.lines import open_output

_KEPT = set(SourceSection.model_fields)  # what is said of any source
REJECTED, REPORT, VALUES = "rejected.tsv", "report.txt", "report.json"


def write_clean(checkup: Checkup, folder: Path) -> list[TextFiles]:
    """Write the good pairs of each training source to two files, compressed as it is, and the others to a table.

    The table ``rejected.tsv`` has the source, the line, the rule, the source text and the target of each;
    ``report.txt`` and ``report.json`` have what the checkup reports. The folder appears when it is complete.

    Returns:
        the two files of each source, as a source with the same weight, tag and directions.

    Raises:
        UserError: there is something at ``folder``, or it cannot be made; a source cannot be read a second time, or
            it has changed.
        MtformerError: it cannot be written.
    """
    sources = [source for source in checkup.sources if source.use == "train"]
    names = _file_names(sources)
    folder = write_new_folder(folder, partial(_write, checkup, sources, names), "--fix")
    kept = [source.source.model_dump(include=_KEPT, exclude_defaults=True) for source in sources]
    return [
        TextFiles(src=folder / src, tgt=folder / tgt, **values) for (src, tgt), values in zip(names, kept, strict=True)
    ]


def as_config(source: TextFiles, folder: Path) -> str:
    """Write a source as it is written in a config in ``folder``."""
    values = {
        side: os.path.relpath(path.resolve(), folder) for side, path in (("src", source.src), ("tgt", source.tgt))
    }
    values |= source.model_dump(mode="json", include=_KEPT, exclude_defaults=True)
    return yaml.safe_dump(values, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000).strip()


def _write(checkup: Checkup, sources: list[SourceCheck], names: list[tuple[str, str]], folder: Path) -> None:
    with open_output(folder / REJECTED) as rejected:
        print("source", "line", "rule", "src", "tgt", sep="\t", file=rejected)
        for source, (src, tgt) in zip(sources, names, strict=True):
            with ExitStack() as stack:
                sides = [stack.enter_context(open_output(folder / name)) for name in (src, tgt)]
                _divide(source, sides, rejected)
    (folder / REPORT).write_text(as_text(checkup) + "\n", encoding="utf-8")
    (folder / VALUES).write_text(json.dumps(as_json(checkup), ensure_ascii=False, indent=1), encoding="utf-8")


def _divide(source: SourceCheck, sides: list[IO[str]], rejected: IO[str]) -> None:
    """Write each pair of a source to one place or the other."""
    examples, n_read = source.part.examples(), 0
    for number, example in zip(source.dropped.tolist(), examples, strict=False):
        n_read += 1
        if number < 0:
            for file, text in zip(sides, (example.src, example.tgt), strict=True):
                print(text, file=file)
        else:
            texts = (text.replace("\t", " ") for text in (example.src, example.tgt))
            print(source.name, example.line, source.names[number], *texts, sep="\t", file=rejected)
    if n_read != source.n_pairs or next(examples, None) is not None:
        raise UserError(f"{source.name} has changed while it was checked: check it again")


def _file_names(sources: list[SourceCheck]) -> list[tuple[str, str]]:
    """Choose a name for each side of each source: that of its file, numbered where two are alike or one is reserved."""
    names: list[tuple[str, str]] = []
    taken = {REJECTED, REPORT, VALUES}
    for source in sources:
        own = source.source
        if isinstance(own, TextFiles):
            pair = _recompressed(own.src), _recompressed(own.tgt)
        else:
            stem = Path(source.name).name.split(".")[0]
            pair = f"{stem}.{source.languages.src_lang}", f"{stem}.{source.languages.tgt_lang}"
        number = 1
        found = pair
        while not taken.isdisjoint(found) or found[0] == found[1]:
            number += 1
            found = f"{number}-{pair[0]}", f"{number}-{pair[1]}" if pair[0] != pair[1] else f"{number}-tgt-{pair[1]}"
        taken.update(found)
        names.append(found)
    return names


def _recompressed(path: Path) -> str:
    """Return the name of a file, which ends in ``.gz`` if the file is compressed by its name."""
    return f"{path.stem}.gz" if path.suffix in (".gz", ".xz", ".bz2", ".zst") else path.name
