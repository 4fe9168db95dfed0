"""Train and score a model of docs/results.md, and compare its scores with the recorded ones.

usage: scripts/reproduce NAME [--seed N] [--record]
       scripts/reproduce --list
       scripts/reproduce --page

Models go to runs/reproduce. One that is complete is not trained again, and one that was interrupted is resumed.
``--record`` adds the result to docs/results.jsonl, from which ``--page`` rewrites the tables of docs/results.md.
"""

import argparse
import json
import re
import shlex
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mtformer.bundle.peek import peek
from mtformer.support.files import write_atomically
from mtformer.support.terminal import as_markdown, as_text

ROOT = Path(__file__).parent.parent
RUNS = Path("runs/reproduce")
RECORD = ROOT / "docs/results.jsonl"
PAGE = ROOT / "docs/results.md"
GENERATED = "<!-- From here on, `scripts/reproduce --page` generates this page from results.jsonl. -->\n"


@dataclass(frozen=True)
class Recipe:
    """How to get a model.

    Attributes:
        title: what it is.
        steps: the commands that make it, in order; ``{seed}`` is that of the run and ``{run}`` the folder of its files.
            One with an ``--output`` is left out where this file exists. The last one is the training of the model.
        protocols: published protocols to score it by, besides the test sets of its config.
    """

    title: str
    steps: tuple[str, ...]
    protocols: tuple[str, ...] = ()

    def commands(self, seed: int, run: Path) -> list[str]:
        """Fill in the steps for one seed."""
        return [step.format(seed=seed, run=run) for step in self.steps]


RECORDED_WITH = (  # the defaults of most recorded results
    "training.weight_decay=0.01",
    "search.length_penalty=0.6",
    "search.length_penalty_offset=5",
)


def training(config: str, *settings: str, defaults: Sequence[str] = RECORDED_WITH) -> str:
    """Return the command that trains a config, with settings of its own, into the folder of a run."""
    changes = ["training.seed={seed}", "run.dir={run}", "run.name=model", *defaults, *settings]
    return f"mtformer train configs/{config}.yaml " + " ".join(f"--set {change}" for change in changes)


EARLIER_DEFAULTS = ("model.positions=sinusoidal", "tokenizer.slots=false")


def between(src_lang: str, tgt_lang: str) -> tuple[str, str]:
    """Return the settings of a direction."""
    return f"data.src_lang={src_lang}", f"data.tgt_lang={tgt_lang}"


MULTI30K = {  # each direction
    "multi30k_en_de": training("multi30k_en_de", defaults=()),
    "multi30k_de_en": training("multi30k_en_de", *between("de", "en"), defaults=()),
}


def diversification() -> Iterator[str]:
    """Yield the commands that translate the training text by several models of each direction (Nguyen et al. 2020)."""
    for name, generate, seeds in (
        ("multi30k_en_de", "distill configs/multi30k_en_de.yaml", (1, 2, 3)),
        ("multi30k_de_en", "backtranslate --input data/multi30k/train.de.gz", (1, 2)),
    ):
        for seed in seeds:
            run = RUNS / f"{name}.{seed}"
            yield MULTI30K[name].format(seed=seed, run=run)
            pairs = f"data/multi30k-diversified/{name.removeprefix('multi30k_')}.{seed}.jsonl"
            yield f"mtformer data {generate} --raw --model {run / 'model'} --output {pairs}"


RECIPES = {
    "multi30k_en_de": Recipe(
        "Multi30k, English to German",
        (MULTI30K["multi30k_en_de"],),
        protocols=("multi30k-2016-lc-tok",),
    ),
    "multi30k_de_en": Recipe("Multi30k, German to English", (MULTI30K["multi30k_de_en"],)),
    "multi30k_en_de_diversified": Recipe(
        "Multi30k, English to German, after data diversification",
        (*diversification(), training("multi30k_en_de_diversified", defaults=())),
        protocols=("multi30k-2016-lc-tok",),
    ),
    "tatoeba_de_en": Recipe("Tatoeba, German to English", (training("tatoeba_de_en"),)),
    "tatoeba_en_de": Recipe(  # measured with earlier defaults
        "Tatoeba, English to German", (training("tatoeba_de_en", *between("en", "de"), *EARLIER_DEFAULTS),)
    ),
    "tvsub_zh_en": Recipe("TV subtitles, Chinese to English", (training("tvsub_zh_en"),)),
    "tvsub_en_zh": Recipe("TV subtitles, English to Chinese", (training("tvsub_zh_en", *between("en", "zh")),)),
    "phrasebook_en_de": Recipe("The phrasebook, English to German", (training("phrasebook_en_de"),)),
    "phrasebook_de_en": Recipe(
        "The phrasebook, German to English", (training("phrasebook_en_de", *between("de", "en")),)
    ),
    "phrasebook_en_zh": Recipe("The phrasebook, English to Chinese", (training("phrasebook_en_zh"),)),
    "phrasebook_zh_en": Recipe(
        "The phrasebook, Chinese to English", (training("phrasebook_en_zh", *between("zh", "en")),)
    ),
    "phrasebook_de_zh": Recipe(
        "The phrasebook, German to Chinese", (training("phrasebook_en_zh", *between("de", "zh")),)
    ),
    "phrasebook_zh_de": Recipe(
        "The phrasebook, Chinese to German", (training("phrasebook_en_zh", *between("zh", "de")),)
    ),
    "phrasebook_multilingual": Recipe(
        "The phrasebook, six directions in one model", (training("phrasebook_multilingual"),)
    ),
}


