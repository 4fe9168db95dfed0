"""Run a job: in this process, or in several."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from mtformer.text.lines import is_regular_output, open_output
from mtformer.translate.jobs.job import Job, Stream, partial_file, translate_to

if TYPE_CHECKING:
    from mtformer.translate.translator import Translator


def run(job: Job, load: Callable[[], "Translator"]) -> None:
    """Translate line by line, or paragraph by paragraph; under torchrun, a share of them.

    Args:
        job: what is translated.
        load: makes the translator. It is called once the output is open: a wrong path must not cost the work.

    Raises:
        UserError: the options contradict each other, the input cannot be read, or an unfinished output cannot be
            continued.
        MtformerError: the output cannot be written, or the model predicts NaN.
    """
    job.check()
    if job.n_processes > 1:
        from mtformer.translate.jobs.ranks import run_on_ranks

        run_on_ranks(job, load)
    elif is_regular_output(job.output):
        file = partial_file(job)
        with file.opened(resume=job.resume):
            translate_to(file, job, load)
        file.finish()
    else:
        with open_output(job.output) as stream:
            translate_to(Stream(stream), job, load)
