"""Score plain translations by the protocol of older papers: lower-cased, normalized, Moses-tokenized.

usage: python scripts/moses_bleu.py HYPOTHESES REFERENCE --lang de    (pip install sacremoses)

REFERENCE has been treated so already, such as test2016.lc.norm.tok.de of Multi30k. These scores are higher than those
of ``mtformer eval`` and compare with nothing but their like.
"""

import argparse
from pathlib import Path

from sacrebleu.metrics.bleu import BLEU
from sacremoses import MosesPunctNormalizer, MosesTokenizer


def treat(lines: list[str], lang: str) -> list[str]:
    """Lower-case, normalize and tokenize, as the reference has been."""
    normalizer, tokenizer = MosesPunctNormalizer(lang), MosesTokenizer(lang)
    return [tokenizer.tokenize(normalizer.normalize(line.lower()), return_str=True) for line in lines]


def main() -> None:
    """Print the score with its signature."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hypotheses", type=Path)
    parser.add_argument("reference", type=Path)
    parser.add_argument("--lang", required=True, help="the target language")
    arguments = parser.parse_args()
    hypotheses = treat(arguments.hypotheses.read_text(encoding="utf-8").splitlines(), arguments.lang)
    reference = arguments.reference.read_text(encoding="utf-8").splitlines()
    bleu = BLEU(tokenize="none", lowercase=True, force=True)
    print(f"{bleu.corpus_score(hypotheses, [reference]).score:.2f}  {bleu.get_signature()}")


if __name__ == "__main__":
    main()