@dataclass(frozen=True)
class Result:
    """A model that has been trained and scored.

    Attributes:
        recipe: the name of its recipe.
        seed: the seed of its training.
        scores: those of each test set or protocol by its name: the signature of each metric, and the score.
        minutes: of the training of the model, validations included.
        processor: of the machine.
        threads: that it was trained with.
        precision: of its matrix products.
        parameters: their number.
        n_bytes: the size of the bundle.
        sha256: the digest of the bundle, which is the same for the same weights, settings and versions; that of its
            file is not, as safetensors writes the metadata in any order.
        version: of mtformer.
    """

    recipe: str
    seed: int
    scores: dict[str, dict[str, float]]
    minutes: float
    processor: str
    threads: int
    precision: str
    parameters: int
    n_bytes: int
    sha256: str
    version: str


def main() -> None:
    """Do what the arguments say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("name", nargs="?", choices=RECIPES, metavar="NAME", help="the recipe")
    what.add_argument("--list", action="store_true", help="show all recipes with their recorded scores")
    what.add_argument("--page", action="store_true", help="rewrite the tables of docs/results.md")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="another seed gives another model")
    parser.add_argument("--record", action="store_true", help="add the result to docs/results.jsonl")
    arguments = parser.parse_args()
    if arguments.list:
        print(as_text(SUMMARY, list(summary(read_results()))))
    elif arguments.page:
        write_atomically(PAGE, partial(Path.write_text, data=page(read_results()), encoding="utf-8"))
    else:
        result = reproduce(arguments.name, RECIPES[arguments.name], arguments.seed)
        print(comparison(result, [one for one in read_results() if one.recipe == result.recipe]))
        if arguments.record:
            record(result)


def reproduce(name: str, recipe: Recipe, seed: int) -> Result:
    """Train a model by its recipe, and score it.

    Raises:
        SystemExit: a command failed; it has said why.
    """
    bundle = made(recipe.commands(seed, RUNS / f"{name}.{seed}"))
    scores = scores_of(json.loads(mtformer(f"mtformer eval --json --engine torch --model {bundle}")))
    for protocol in recipe.protocols:
        found = json.loads(mtformer(f"mtformer eval --json --engine torch --model {bundle} --protocol {protocol}"))
        scores[protocol] = by_signature(found["scores"])
    start = json.loads(first_line(bundle.parent / "starts.jsonl"))
    last = json.loads((bundle.parent / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    machine = start["machine"]
    peeked = peek(bundle)
    assert peeked
    return Result(
        recipe=name,
        seed=seed,
        scores=scores,
        minutes=round(last["seconds"] / 60, 1),
        processor=machine["processor"],
        threads=machine["threads"],
        precision=machine["precision"],
        parameters=start["model"]["parameters"],
        n_bytes=bundle.stat().st_size,
        sha256=peeked.digest,
        version=start["versions"]["mtformer"],
    )


def made(commands: Iterable[str]) -> Path:
    """Run the commands of a recipe, except those whose output exists, and return the bundle that the last one makes."""
    for command in commands:
        if output := re.search(r"--output (\S+)", command):
            command += " --resume"  # as a training does by itself
            Path(output[1]).parent.mkdir(parents=True, exist_ok=True)
        if output is None or not Path(output[1]).exists():
            print(f"$ {command}", file=sys.stderr)
            printed = mtformer(command)
    return Path(printed.strip().splitlines()[-1])


def mtformer(command: str) -> str:
    """Run a command of mtformer, and return what it prints.

    Raises:
        SystemExit: it failed or was interrupted; it has said why.
    """
    arguments = [sys.executable, "-m", *shlex.split(command)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, encoding="utf-8") as process:
        try:
            printed, _ = process.communicate()
        except KeyboardInterrupt:  # Ctrl-C reaches the command as well, which may have a checkpoint to save
            sys.exit(process.wait() or 130)
    if process.returncode:
        sys.exit(process.returncode)
    return printed


def scores_of(evaluation: Mapping[str, Any]) -> dict[str, dict[str, float]]:
    """Return the scores that ``mtformer eval --json`` shows, by direction if there are several, or by test set."""
    if "directions" in evaluation:
        return {direction: by_signature(one["scores"]) for direction, one in evaluation["directions"].items()}
    sets = evaluation.get("test_sets", [evaluation])
    return {Path(one["test_set"]).name.partition(".")[0]: by_signature(one["scores"]) for one in sets}


def by_signature(scores: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Return scores by their metric and its signature."""
    return {f"{score['name']} {score['signature']}": score["score"] for score in scores}


