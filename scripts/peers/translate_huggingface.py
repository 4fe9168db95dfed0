"""Translate with Hugging Face transformers for bench_translate.py."""

import torch
from driver import Job, Translate, in_batches, length_limit, run
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer


def load(job: Job) -> Translate:
    """Return what translates lines."""
    torch.set_num_threads(job.threads)
    tokenizer = AutoTokenizer.from_pretrained(job.model)
    model = AutoModelForSeq2SeqLM.from_pretrained(job.model).eval()

    @torch.inference_mode()
    def translate(rows: list[list[int]]) -> list[str]:
        batch = tokenizer.pad({"input_ids": rows}, return_tensors="pt")
        found = model.generate(
            **batch,
            num_beams=job.beam_size,
            length_penalty=job.length_penalty if job.beam_size > 1 else None,
            max_new_tokens=length_limit(rows),
        )
        return tokenizer.batch_decode(found, skip_special_tokens=True)

    return lambda lines: in_batches(tokenizer(lines)["input_ids"], job.batch_tokens, translate)


run(load)
