"""Write a small parallel text, English and German, for the demo: a grammar of a few rules and some sixty words.

It holds what makes German harder than word for word: three genders, two cases, adjective endings, and the verb that
stays in second place when the sentence begins with a time. Usage: demo_text.py FOLDER
"""

import random
import sys
from pathlib import Path
from typing import NamedTuple


class Noun(NamedTuple):
    """A noun in both languages, with the gender of the German one."""

    english: str
    german: str
    gender: str


PEOPLE = [
    Noun("man", "Mann", "m"),
    Noun("woman", "Frau", "f"),
    Noun("child", "Kind", "n"),
    Noun("teacher", "Lehrer", "m"),
    Noun("doctor", "Ärztin", "f"),
    Noun("girl", "Mädchen", "n"),
    Noun("king", "König", "m"),
    Noun("queen", "Königin", "f"),
]
THINGS = [
    Noun("house", "Haus", "n"),
    Noun("car", "Auto", "n"),
    Noun("book", "Buch", "n"),
    Noun("dog", "Hund", "m"),
    Noun("table", "Tisch", "m"),
    Noun("tree", "Baum", "m"),
    Noun("lamp", "Lampe", "f"),
    Noun("cat", "Katze", "f"),
    Noun("flower", "Blume", "f"),
    Noun("picture", "Bild", "n"),
]
ADJECTIVES = {
    "old": "alt",
    "young": "jung",
    "small": "klein",
    "big": "groß",
    "red": "rot",
    "green": "grün",
    "beautiful": "schön",
    "new": "neu",
}
VERBS = {
    "present": {"sees": "sieht", "buys": "kauft", "looks for": "sucht", "loves": "liebt", "finds": "findet"},
    "past": {"saw": "sah", "bought": "kaufte", "looked for": "suchte", "loved": "liebte", "found": "fand"},
}
TIMES = {
    "present": {"Today": "Heute", "Now": "Jetzt", "Every day": "Jeden Tag"},
    "past": {"Yesterday": "Gestern", "Last week": "Letzte Woche", "A year ago": "Vor einem Jahr"},
}
PLACES = {
    "in the garden": "im Garten",
    "behind the station": "hinter dem Bahnhof",
    "in the city": "in der Stadt",
    "near the river": "in der Nähe des Flusses",
}
DEFINITE = {"m": "der", "f": "die", "n": "das"}  # nominative; the adjective ends in -e
INDEFINITE = {"m": ("einen", "en"), "f": ("eine", "e"), "n": ("ein", "es")}  # accusative, with the adjective's ending


def sentence(rng: random.Random) -> tuple[str, str]:
    """Draw a sentence in both languages."""
    tense = rng.choice(list(VERBS))
    subject, thing = rng.choice(PEOPLE), rng.choice(THINGS)
    (subject_en, subject_de), (thing_en, thing_de) = rng.sample(list(ADJECTIVES.items()), 2)
    verb_en, verb_de = rng.choice(list(VERBS[tense].items()))
    article, ending = INDEFINITE[thing.gender]
    a = "an" if thing_en[0] in "aeiou" else "a"
    who_en, who_de = f"the {subject_en} {subject.english}", f"{DEFINITE[subject.gender]} {subject_de}e {subject.german}"
    what_en, what_de = f"{a} {thing_en} {thing.english}", f"{article} {thing_de}{ending} {thing.german}"
    if rng.random() < 0.5:
        place_en, place_de = rng.choice(list(PLACES.items()))
        what_en, what_de = f"{what_en} {place_en}", f"{what_de} {place_de}"
    english, german = f"{who_en} {verb_en} {what_en}.", f"{who_de} {verb_de} {what_de}."
    if rng.random() < 0.5:
        time_en, time_de = rng.choice(list(TIMES[tense].items()))
        return f"{time_en} {english}", f"{time_de} {verb_de} {who_de} {what_de}."  # the verb stays second
    return english[0].upper() + english[1:], german[0].upper() + german[1:]


def main() -> None:
    """Write train, valid and test; no sentence is in two of them."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1)
    pairs = list(dict.fromkeys(sentence(rng) for _ in range(8_000)))
    for name, part in (("test", pairs[:300]), ("valid", pairs[300:500]), ("train", pairs[500:])):
        for side, language in enumerate(("en", "de")):
            text = "".join(f"{pair[side]}\n" for pair in part)
            (folder / f"{name}.{language}").write_text(text, encoding="utf-8")
    print(f"{len(pairs):,} sentence pairs in {folder}")


if __name__ == "__main__":
    main()
