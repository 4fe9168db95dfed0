"""Translate with mtformer for bench_translate.py; ``settings`` has the options of the engine."""

from driver import Job, Translate, run

from mtformer.translator import Translator


def load(job: Job) -> Translate:
    """Return what translates lines."""
    translator = Translator.load(
        job.model, raw=True, beam_size=job.beam_size, length_penalty=job.length_penalty, **job.settings
    )
    return lambda lines: [best.text for best, *_ in translator.translate(lines)]


run(load)
