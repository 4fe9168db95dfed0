"""All of mtformer without data of your own: train on the phrasebook, translate, evaluate. It took 1:37 on two cores."""

import shlex

from environment import python_with, run

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
mtformer translate --model runs/demo "The animal did not cross the street because it was too tired."
mtformer translate --model runs/demo "The animal did not cross the street because it was too wide."
mtformer eval --model runs/demo
"""


def main() -> None:
    """Show each command and run it."""
    python = python_with(extras="")
    for line in COMMANDS.strip().splitlines():
        is_comment = line.startswith("#")
        print(f"\n{'' if is_comment else '$ '}{line}", flush=True)
        if not is_comment:
            run(python, "-m", *shlex.split(line))


if __name__ == "__main__":
    main()
