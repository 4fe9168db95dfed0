"""All of mtformer without data of your own: train on the phrasebook, translate, evaluate. README.md has its time."""

import argparse
import os
import shlex

from environment import ROOT, python_with, run

COMMANDS = """
mtformer data sample builtin:phrasebook --pair en-zh -n 5
mtformer train configs/phrasebook_en_zh.yaml --set run.name=demo
# Chinese has its own word order (time, place, verb, object) and asks questions without moving a word.
mtformer translate --model runs/demo "We bought an old piano in Vienna last year."
mtformer translate --model runs/demo "Where did you buy the coat?"
# Context disambiguates words.
mtformer translate --model runs/demo "I ate chips."
mtformer translate --model runs/demo "The engineer is designing chips."
mtformer translate --model runs/demo "She bet three chips."
# "it" refers to the animal or to the street; Chinese repeats the noun unless it is an animal.
mtformer translate --model runs/demo "The animal didn't cross the street because it was too tired."
mtformer translate --model runs/demo "The animal didn't cross the street because it was too wide."
# It reads what people type. What it makes of a word that it does not know is a guess, which it says.
mtformer translate --model runs/demo "i don't eat chips"
mtformer translate --model runs/demo "I saw a zebra."
# Numbers are carried over, whichever they are.
mtformer translate --model runs/demo "I saw 3,500 birds in the garden."
mtformer eval --model runs/demo
# Two pages to open in a browser: a lesson about "it", and the translator itself.
mtformer explain --model runs/demo --output runs/demo/lesson.html \
"The animal didn't cross the street because it was too tired." \
--compare "The animal didn't cross the street because it was too wide."
mtformer export runs/demo --to html --output runs/demo/translator.html
"""
NEXT = 'mtformer translate "The old man is reading a book in the park."'
FOLDER = ROOT / "runs/demo"
PAGES = {"lesson.html": "what the model sees in “it”", "translator.html": "translate whatever you type, offline"}


def main() -> None:
    """Show each command and run it."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    print("The demo takes 3 minutes on two fast cores, and 10 on a slow or busy machine.", flush=True)
    python = python_with(extras="")
    for page in PAGES:  # those of an earlier demo
        (FOLDER / page).unlink(missing_ok=True)
    for line in COMMANDS.strip().splitlines():
        is_comment = line.startswith("#")
        print(f"\n{'' if is_comment else '$ '}{line}", flush=True)
        if not is_comment:
            run(python, "-m", *shlex.split(line))
    print("\nOpen in a browser:")
    for page, what in PAGES.items():
        print(f"    {(FOLDER / page).as_uri()} ({what})")
    activate = r".venv\Scripts\activate" if os.name == "nt" else "source .venv/bin/activate"
    print(f"\nGo on with your own sentences, or with the tour (docs/tour.md):\n    {activate}\n    {NEXT}")


if __name__ == "__main__":
    main()
