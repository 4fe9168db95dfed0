"""The report of a checkup, and a copy of the text without bad pairs."""

import json
import logging
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, count, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import yaml

from mtformer.config import FILTERS, TextFiles
from mtformer.config.sources import SourceSection
from mtformer.data.clean.checkup import Checkup
from mtformer.data.clean.filters import Filters, by_reason
from mtformer.data.clean.learned import MISALIGNED
from mtformer.data.clean.line_lengths import UNRELATED
from mtformer.data.clean.repair import Change
from mtformer.data.clean.source_check import FOREIGN, HELD_OUT, SourceCheck
from mtformer.data.clean.token_lengths import PERCENTILES, Lengths, SideLengths
from mtformer.data.sources.parallel import require_same
from mtformer.data.sources.text_files import only_in, unequal_counts
from mtformer.support.errors import UserError
from mtformer.support.files import write_new_folder
from mtformer.support.terminal import as_text as as_table
from mtformer.support.terminal import counted, shortened
from mtformer.text.lines import COMPRESSED, open_output, read_lines, without_escapes
from mtformer.text.pairs import SentencePair

log = logging.getLogger(__name__)

_USES = {"train": "training", "valid": "validation", "test": "test"}
_SHOWN = 60  # characters of each side of an example
_KEPT = set(SourceSection.model_fields)  # what is said of any source
REJECTED, REALIGNED, REPAIRED = "rejected.tsv", "realigned.tsv", "repaired.tsv"
REPORT, VALUES = "report.txt", "report.json"
_AT_ONCE = 10_000  # pairs that are judged at once
_UNKNOWN = "the text does not show where lines are missing, and all pairs from there on are out of alignment"


def as_text(checkup: Checkup) -> str:
    """Describe the problems of each source, with examples, and the lengths of the text."""
    paragraphs = [_describe(source) for source in checkup.sources]
    if checkup.lengths:
        paragraphs.append(_describe_lengths(checkup.lengths))
    if n_held_out := checkup.held_out.get("valid"):
        test = ", and about as many to test it" if "test" in checkup.held_out else ""
        n_pairs = counted(n_held_out, "pair")
        paragraphs.append(f"no data.valid: training holds out about {n_pairs} to choose the best model{test}")
    elif checkup.held_out:
        paragraphs.append("no data.valid: training needs sources of it, as there are too few pairs to hold any out")
    return "\n\n".join(paragraphs)


def _describe(source: SourceCheck) -> str:
    n_pairs = source.n_pairs + source.n_lost
    if not n_pairs:
        return f"{source.name}, {source.languages}, {_USES[source.use]}: no sentence pairs"
    n_bad = source.problems.total()
    share = f" ({100 * n_bad / n_pairs:.2f} %)" if n_bad else ""
    once = " once realigned" if source.slips and source.use == "train" else ""
    pairs = f"{counted(n_pairs, 'pair')}, {n_bad:,} with a problem{share}{once}"
    lines = [f"{source.name}, {source.languages}, {_USES[source.use]}: {pairs}", *_blank(source), *_alignment(source)]
    lines += [f"  {line}" for line in by_reason(source.filters.inactive)]
    if source.problems:
        rows = [
            [f"  {FILTERS[name]}", name, f"{n:,}", f"{100 * n / n_pairs:.2f} %"]
            for name, n in source.problems.most_common()
        ]
        lines += [as_table(["  problem", "rule", "pairs", "share"], rows, left=2), *_examples(source)]
    if source.is_foreign:
        lines.append("  most pairs are in other languages than expected: are the source and the target swapped?")
    if leaked := source.problems[HELD_OUT]:
        lines.append(
            f"  {HELD_OUT}: {source.n_exact:,} of {leaked:,} have a sentence of the validation or test set unchanged"
        )
    return "\n".join(lines)


