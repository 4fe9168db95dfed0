"""Translate with JoeyNMT for bench_translate.py."""

from pathlib import Path

from driver import Job, Translate, in_batches, length_limit, run, tokenize
from joeynmt.hub_interface import TranslatorHubInterface, _from_pretrained
from sentencepiece import SentencePieceProcessor
from torch import nn


def load(job: Job) -> Translate:
    """Return what translates lines."""
    tokenizer = SentencePieceProcessor(model_file=str(Path(job.model) / "tokenizer.spm"))
    model, data, settings = _from_pretrained(job.model)
    for module in model.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-5  # that of the other systems; JoeyNMT has no option for it
    translator = TranslatorHubInterface(model, data, settings)

    def translate(rows: list[list[str]]) -> list[str]:
        found = translator.translate(
            [" ".join(row) for row in rows],
            beam_size=job.beam_size,
            beam_alpha=job.length_penalty,
            max_output_length=length_limit(rows),
        )
        return [tokenizer.decode(line.split()) for line in found]

    return lambda lines: in_batches(tokenize(tokenizer, lines), job.batch_tokens, translate)


run(load)
