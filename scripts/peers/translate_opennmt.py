"""Translate with OpenNMT-py for bench_translate.py."""

from argparse import Namespace
from pathlib import Path

import torch
from driver import Job, Translate, run, tokenize
from onmt.inference_engine import InferenceEnginePY
from onmt.opts import translate_opts
from onmt.utils.parse import ArgumentParser
from sentencepiece import SentencePieceProcessor


def load(job: Job) -> Translate:
    """Return what translates lines."""
    torch.serialization.add_safe_globals([Namespace])  # its checkpoints have one, which a recent torch refuses
    folder = Path(job.model)
    tokenizer = SentencePieceProcessor(model_file=str(folder / "tokenizer.spm"))
    options = {
        "model": folder / "model.pt",
        "src": "/dev/null",
        "output": "/dev/null",
        "beam_size": job.beam_size,
        "length_penalty": "wu",
        "alpha": job.length_penalty,
        "batch_type": "tokens",
        "batch_size": job.batch_tokens,
        "max_length_ratio": 2,
        "log_file": "/dev/null",
    }
    parser = ArgumentParser()
    translate_opts(parser)
    opt = parser.parse_args([word for name, value in options.items() for word in (f"--{name}", str(value))])
    ArgumentParser.validate_translate_opts(opt)
    ArgumentParser._get_all_transform_translate(opt)
    ArgumentParser._validate_transforms_opts(opt)
    ArgumentParser.validate_translate_opts_dynamic(opt)
    engine = InferenceEnginePY(opt)

    def translate(lines: list[str]) -> list[str]:
        _, found = engine.infer_list([" ".join([*row, "</s>"]) for row in tokenize(tokenizer, lines)])
        return [tokenizer.decode(best.split()) for best, *_ in found]

    return translate


run(load)