def _blank(source: SourceCheck) -> Iterator[str]:
    """Describe lines that contain no pair, such as those of a file that is longer than the other."""
    if unequal := _unequal(source):
        yield f"  {unequal}"
        if not source.is_surely_aligned:
            yield f"  {_UNKNOWN}"
    else:
        yield from (f"  {reason}: {counted(n, 'line')}" for reason, n in source.blank.counts.items())


def _unequal(source: SourceCheck) -> str:
    """Say how many lines each of two files has; an empty string if they have as many."""
    n_lines = source.n_pairs + source.n_lost
    for reason, n in source.blank.counts.items():
        match source.part.files:
            case src, tgt if reason == only_in(src):
                return unequal_counts(src, tgt, n_lines, n_lines - n)
            case src, tgt if reason == only_in(tgt):
                return unequal_counts(src, tgt, n_lines - n, n_lines)
    return ""


def _alignment(source: SourceCheck) -> Iterator[str]:
    if source.has_no_translations:
        yield f"  {UNRELATED}"
    for slip in source.slips:
        yield f"  {slip}; --fix {slip.remedy}" if source.use == "train" else f"  {slip}"


def _examples(source: SourceCheck) -> Iterator[str]:
    for name, _ in source.problems.most_common():
        for example in source.examples.get(name, []):
            src, tgt = shortened(example.src, _SHOWN), shortened(example.tgt, _SHOWN)
            yield f"  {name}, line {example.line:,}: {src} | {tgt}"


def _describe_lengths(lengths: Lengths) -> str:
    header = ["  tokens", *(f"{percentile} %" for percentile in PERCENTILES), "mean", "spelled in bytes"]
    rows = [_row("  source", lengths.src), _row("  target", lengths.tgt)]
    sample = counted(lengths.n_pairs, "random training pair")
    return (
        f"lengths of {sample}, with a tokenizer of {lengths.vocab_size:,} tokens\n"
        f"{as_table(header, rows)}\n"
        f"  data.max_length = {lengths.max_length} drops {100 * lengths.cut:.2f} % of the pairs"
    )


def _row(name: str, side: SideLengths) -> list[str]:
    return [name, *map(str, side.percentiles.values()), f"{side.mean:.1f}", f"{100 * side.spelled_in_bytes:.2f} %"]


def as_json(checkup: Checkup) -> dict[str, Any]:
    """Return the report as values for JSON."""
    lengths = checkup.lengths
    return {
        "problems": checkup.n_problems,
        "sources": [_values(source) for source in checkup.sources],
        "lengths": lengths and lengths._asdict() | {"src": lengths.src._asdict(), "tgt": lengths.tgt._asdict()},
        "held_out": checkup.held_out,
    }


def _values(source: SourceCheck) -> dict[str, Any]:
    return {
        "name": source.name,
        "use": source.use,
        "direction": str(source.languages),
        "pairs": source.n_pairs + source.n_lost,
        "blank_lines": source.blank.total,
        "problems": dict(source.problems.most_common()),
        "inactive_rules": source.filters.inactive,
        "held_out_exactly": source.n_exact,
        "examples": {name: [example._asdict() for example in examples] for name, examples in source.examples.items()},
        "out_of_alignment": [slip._asdict() for slip in source.slips],
    }


