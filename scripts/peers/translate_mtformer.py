"""Translate with mtformer for bench_translate.py: bundles with torch, models for CTranslate2 without it."""

from driver import Job, Translate, run

from mtformer.translate.translator import Translator


def load(job: Job) -> Translate:
    """Return what translates lines."""
    translator = Translator.load(job.model, raw=True, beam_size=job.beam_size, length_penalty=job.length_penalty)
    return lambda lines: [best.text for best, *_ in translator.translate(lines)]


run(load)
