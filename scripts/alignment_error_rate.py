"""Measure word alignments against those of the phrasebook, which are known.

The alignment error rate (Och and Ney 2003) of a phrasebook model from English is 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)
for the links A that the model gives to the references of the split ``test``. S, the sure links, join the words of a
noun, verb, adjective, name, time, number or pronoun that both sentences express once, if it is one word in one of them.
P, the possible links, are S, those of the other such concepts, and all links between two words that belong to none,
such as articles. So a link from a noun to an article counts as wrong.

The chosen heads are those that training stored in the model.
"""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path

from phrasebook_measures import concepts
from program import run_program

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.bundle.header import AlignmentHead, all_heads
from mtformer.phrasebook.splits import Saying, held_out
from mtformer.runs.finding import find_model
from mtformer.support.errors import UserError
from mtformer.text.words import Span, word_spans
from mtformer.translate.translator import Translator

Links = set[tuple[int, int]]


def known_links(saying: Saying, tgt_lang: str) -> tuple[Links, Links]:
    """Return the sure and the possible links of a sentence's words."""
    src, tgt = saying.en, saying.text(tgt_lang)
    src_words, tgt_words = word_spans(src), word_spans(tgt)
    sure: Links = set()
    possible: Links = set()
    for concept in concepts(saying, "en", tgt_lang):
        in_src, in_tgt = _overlapping(src_words, concept.src), _overlapping(tgt_words, concept.tgt)
        links = set(product(in_src, in_tgt))
        possible |= links
        sure |= links if min(len(in_src), len(in_tgt)) == 1 else set()
    taken_src, taken_tgt = {s for s, _ in possible}, {t for _, t in possible}
    for (s, src_word), (t, tgt_word) in product(enumerate(src_words), enumerate(tgt_words)):
        is_mark = not _is_word(tgt[slice(*tgt_word)]) and not _is_word(src[src_word[1] - 1])  # a full stop, attached
        if is_mark or (s not in taken_src and t not in taken_tgt):
            possible.add((s, t))
    return sure, possible


def _overlapping(words: Sequence[Span], span: Span) -> list[int]:
    return [place for place, (start, end) in enumerate(words) if start < span[1] and end > span[0]]


def _is_word(text: str) -> bool:
    return any(character.isalnum() for character in text)


def error_rate(found: Sequence[Links], known: Sequence[tuple[Links, Links]]) -> tuple[float, float, float]:
    """Return the alignment error rate, precision |A ∩ P| / |A| and recall |A ∩ S| / |S|."""
    n_links = sum(map(len, found))
    n_sure = sum(len(sure) for sure, _ in known)
    sure_found = sum(len(links & sure) for links, (sure, _) in zip(found, known, strict=True))
    possible_found = sum(len(links & possible) for links, (_, possible) in zip(found, known, strict=True))
    return 1 - (sure_found + possible_found) / (n_links + n_sure), possible_found / n_links, sure_found / n_sure


def measure(bundle: Bundle, heads: Sequence[AlignmentHead]) -> tuple[float, float, float]:
    """Return error rate, precision and recall of the mean of ``heads``, of one layer, on the split ``test``."""
    tgt_lang, sayings = bundle.header.tgt_lang, held_out("test")
    header = bundle.header.model_copy(update={"alignment_heads": tuple(heads)})
    translator = Translator.load(replace(bundle, header=header))
    alignments = translator.align([saying.en for saying in sayings], [saying.text(tgt_lang) for saying in sayings])
    found = [set(alignment.word_links()) for alignment in alignments]
    return error_rate(found, [known_links(saying, tgt_lang) for saying in sayings])


def main() -> None:
    """Print the error rates of chosen heads, of others to compare with, and of the best head in hindsight."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    bundle = load_bundle(find_model(parser.parse_args().run))
    tgt_lang = bundle.header.tgt_lang
    if bundle.header.src_lang != "en" or tgt_lang not in ("de", "zh"):
        raise UserError("use a model of the phrasebook from English to German or Chinese")
    heads = all_heads(bundle.header.architecture)
    layers = sorted({head.layer for head in heads})
    candidates = [head.model_copy(update={"reading": reading}) for head in heads for reading in (False, True)]
    rows: dict[str, Sequence[AlignmentHead]] = {"chosen": bundle.header.alignment_group}
    for layer in layers:
        rows[f"mean of layer {layer + 1}"] = [head for head in heads if head.layer == layer]
    rows["best head in hindsight"] = [min(candidates, key=lambda head: measure(bundle, [head])[0])]
    print(f"{'heads':<24} {'AER':>6} {'precision':>10} {'recall':>7}")
    for name, chosen in rows.items():
        aer, precision, recall = measure(bundle, chosen)
        print(f"{name:<24} {aer:>6.1%} {precision:>10.1%} {recall:>7.1%}  {_named(chosen)}")


def _named(heads: Sequence[AlignmentHead]) -> str:
    """Name heads as ``explain`` counts them, from 1; ``+`` marks the step that reads."""
    return " ".join(f"{head.layer + 1}.{head.head + 1}{'+' * head.reading}" for head in heads)


if __name__ == "__main__":
    run_program(main)
