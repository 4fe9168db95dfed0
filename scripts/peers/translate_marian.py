"""Translate with Marian for bench_translate.py."""

from pathlib import Path

from driver import Job, Translate, run
from pymarian import Translator


def load(job: Job) -> Translate:
    """Return what translates lines, into tokens with spaces between them."""
    folder = Path(job.model)
    options = {
        "models": folder / "model.npz",
        "vocabs": f"{folder / 'tokenizer.spm'} {folder / 'tokenizer.spm'}",
        "beam-size": job.beam_size,
        "normalize": job.length_penalty,
        "max-length-factor": job.length_factor,
        "max-length": 1_000,
        "mini-batch": 32,  # as fast as larger batches
        "maxi-batch": 100,
        "maxi-batch-sort": "src",
        "cpu-threads": job.threads,
        "workspace": 512,
        "no-spm-decode": "",  # so that the tokens of its translations can be counted
        "quiet": "",
        "quiet-translation": "",
    }
    return Translator(" ".join(f"--{name} {value}" for name, value in options.items())).translate


run(load)
