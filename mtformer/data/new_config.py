"""A config for two text files, written where its user can edit it."""

import logging
import os
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from mtformer.config import Config, LanguagePair, dump_new_config, load_config, parse_config
from mtformer.support.errors import UserError
from mtformer.text.languages import language_code
from mtformer.text.lines import COMPRESSED, input_name

log = logging.getLogger(__name__)

_ENDINGS = re.compile(f"({'|'.join(map(re.escape, (*COMPRESSED, '.txt')))})+$")  # after the code of the language
_COMMENT = """\
# The config of `{command}`. Edit it as you like; docs/config.md has all keys.
# Without the keys valid and test of data, pairs of train are held out.
"""


@contextmanager
def config_of_files(
    src: Path,
    tgt: Path,
    languages: tuple[str | None, str | None],
    overrides: Sequence[str],
    *,
    has_started: Callable[[Config], bool],
    write: bool | None = True,
) -> Iterator[Config]:
    """Write a config into the current folder that trains on two text files, and read it; one that exists is only read.

    It is named after the run: by ``run.name`` among the overrides, or else by the files and the languages. If the block
    fails before training starts, because the files are not parallel for example, the new config is removed again.

    Args:
        src: the source text.
        tgt: its translation, line by line.
        languages: their codes; None where the name of the file ends with the code.
        overrides: settings, each ``dotted.key=value``, which are written as well.
        has_started: whether there is a run of a config.
        write: False to only read what would be written; None to not even read a config that exists.

    Yields:
        The config.

    Raises:
        UserError: a file is missing or both are one, a language is not known, the settings are wrong, or there is a
            config of that name for other text.
    """
    for path, option in ((src, "--src"), (tgt, "--tgt")):
        _require_file(path, option)
    if src == tgt:
        raise UserError(f"--src and --tgt are the same file, {src}")
    pair = _languages(src, tgt, languages)
    data = {**pair._asdict(), "train": [{"src": str(src), "tgt": str(tgt)}]}
    places = {
        ("data", "src_lang"): f"--from {pair.src_lang}",
        ("data", "tgt_lang"): f"--to {pair.tgt_lang}",
        ("data", "train", 0, "src"): f"--src {src}",
        ("data", "train", 0, "tgt"): f"--tgt {tgt}",
    }
    draft = parse_config(dump_new_config({"data": data}, ()), Path(f"{_name(src, pair)}.yaml"), overrides, places)
    path = Path(f"{draft.run.name}.yaml")
    if write is not None and path.exists():
        yield _known_config(path, draft, overrides)
    elif not write:
        yield draft
    else:
        comment = _COMMENT.format(command=f"mtformer train {options_of_files(src, tgt, languages)}")
        text = comment + dump_new_config({"data": data}, overrides)
        _write(path, text)
        try:
            yield draft
        finally:
            if not has_started(draft):
                _remove(path, text)
            if path.exists():
                log.info("the config is written to %s", path)


def _require_file(path: Path, option: str) -> None:
    if str(path) != "-" and not _exists(path):
        found = next((f": did you mean {path}{ending}?" for ending in COMPRESSED if _exists(f"{path}{ending}")), "")
        raise UserError(f"{option}: there is no file {path}{found}")


def _exists(path: str | Path) -> bool:
    return os.path.exists(os.path.expanduser(path))  # noqa: PTH110, PTH111 (never raise)


def _languages(src: Path, tgt: Path, given: tuple[str | None, str | None]) -> LanguagePair:
    """Return the languages that are given, or else those that the names of the files end with."""
    src_lang, tgt_lang = given[0] or _required_language(src, "--from"), given[1] or _required_language(tgt, "--to")
    if src_lang == tgt_lang:
        raise UserError(f"{input_name(src)} and {input_name(tgt)} are both in {src_lang}: give --to")
    return LanguagePair(src_lang, tgt_lang)


def _write(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UserError(f"cannot write the config {path}: {error.strerror}") from None


def _remove(path: Path, text: str) -> None:
    """Remove a config, unless it has been edited since ``text`` was written."""
    with suppress(OSError, ValueError):
        if path.read_text(encoding="utf-8") == text:
            path.unlink()


def _known_config(path: Path, draft: Config, overrides: Sequence[str]) -> Config:
    """Read the config of an earlier start, which may have been edited since."""
    config = load_config(path, overrides)
    [files] = draft.data.train
    if files not in config.data.train or config.data.language_pairs != draft.data.language_pairs:
        raise UserError(
            f"{path} exists, and is a config for other text: train with it (mtformer train {shlex.quote(str(path))}), "
            "or give this run, and so its config, another name (--set run.name=…)"
        )
    log.info("the config is %s", path)
    return config


def options_of_files(src: Path | None, tgt: Path | None, languages: tuple[str | None, str | None]) -> str:
    """Return the options for two text files, with ``FILE`` and ``LANG`` for missing values."""
    parts = ["--src", str(src or "FILE"), "--tgt", str(tgt or "FILE")]
    for path, option, given in zip((src, tgt), ("--from", "--to"), languages, strict=True):
        if given or path is None or language_of(path) is None:
            parts += [option, given or "LANG"]
    return shlex.join(parts)


def language_of(path: Path) -> str | None:
    """Return the code of a language that the name of a file ends with."""
    name = _ENDINGS.sub("", path.name)
    return language_code(name.rpartition(".")[2]) if "." in name else None


def _required_language(path: Path, option: str) -> str:
    code = language_of(path)
    if code is None:
        raise UserError(
            f"{input_name(path)} does not end with the code of its language: give {option}, as in {option} en"
        )
    return code


def _name(src: Path, languages: LanguagePair) -> str:
    """Return the name of a run: its source text's name without suffixes, and the languages."""
    name = _ENDINGS.sub("", "" if str(src) == "-" else src.name)
    stem, _, ending = name.rpartition(".")
    if language_code(ending) == languages.src_lang:
        name = stem
    for direction in (languages, LanguagePair(*reversed(languages))):
        name = name.removesuffix(f".{direction}")
    return f"{name}.{languages}".lstrip(". ")
