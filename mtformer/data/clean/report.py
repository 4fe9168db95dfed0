"""What a checkup has found, for the terminal and as JSON."""

from collections.abc import Iterator
from typing import Any

from mtformer.data.clean.checkup import HELD_OUT, Checkup, SourceCheck
from mtformer.data.clean.filters import MEANINGS
from mtformer.data.clean.lengths import PERCENTILES, Lengths, SideLengths
from mtformer.data.clean.slips import Slip
from mtformer.support.terminal import as_text as as_table

_USES = {"train": "training", "valid": "validation", "test": "test"}
_SHOWN = 60  # characters of each side of an example


def as_text(checkup: Checkup) -> str:
    """Describe the problems of each source, with examples, and the lengths of the text."""
    paragraphs = [_describe(source) for source in checkup.sources]
    if checkup.lengths:
        paragraphs.append(_describe_lengths(checkup.lengths))
    if checkup.held_out:
        test = ", and as many to test it" if "test" in checkup.held_out else ""
        n_pairs = f"{checkup.held_out['valid']:,}"
        paragraphs.append(f"no data.valid: training holds out about {n_pairs} pairs to choose the best model{test}")
    return "\n\n".join(paragraphs)


def _describe(source: SourceCheck) -> str:
    if not source.n_pairs:
        return f"{source.name}, {source.languages}, {_USES[source.use]}: no sentence pairs"
    n_bad = source.problems.total()
    share = f" ({n_bad / source.n_pairs:.1%})" if n_bad else ""
    pairs = f"{source.n_pairs:,} pairs, {n_bad:,} with a problem{share}"
    lines = [f"{source.name}, {source.languages}, {_USES[source.use]}: {pairs}", *_alignment(source)]
    if blank := source.blank.total:
        lines.append(f"  {blank:,} lines contain no pair and are skipped")
    if source.problems:
        rows = [
            [f"  {MEANINGS[name]}", name, f"{n:,}", f"{n / source.n_pairs:.2%}"]
            for name, n in source.problems.most_common()
        ]
        lines += [as_table(["  problem", "rule", "pairs", "share"], rows, left=2), *_examples(source)]
    if leaked := source.problems[HELD_OUT]:
        lines.append(
            f"  {HELD_OUT}: {source.n_exact:,} of {leaked:,} have a sentence of the validation or test set unchanged"
        )
    return "\n".join(lines)


def _alignment(source: SourceCheck) -> Iterator[str]:
    for slip, (first, last) in zip(source.slips, source.slip_lines, strict=True):
        yield f"  lines {first:,} to {last:,} are out of alignment{_where(slip)}"


def _where(slip: Slip) -> str:
    if slip.offset is None:
        return ""
    lines = "line" if abs(slip.offset) == 1 else "lines"
    return f": the translations stand {abs(slip.offset)} {lines} {'later' if slip.offset > 0 else 'earlier'}"


def _examples(source: SourceCheck) -> Iterator[str]:
    for name, _ in source.problems.most_common():
        for example in source.examples.get(name, []):
            yield f"  {name}, line {example.line:,}: {_shortened(example.src)} | {_shortened(example.tgt)}"


def _shortened(text: str) -> str:
    """Return the beginning of a text, without characters that a terminal could take for commands."""
    shown = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _describe_lengths(lengths: Lengths) -> str:
    header = ["  tokens", *(f"{percentile:g} %" for percentile in PERCENTILES), "mean", "spelled in bytes"]
    rows = [_row("  source", lengths.src), _row("  target", lengths.tgt)]
    return (
        f"lengths of {lengths.n_pairs:,} random training pairs, with a tokenizer of {lengths.vocab_size:,} tokens\n"
        f"{as_table(header, rows)}\n"
        f"  data.max_length = {lengths.max_length} drops {lengths.cut:.2%} of the pairs"
    )


def _row(name: str, side: SideLengths) -> list[str]:
    return [name, *map(str, side.percentiles), f"{side.mean:.1f}", f"{side.spelled:.2%}"]


def as_json(checkup: Checkup) -> dict[str, Any]:
    """Return the same as values."""
    return {
        "problems": checkup.n_problems,
        "sources": [_values(source) for source in checkup.sources],
        "lengths": checkup.lengths and _length_values(checkup.lengths),
        "held_out": checkup.held_out,
    }


def _values(source: SourceCheck) -> dict[str, Any]:
    return {
        "name": source.name,
        "use": source.use,
        "direction": str(source.languages),
        "pairs": source.n_pairs,
        "blank_lines": source.blank.total,
        "problems": dict(source.problems.most_common()),
        "held_out_exactly": source.n_exact,
        "examples": {name: [one._asdict() for one in examples] for name, examples in source.examples.items()},
        "out_of_alignment": [
            {"first_line": first, "last_line": last, "offset": slip.offset}
            for slip, (first, last) in zip(source.slips, source.slip_lines, strict=True)
        ],
    }


def _length_values(lengths: Lengths) -> dict[str, Any]:
    sides = {
        name: {
            "percentiles": dict(zip(map(str, PERCENTILES), side.percentiles, strict=True)),
            "mean": side.mean,
            "spelled_in_bytes": side.spelled,
        }
        for name, side in (("src", lengths.src), ("tgt", lengths.tgt))
    }
    return lengths._asdict() | sides