def write_clean(checkup: Checkup, folder: Path) -> list[TextFiles]:
    """Write the good pairs of each training source to two files, compressed as it is, and the others to a table.

    Passages out of alignment are realigned, and pairs are repaired where that makes them good. ``realigned.tsv`` has
    the source, the lines of both sides and their texts for each pair that was joined; ``repaired.tsv`` has the source,
    the line, the side, the rule that found the fault, and the text before and after. The table ``rejected.tsv`` has
    the source, the line, the rule, the source text and the target of the others; ``report.txt`` and ``report.json``
    have what the checkup reports. The folder appears when it is complete.

    Returns:
        the two files of each source with good pairs, as a source with the same weight, tag and directions.

    Raises:
        UserError: there is something at ``folder``, or it cannot be made; a source cannot be read a second time, or
            it has changed; it lacks lines, and where cannot be found; no pair is good, which ``folder`` then shows.
        MtformerError: it cannot be written.
    """
    sources = [source for source in checkup.sources if source.use == "train"]
    for source in sources:
        if (unequal := _unequal(source)) and not source.is_surely_aligned:
            raise UserError(f"--fix: {unequal}; {_UNKNOWN}: find them by hand")
    names = _file_names(sources)
    folder = write_new_folder(folder, partial(_write, checkup, sources, names), "--fix")
    kept = [source.source.model_dump(include=_KEPT, exclude_defaults=True) for source in sources]
    clean = [
        TextFiles(src=folder / src, tgt=folder / tgt, **values)
        for (src, tgt), values in zip(names, kept, strict=True)
        if any(read_lines(folder / src))
    ]
    if not clean:
        raise UserError(f"{folder} has no clean text: each pair is in {folder / REJECTED}, with the reason")
    return clean


def as_config(source: TextFiles, folder: Path) -> str:
    """Write a source in the notation of a config in ``folder``."""
    values = {"src": _path_from(folder, source.src), "tgt": _path_from(folder, source.tgt)}
    values |= source.model_dump(mode="json", include=_KEPT, exclude_defaults=True)
    return yaml.safe_dump(values, default_flow_style=True, sort_keys=False, allow_unicode=True, width=10_000).strip()


def _path_from(folder: Path, path: Path) -> str:
    try:
        return os.path.relpath(path.resolve(), folder)
    except ValueError:  # on another drive of Windows
        return str(path.resolve())


def _write(checkup: Checkup, sources: list[SourceCheck], names: list[tuple[str, str]], folder: Path) -> None:
    with ExitStack() as stack:
        rejected, moved, changed = tables = [
            stack.enter_context(open_output(folder / name)) for name in (REJECTED, REALIGNED, REPAIRED)
        ]
        print("source", "line", "rule", "src", "tgt", sep="\t", file=rejected)
        print("source", "src line", "tgt line", "src", "tgt", sep="\t", file=moved)
        print("source", "line", "side", "rule", "before", "after", sep="\t", file=changed)
        for source, (src, tgt) in zip(sources, names, strict=True):
            with ExitStack() as of_source:
                sides = [of_source.enter_context(open_output(folder / name)) for name in (src, tgt)]
                counts = _divide(source, sides, *tables)
                log.info(
                    "%s: %s kept, %s of them realigned and %s repaired; %s rejected",
                    *(source.name, counted(counts["kept"], "pair")),
                    *(f"{counts[what]:,}" for what in ("realigned", "repaired", "rejected")),
                )
    (folder / REPORT).write_text(as_text(checkup) + "\n", encoding="utf-8")
    (folder / VALUES).write_text(json.dumps(as_json(checkup), ensure_ascii=False, indent=1), encoding="utf-8")


