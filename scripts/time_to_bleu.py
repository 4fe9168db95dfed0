"""Train a config and print the minutes until the validation BLEU (greedy search) reaches each mark.

Minutes count training and validations, from the first step. The run goes to runs/time_to_bleu, from scratch.

With --peers, race_to_bleu.py also trains the toolkits that scripts/peers/install has installed in WORK, on the same
text, by the recipes of scripts/peer_recipes.py, and compares them with ours. Results are kept in WORK/time_to_bleu;
only what is missing there is trained.
"""

import argparse
import json
import signal
import subprocess
import sys
from pathlib import Path

from instructions import add_option, limit
from program import run_program
from race_to_bleu import SYSTEMS, Race, draw, table

from mtformer.support.files import write_atomically

MARKS = (25.0, 30.0, 33.0, 35.0, 37.0)


def train(arguments: list[str]) -> Path:
    """Run ``mtformer train`` from scratch, beside what was trained with the config before; return the run's folder."""
    command = [sys.executable, "-m", "mtformer", "train", "--fresh", "--set", "run.dir=runs/time_to_bleu", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return Path(done.stdout.strip()).parent


def report(run: Path) -> str:
    """Return a line for each mark and one for the best score."""
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    scores = [(line["seconds"] / 60, line["valid_bleu"]) for line in lines if "valid_bleu" in line]
    rows = []
    for mark in MARKS:
        minutes = next((f"{minutes:6.1f} minutes" for minutes, bleu in scores if bleu >= mark), "not reached")
        rows.append(f"{mark:5.1f} BLEU  {minutes}")
    minutes, bleu = max(scores, key=lambda score: score[1])
    rows.append(f"best: {bleu:.2f} BLEU after {minutes:.1f} of {scores[-1][0]:.1f} minutes")
    return "\n".join(rows)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("config", type=Path, metavar="CONFIG", help="what ours trains, and the text of all")
    add("--set", action="append", default=[], metavar="KEY=VALUE", help="a setting of ours that replaces the config's")
    add("--peers", type=Path, metavar="WORK", help="working folder, with the toolkits to compare")
    add(
        "--systems",
        nargs="+",
        choices=SYSTEMS,
        default=list(SYSTEMS),
        metavar="NAME",
        help=f"some of {', '.join(SYSTEMS)}",
    )
    add("--limit", type=float, default=4.5, metavar="N", help="how many times as long as ours another may take (4.5)")
    add("--every", type=int, default=100, metavar="N", help="updates between checkpoints (100)")
    add("--picture", type=Path, metavar="FILE", help="an SVG to draw the curves of what is trained in")
    add_option(parser)
    return parser.parse_args()


def main() -> None:
    """Train, and print what was reached when."""
    arguments = parse_arguments()
    limit(arguments.isa)
    if arguments.peers is None:
        print(report(train([str(arguments.config), *(word for pair in arguments.set for word in ("--set", pair))])))
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that no training is left behind
    race = Race(arguments.peers, arguments.config, arguments.set, arguments.every, arguments.isa)
    for name in arguments.systems:
        race.run(name, arguments.limit)
    results = {name: found for name in SYSTEMS if (found := race.curve(name))}
    print(table(results))
    if arguments.picture:
        picture = draw(results).encode()
        write_atomically(arguments.picture, lambda path: path.write_bytes(picture))


if __name__ == "__main__":
    run_program(main)
