"""Jobs that resume: the input is read again from its start, and what the unfinished output contains is skipped."""

import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from mtformer.support.errors import UserError
from mtformer.support.progress import Progress
from mtformer.translate.jobs.documents import Paragraph
from mtformer.translate.jobs.partial import Done, PartialFile
from mtformer.translate.jobs.windows import windows

log = logging.getLogger(__name__)

Work = Callable[[Sequence[Paragraph], Counter[str]], str]


def fill(
    output: PartialFile,
    units: Iterator[Paragraph],
    load: Callable[[], Work],
    *,
    resume: bool,
    doing: str,
    unit: str,
    left_out_of: str,
) -> None:
    """Write pairs made of ``units``, one on each line, a window at a time, and log how many there are.

    Args:
        output: the file to write.
        units: all that is to be done, what ``output`` already contains included.
        load: makes the function that returns what to write for a window, and that counts in its second argument what it
            leaves out. It is called once the output is open: a wrong path must not cost the work.
        resume: whether to continue an unfinished output.
        doing: what the progress bar calls the work.
        unit: what it counts.
        left_out_of: what the function leaves some out of, as in "translations".

    Raises:
        UserError: the input cannot be read, or the unfinished output cannot be continued.
        MtformerError: the output cannot be written.
    """
    with output.opened(resume=resume):
        source = windows(units)
        digest = skip_done(output.done, source)
        left_out, n_before = Counter(output.done.flags), output.done.n_lines
        work = load()
        with Progress(doing, initial=output.done.n_units, unit=unit) as progress:
            for window in source:
                add_to(digest, window)
                output.write(work(window, left_out), len(window), digest.hexdigest(), dict(left_out))
                progress.advance(len(window))
    output.finish()
    before = f", {n_before:,} of them before it was resumed" * bool(n_before)
    reasons = ", ".join(f"{reason} ({n:,})" for reason, n in left_out.most_common() if n)
    left = f"; {left_out_of} left out: {reasons}" * bool(reasons)
    log.log(
        logging.WARNING if reasons else logging.INFO,
        "%s written to %s%s%s",
        *("1 pair" if output.done.n_lines == 1 else f"{output.done.n_lines:,} pairs", output.path, before, left),
    )


def skip_done(
    done: Done,
    source: Iterator[list[Paragraph]],
    on_window: Callable[[list[Paragraph]], object] = lambda window: None,
) -> "hashlib._Hash":
    """Skip the windows that an unfinished output contains, and return the hash of what they contain.

    Raises:
        UserError: they have changed.
    """
    digest, n_units = hashlib.sha256(), 0
    while n_units < done.n_units and (window := next(source, [])):
        n_units += len(window)
        on_window(window)
        add_to(digest, window)
    if done.n_units and (n_units, digest.hexdigest()) != (done.n_units, done.digest):
        raise UserError(
            f"--resume: the first {done.n_units:,} lines or paragraphs of the input have changed since the unfinished "
            "output was written; delete it to start from scratch"
        )
    return digest


def add_to(digest: "hashlib._Hash", window: Sequence[Paragraph]) -> None:
    """Add the contents of a window to a hash."""
    for unit in window:
        digest.update(f"{unit.number} {unit.marker}{unit.text}\n".encode(errors="surrogatepass"))