def _divide(
    source: SourceCheck, sides: list[IO[str]], rejected: IO[str], moved: IO[str], changed: IO[str]
) -> Counter[str]:
    """Write each pair of a source to the good or the rejected ones, and count them."""
    joined, rules, counts = source.realigned.joined(), iter(source.rules.tolist()), Counter[str]()
    misaligned = source.filters.names.index(MISALIGNED)
    while chunk := list(islice(joined, _AT_ONCE)):
        judged = [
            (src, tgt, misaligned) if tgt is None else (src._replace(tgt=tgt.tgt), tgt, next(rules, -1))
            for src, tgt in chunk
        ]
        bad = {n: SentencePair(*example[:2]) for n, (example, tgt, rule) in enumerate(judged) if tgt and rule >= 0}
        repaired = _repaired(source, bad)
        for number, (example, tgt, rule) in enumerate(judged):
            as_it_is = _Outcome(SentencePair(*example[:2]), [], source.filters.names[rule] if rule >= 0 else None)
            pair, changes, dropped_by = repaired.get(number, as_it_is)
            if dropped_by:
                texts = _cells(example.src, example.tgt)
                print(source.name, example.line, dropped_by, *texts, sep="\t", file=rejected)
                counts["rejected"] += 1
                continue
            counts.update(kept=1, repaired=bool(changes))
            for file, line in zip(sides, pair, strict=True):
                print(line, file=file)
            for change in changes:
                texts = _cells(change.before, change.after)
                print(source.name, example.line, change.side, change.kind, *texts, sep="\t", file=changed)
            if tgt and (tgt.src, tgt.line) != (example.src, example.line):
                print(source.name, example.line, tgt.line, *_cells(*pair), sep="\t", file=moved)
                counts["realigned"] += 1
    require_same(source.versions)
    return counts


class _Outcome(NamedTuple):
    """A pair after repairs, the changes, and the name of the rule that drops it; None if it is kept."""

    pair: SentencePair
    changes: list[Change]
    dropped_by: str | None


def _repaired(source: SourceCheck, pairs: dict[int, SentencePair]) -> dict[int, _Outcome]:
    """Return the outcome for each pair that repairs change."""
    found = {number: source.filters.repaired(pair) for number, pair in pairs.items()}
    if not source.is_foreign:  # pairs too short to tell their languages would stay as they are
        found |= _exchanged(source.filters, pairs, [pair for pair, _ in found.values()])
    found = {number: (pair, changes) for number, (pair, changes) in found.items() if changes}
    rules = source.filters.rules([pair for pair, _ in found.values()])
    return {number: _Outcome(*one, rule) for (number, one), rule in zip(found.items(), rules, strict=True)}


def _exchanged(
    filters: Filters, pairs: dict[int, SentencePair], repaired: list[SentencePair]
) -> dict[int, tuple[SentencePair, list[Change]]]:
    """Exchange the sides of pairs in other languages than expected, and return those that this makes good."""
    exchanged = {}
    for (number, pair), rule in zip(pairs.items(), filters.pair_rules(repaired), strict=True):
        if rule in FOREIGN:
            good, changes = filters.repaired(SentencePair(pair.tgt, pair.src))
            exchange = [Change("src", rule, *pair), Change("tgt", rule, *reversed(pair))]
            exchanged[number] = good, exchange + changes
    rules = filters.pair_rules([pair for pair, _ in exchanged.values()])
    return {number: one for (number, one), rule in zip(exchanged.items(), rules, strict=True) if not rule}


def _cells(*texts: str) -> list[str]:
    return [without_escapes(text).replace("\t", " ") for text in texts]


def _file_names(sources: list[SourceCheck]) -> list[tuple[str, str]]:
    """Choose a name for each side of each source: its file's, numbered where two are alike or one is reserved."""
    taken = {REJECTED, REALIGNED, REPAIRED, REPORT, VALUES}
    names = []
    for source in sources:
        own = source.source
        if isinstance(own, TextFiles):
            src, tgt = _recompressed(own.src), _recompressed(own.tgt)
        else:
            stem = Path(source.name).name.split(".")[0]
            src, tgt = (f"{stem}.{language}" for language in source.languages)
        names.append((_free(src, taken), _free(tgt, taken)))
    return names


def _free(name: str, taken: set[str]) -> str:
    """Return a name that is not among ``taken``, and add it; on macOS and Windows, case does not count."""
    free = next(one for one in chain([name], (f"{n}-{name}" for n in count(2))) if one.casefold() not in taken)
    taken.add(free.casefold())
    return free


def _recompressed(path: Path) -> str:
    """Return the name of a file, ending in ``.gz`` if its original was compressed."""
    return f"{path.stem}.gz" if path.suffix in COMPRESSED else path.name
