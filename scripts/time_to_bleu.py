"""Train a config and print the minutes until the validation BLEU (greedy search) reaches each mark.

usage: python scripts/time_to_bleu.py CONFIG [--set KEY=VALUE …]

Minutes count training and validations, from the first step. The run goes to runs/time_to_bleu, from scratch.
"""

import json
import subprocess
import sys
from pathlib import Path

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


if __name__ == "__main__":
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    print(report(train(sys.argv[1:])))
