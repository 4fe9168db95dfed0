"""Measure how well tags are placed, on sentences of the phrasebook, whose words' translations are known.

Each noun, verb, adjective, name, time, number and pronoun that a sentence of the split ``test`` and its reference both
express once gets a tag in turn. The reference is aligned and the tag put into it. It is right if it is around exactly
the known translation. A model of the phrasebook, from or into English, is needed.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from phrasebook_measures import concepts
from program import run_program

from mtformer.bundle.format import load_bundle
from mtformer.phrasebook.splits import LANGUAGES, held_out
from mtformer.runs.finding import find_model
from mtformer.support.errors import UserError
from mtformer.translate.markup.line import take_out
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator


def tagged(text: str, span: tuple[int, int]) -> str:
    """Put a tag around a span of a text."""
    start, end = span
    return f"{text[:start]}<b>{text[start:end]}</b>{text[end:]}"


def cases(src_lang: str, tgt_lang: str, n_sentences: int) -> Iterator[tuple[str, str, str]]:
    """Yield sources with a tag, their references without it, and their references with it."""
    for saying in held_out("test")[:n_sentences]:
        src, tgt = saying.text(src_lang), saying.text(tgt_lang)
        for concept in concepts(saying, src_lang, tgt_lang):
            yield tagged(src, concept.src), tgt, tagged(tgt, concept.tgt)


def placed(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> list[str]:
    """Put the tags of the sources into their references."""
    lines = [take_out(source, translator.src_lang) for source in sources]
    assert all(lines)
    texts = ["".join(line.texts) for line in lines if line]
    alignments = translator.align(texts, references)
    return [
        line.put_back([Translation(reference, 0.0, 0.0)], [alignment.word_weights()]).text
        for line, reference, alignment in zip(lines, references, alignments, strict=True)
        if line
    ]


def main() -> None:
    """Print how many tags are right, and some that are not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("-n", type=int, default=300, help="how many sentences (default: 300)")
    parser.add_argument("--wrong", type=int, default=0, help="how many wrong ones to show (default: none)")
    args = parser.parse_args()
    bundle = load_bundle(find_model(args.run))
    languages = bundle.header.src_lang, bundle.header.tgt_lang
    if not set(languages) <= set(LANGUAGES):
        raise UserError("use a model of the phrasebook")
    sources, references, expected = zip(*cases(*languages, args.n), strict=True)
    found = placed(Translator.load(bundle, "cpu"), sources, references)
    right = [text == other for text, other in zip(found, expected, strict=True)]
    print(
        f"{sum(right)} of {len(right)} tags are around exactly the right words ({100 * sum(right) / len(right):.1f} %)"
    )
    wrong = [
        case for case, is_right in zip(zip(sources, found, expected, strict=True), right, strict=True) if not is_right
    ]
    for src, text, other in wrong[: args.wrong]:
        print(f"\n{src}\n{text}\n{other}  (expected)")


if __name__ == "__main__":
    run_program(main)
