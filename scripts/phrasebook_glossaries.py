"""Write glossaries of the phrasebook's nouns, English to German, to measure models with soft terms.

- seen.tsv: two thirds of the nouns, to train with (data.terms); held_out.tsv: the others;
- other_seen.tsv, other_held_out.tsv: the same nouns, singular, each with the translation of another one;
- synonyms_seen.tsv, synonyms_held_out.tsv: some of them with words that are not in the phrasebook.

Other translations and synonyms have the gender of the usual word.
"""

import argparse
import random
from functools import partial
from pathlib import Path

from program import run_program

from mtformer.phrasebook.lexicon import LEXICON, Noun
from mtformer.support.files import write_atomically

SYNONYMS = dict(
    pair.split(":")
    for pair in (
        "dog:Köter cat:Mieze house:Gebäude car:Wagen doctor:Doktor friend:Kumpel boy:Bub girl:Mädel "
        "woman:Dame man:Herr child:Kleinkind teacher:Pädagoge nurse:Pflegerin horse:Ross bread:Brötchen "
        "street:Gasse mountain:Hügel bicycle:Velo television:Bildschirm phone:Telefon picture:Gemälde "
        "money:Bargeld shop:Kaufhaus chair:Sessel cupboard:Kasten jacket:Weste mother:Mama father:Papa "
        "grandmother:Oma grandfather:Opa bill:Quittung table:Esstisch apartment:Bude carrot:Möhre "
        "orange:Apfelsine cinema:Lichtspielhaus film:Spielfilm letter:Schriftstück ticket:Eintrittskarte "
        "gift:Präsent lake:Teich pig:Ferkel photo:Lichtbild bottle:Pulle engineer:Techniker neighbor:Anwohner"
    ).split()
)
Terms = dict[str, str]


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where to write")
    folder = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    generator = random.Random(1)
    for name, nouns in split().items():
        kinds = {
            name: {src: tgt for noun in nouns for src, tgt in usual(noun).items()},
            f"other_{name}": {noun.word: other(noun, generator) for noun in nouns if not noun.number},
            f"synonyms_{name}": {noun.word: SYNONYMS[noun.word] for noun in nouns if noun.word in SYNONYMS},
        }
        for kind, terms in kinds.items():
            text = "".join(f"{src}\t{tgt}\n" for src, tgt in terms.items())
            write_atomically(folder / f"{kind}.tsv", partial(Path.write_text, data=text, encoding="utf-8"))
            print(f"{kind}.tsv: {len(terms)} terms")


def split() -> dict[str, list[Noun]]:
    """Return the nouns that a model may see annotated, and every third, which it may not; one sense of each word."""
    nouns: dict[str, Noun] = {}
    for noun in LEXICON.nouns.values():
        nouns.setdefault(noun.word, noun)
    return {
        "seen": [noun for i, noun in enumerate(nouns.values(), 1) if i % 3],
        "held_out": [noun for i, noun in enumerate(nouns.values(), 1) if not i % 3],
    }


def usual(noun: Noun) -> Terms:
    """Return the nominative of a noun in both numbers, where there are two that differ in English."""
    plural = {noun.english_plural: noun.german_plural} if noun.english_plural and noun.german_plural else {}
    return plural | {noun.word: noun.german}


def other(noun: Noun, generator: random.Random) -> str:
    """Return the translation of another noun of the same gender."""
    nouns = LEXICON.nouns.values()
    return generator.choice(
        [one.german for one in nouns if one.gender == noun.gender and not one.number and one.german != noun.german]
    )


if __name__ == "__main__":
    run_program(main)