def first_line(path: Path) -> str:
    """Return the first line of a file."""
    with path.open(encoding="utf-8") as lines:
        return lines.readline()


def read_results() -> list[Result]:
    """Return the recorded results, by recipe and seed."""
    lines = RECORD.read_text(encoding="utf-8").splitlines() if RECORD.exists() else []
    order = list(RECIPES)
    return sorted((Result(**json.loads(line)) for line in lines), key=lambda one: (order.index(one.recipe), one.seed))


def record(result: Result) -> None:
    """Add a result to the recorded ones, in the place of one with its recipe and seed."""
    latest = {(one.recipe, one.seed): one for one in [*read_results(), result]}
    lines = "".join(json.dumps(asdict(one)) + "\n" for one in latest.values())
    write_atomically(RECORD, partial(Path.write_text, data=lines, encoding="utf-8"))


SUMMARY = ("name", "test set", "BLEU", "chrF2", "seeds", "minutes", "parameters", "file")


def summary(recorded: Sequence[Result]) -> Iterable[list[str]]:
    """Yield a row of :data:`SUMMARY` for each test set of each recipe."""
    for name in RECIPES:
        results = [one for one in recorded if one.recipe == name]
        if not results:
            yield [name, *[""] * (len(SUMMARY) - 1)]
            continue
        minutes = statistics.fmean(one.minutes for one in results)
        megabytes = statistics.fmean(one.n_bytes for one in results) / 1e6
        size = [str(len(results)), f"{minutes:.1f}", f"{results[0].parameters:,}", f"{megabytes:.1f} MB"]
        for test_set in results[0].scores:
            yield [name, test_set, *(spread(values(results, test_set, metric)) for metric in ("BLEU", "chrF2")), *size]


def values(results: Iterable[Result], test_set: str, metric: str) -> list[float]:
    """Return the scores of results, one for each that has it."""
    return [
        score
        for result in results
        for name, score in result.scores.get(test_set, {}).items()
        if name.startswith(f"{metric} ")
    ]


def spread(scores: Sequence[float]) -> str:
    """Return the mean, with the sample standard deviation of several."""
    if not scores:
        return ""
    mean = f"{statistics.fmean(scores):.1f}"
    return f"{mean} ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else mean


def comparison(result: Result, recorded: Sequence[Result]) -> str:
    """Show a result beside those that are recorded."""
    rows = [
        [f"{test_set} {metric}", f"{score:.1f}", spread(values(recorded, test_set, metric))]
        for test_set, scores in result.scores.items()
        for metric, score in ((name.partition(" ")[0], score) for name, score in scores.items())
    ]
    minutes = [one.minutes for one in recorded]
    rows.append(["minutes", f"{result.minutes:.1f}", f"{statistics.fmean(minutes):.1f}" if minutes else ""])
    same_seed = next((one.sha256 for one in recorded if one.seed == result.seed), "")
    rows.append(["digest", result.sha256[:12], same_seed[:12]])
    return as_text((result.recipe, f"seed {result.seed}", f"recorded ({len(recorded)})"), rows)


def page(recorded: Sequence[Result]) -> str:
    """Return docs/results.md: its introduction as it is, and the tables of the recorded results."""
    introduction, _, _ = PAGE.read_text(encoding="utf-8").partition(GENERATED)
    names = [name for name in RECIPES if any(one.recipe == name for one in recorded)]
    runs = [
        [
            *(one.recipe, str(one.seed), ", ".join(f"{score:.2f}" for score in bleu_of(one))),
            *(f"{one.minutes:.1f}", f"{one.processor}, {one.threads} × {one.precision}", f"`{one.sha256}`"),
        ]
        for one in recorded
    ]
    recipes = as_markdown(SUMMARY, [row for row in summary(recorded) if row[1]])
    blocks = [introduction + GENERATED, recipes, "\n## Commands"]
    for name in names:
        steps = "\n".join(f"    {command}" for command in RECIPES[name].commands(1, RUNS / f"{name}.1"))
        blocks.append(f"\n{RECIPES[name].title} (`{name}`):\n\n{steps}")
    header = (
        "name",
        "seed",
        "BLEU of each test set",
        "minutes",
        "processor, threads × precision",
        "digest of the bundle",
    )
    blocks += ["\n## Runs\n", as_markdown(header, runs), "\n## Signatures\n"]
    signatures = sorted({name for one in recorded for scores in one.scores.values() for name in scores})
    return "\n".join([*blocks, *(f"- `{signature}`" for signature in signatures)]) + "\n"


def bleu_of(result: Result) -> list[float]:
    """Return the BLEU of each test set."""
    return [score for test_set in result.scores for score in values([result], test_set, "BLEU")]


if __name__ == "__main__":
    main()
