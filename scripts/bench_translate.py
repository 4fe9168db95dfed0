"""Compare the translation speed of mtformer and other toolkits with one model on the same text and cores.

Each system has the weights of MODEL, converted to its format. A turn is a process of its own: it loads the model,
translates a first line, then --single lines one by one, then all --lines at once. The speed of a machine drifts, so the
systems take turns, and the tables show medians.

The system ctranslate2-int8-map has a vocabulary map, learned from the set train in the folder --data.

The other toolkits are those that scripts/peers/install has installed in WORK. scripts/get_multi30k downloads the text.
Marian cannot compute the same function (scripts/peers/convert.py says why): its model has the same shape, and its
translations have the mean length of the references, but no meaning.
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from instructions import add_option, limit
from program import run_program

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.evaluate.metrics import bleu, bleu_tokenize
from mtformer.runs.finding import find_model
from mtformer.support.errors import UserError
from mtformer.support.terminal import as_markdown, as_text
from mtformer.text.lines import read_lines
from mtformer.text.tokenizer.tokenizer import Tokenizer

PEERS = Path(__file__).resolve().parent / "peers"
BATCH_TOKENS = 4096
HEADER = (
    "system",
    "sentences/s",
    "lowest to highest",
    "tokens/s",
    "ratio",
    "median line",
    "95 % of lines",
    "first line",
    "memory",
    "BLEU",
    "identical",
)


class FailedError(Exception):
    """A system failed; the message says how."""


@dataclass(frozen=True, eq=False)
class System:
    """A toolkit, or an engine of mtformer.

    Attributes:
        name: its name in the table.
        python: the interpreter that it is installed for.
        driver: the script in scripts/peers that translates with it.
        convert: returns the command that makes its model from a bundle in a new folder; None if it takes bundles.
        needs: the package that mtformer needs to export to it.
        is_same: whether it computes the same function.
    """

    name: str
    python: Path
    driver: str
    convert: Callable[[Path, Path], list[str]] | None = None
    needs: str = "torch"
    is_same: bool = True


def systems(work: Path, train: Sequence[Path] = ()) -> dict[str, System]:
    """Return all systems by name.

    Args:
        work: has the virtual environments of the other toolkits.
        train: the two sides of the training text, for the vocabulary map.
    """

    def export(to: str, *options: str) -> Callable[[Path, Path], list[str]]:
        command = [sys.executable, "-m", "mtformer", "export"]
        return lambda bundle, folder: [*command, str(bundle), "--to", to, "--output", str(folder), *options]

    def convert(to: str) -> Callable[[Path, Path], list[str]]:
        return lambda bundle, folder: [sys.executable, str(PEERS / "convert.py"), to, str(bundle), str(folder)]

    def ours(name: str, *options: str) -> System:
        make = export("ctranslate2", *options) if name != "torch" else None
        return System(name, Path(sys.executable), "translate_mtformer.py", make, needs=name.split("-")[0])

    def peer(name: str, make: Callable[[Path, Path], list[str]], **more: Any) -> System:
        return System(name, (work / name / "bin" / "python").absolute(), f"translate_{name}.py", make, **more)

    found = [
        ours("torch"),
        ours("ctranslate2"),
        ours("ctranslate2-int8", "--quantization", "int8"),
        ours("ctranslate2-int8-map", "--quantization", "int8", "--vocabulary-map", *map(str, train)),
        peer("joeynmt", convert("joeynmt")),
        peer("opennmt", convert("opennmt")),
        peer("huggingface", export("huggingface"), needs="transformers"),
        peer("marian", convert("marian"), is_same=False),
    ]
    return {system.name: system for system in found}


@dataclass(frozen=True)
class Text:
    """Parallel text: lines to translate and their translations."""

    sources: list[str]
    references: list[str]

    @classmethod
    def read(cls, data: Path, name: str, languages: Sequence[str], n_lines: int) -> "Text":
        """Read the first lines of the set ``name`` in the folder ``data``."""
        sides = [list(islice(read_lines(path), n_lines)) for path in files_of(data, name, languages)]
        if len(sides[0]) != len(sides[1]) or not sides[0]:
            raise UserError(f"the set {name} in {data} has {len(sides[0])} sources and {len(sides[1])} references")
        return cls(*sides)

    def length_factor(self, tokenizer: Tokenizer) -> float:
        """Return the number of target tokens per source token."""
        n_src, n_tgt = (
            sum(map(len, ids)) for ids in (tokenizer.encode_src(self.sources), tokenizer.encode_tgt(self.references))
        )
        return n_tgt / n_src


def files_of(data: Path, name: str, languages: Sequence[str]) -> list[Path]:
    """Return the file of each language of the set ``name``, compressed or not; either if there is none."""
    both = [[data / f"{name}.{language}{suffix}" for suffix in (".gz", "")] for language in languages]
    return [next((path for path in paths if path.exists()), paths[0]) for paths in both]


@dataclass(frozen=True)
class Turn:
    """What one turn measured.

    Attributes:
        seconds: for all lines.
        single_seconds: for each single line.
        first_seconds: from the start of the process to the first translation.
        peak_mib: the peak memory.
        translations: of all lines.
    """

    seconds: float
    single_seconds: list[float]
    first_seconds: float
    peak_mib: int
    translations: list[str]


@dataclass
class Bench:
    """The measurements.

    Attributes:
        folder: for models, jobs, results and logs.
        job: what all turns have in common; see scripts/peers/driver.py.
        timeout: the most seconds of a turn.
        models: of the systems that take part.
        turns: by beam size and system.
        n_failed: how many systems have failed.
    """

    folder: Path
    job: dict[str, Any]
    timeout: float
    models: dict[System, Path] = field(default_factory=dict)
    turns: dict[int, dict[System, list[Turn]]] = field(default_factory=dict)
    n_failed: int = 0

    def add(self, system: System, bundle: Path) -> None:
        """Convert the model for ``system``; one that is not installed, or fails, does not take part."""
        if not system.python.exists():
            work = os.path.relpath(system.python.parents[2])
            report(f"{system.name} is not installed: scripts/peers/install {work} {system.name} does that")
            return
        if importlib.util.find_spec(system.needs) is None:
            report(f"{system.name} needs {system.needs} beside mtformer: pip install {system.needs} does that")
            return
        model = bundle
        if system.convert is not None:
            model = self.folder / system.name
            try:
                self._run(system.convert(bundle, model), f"{system.name}.convert")
            except FailedError as error:
                self.n_failed += 1
                report(f"{system.name}: its conversion {error}")
                return
        self.models[system] = model

    def measure(self, beam_sizes: Sequence[int], n_rounds: int) -> None:
        """Let the systems take turns; one that fails takes no more."""
        for number in range(1, n_rounds + 1):
            for beam_size in beam_sizes:
                for system in list(self.models):
                    where = f"round {number}, beam {beam_size}, {system.name}"
                    try:
                        turn = self._take_turn(system, beam_size)
                    except FailedError as error:
                        self.n_failed += 1
                        del self.models[system]
                        report(f"{where}: {error}")
                        continue
                    self.turns.setdefault(beam_size, {}).setdefault(system, []).append(turn)
                    report(f"{where}: {len(turn.translations) / turn.seconds:.1f} sentences/s")

    def _take_turn(self, system: System, beam_size: int) -> Turn:
        job, result = self.folder / f"{system.name}.job", self.folder / f"{system.name}.result"
        given = {
            "model": str(self.models[system]),
            "beam_size": beam_size,
            "result": str(result),
        }
        job.write_text(json.dumps(self.job | given), encoding="utf-8")
        result.unlink(missing_ok=True)
        started = time.time()
        self._run([str(system.python), str(PEERS / system.driver), str(job)], system.name)
        if not result.exists():
            raise FailedError(f"wrote no result; see {result.with_suffix('.log')}")
        found = json.loads(result.read_text(encoding="utf-8"))
        return Turn(first_seconds=found.pop("first_at") - started, **found)

    def _run(self, command: list[str], name: str) -> None:
        """Run ``command``; what it prints goes to a log.

        Raises:
            FailedError: it failed or took too long.
        """
        threads = str(self.job["threads"])
        settings = {"OMP_NUM_THREADS": threads, "MKL_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "false"}
        settings |= {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            try:
                subprocess.run(
                    command, stdout=output, stderr=output, env=os.environ | settings, timeout=self.timeout, check=True
                )
            except subprocess.TimeoutExpired:
                raise FailedError(f"took longer than {self.timeout:.0f} s; see {log}") from None
            except subprocess.CalledProcessError as error:
                raise FailedError(f"failed with status {error.returncode}; see {log}") from None
            except OSError as error:
                raise FailedError(f"did not start: {error}") from None


def table(turns: dict[System, list[Turn]], text: Text, bundle: Bundle) -> list[list[str]]:
    """Return a row for each system; ratios and identical translations are in comparison with the first."""
    first, *_ = turns.items()
    rows = []
    for system, of_system in turns.items():
        speeds = [len(text.sources) / turn.seconds for turn in of_system]
        n_per_second = tokens_per_second(system, of_system, bundle.tokenizer)
        cells = [
            system.name,
            f"{statistics.median(speeds):.1f}",
            f"{min(speeds):.1f}–{max(speeds):.1f}",
            f"{n_per_second:,.0f}",
            f"{n_per_second / tokens_per_second(*first, bundle.tokenizer):.2f}",
        ]
        for percent in (50, 95):
            seconds = [percentile(turn.single_seconds, percent) for turn in of_system if turn.single_seconds]
            cells.append(f"{1000 * statistics.median(seconds):.0f} ms" if seconds else "–")
        cells.append(f"{statistics.median(turn.first_seconds for turn in of_system):.2f} s")
        cells.append(f"{max(turn.peak_mib for turn in of_system):,} MiB")
        translations = of_system[0].translations
        is_comparable = system.is_same and first[0].is_same
        cells += quality(translations, first[1][0].translations, text, bundle) if is_comparable else ["–", "–"]
        rows.append(cells)
    return rows


def quality(translations: list[str], first: list[str], text: Text, bundle: Bundle) -> list[str]:
    """Return BLEU, and the share of translations that are the ``first`` system's."""
    tokenize = bleu_tokenize(bundle.header.bleu_tokenize, bundle.header.tgt_lang)
    score = bleu(translations, text.references, tokenize).value
    n_identical = sum(one == other for one, other in zip(translations, first, strict=True))
    return [f"{score:.2f}", f"{100 * n_identical / len(translations):.1f} %"]


def tokens_per_second(system: System, turns: Sequence[Turn], tokenizer: Tokenizer) -> float:
    """Return the median speed in target tokens, counting the EOS of each translation."""
    translations = turns[0].translations
    if system.is_same:
        n_tokens = sum(map(len, tokenizer.encode_tgt(translations)))
    else:  # tokens, of which the text might have others, without EOS
        n_tokens = sum(len(translation.split()) for translation in translations)
    return statistics.median(n_tokens / turn.seconds for turn in turns)


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the smallest of ``values`` that ``percent`` of them do not exceed."""
    return sorted(values)[-(-len(values) * percent // 100) - 1]


def report(message: str) -> None:
    """Print progress."""
    print(message, file=sys.stderr, flush=True)


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    names = list(systems(Path()))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("model", type=Path, metavar="MODEL", help="the folder of a run, or a bundle")
    add("work", type=Path, metavar="WORK", help="working folder, with the toolkits to compare")
    add("--data", type=Path, default=Path("data/multi30k"), metavar="FOLDER", help="the text's (data/multi30k)")
    add(
        "--set",
        default="test2016",
        metavar="NAME",
        help="which text: NAME.en.gz and NAME.de.gz, for example (test2016)",
    )
    add("--lines", type=int, default=1_000, metavar="N", help="lines to translate at once (1000)")
    add("--single", type=int, default=100, metavar="N", help="lines to translate one by one (100)")
    add("--systems", nargs="+", choices=names, default=names, metavar="NAME", help=f"some of {', '.join(names)}")
    add("--beam-sizes", nargs="+", type=int, default=[1, 4], metavar="N", help="1 is greedy search (1 4)")
    add("--rounds", type=int, default=3, metavar="N", help="turns of each system (3)")
    add("--threads", type=int, default=1, metavar="N", help="threads of each system, on as many cores (1)")
    add("--timeout", type=float, default=600, metavar="SECONDS", help="the most that a turn may take (600)")
    add("--markdown", action="store_true", help="print the tables as Markdown")
    add_option(parser)
    return parser.parse_args()


def main() -> None:
    """Measure, and print a table for each beam size; exit with status 1 if a system failed."""
    arguments = parse_arguments()
    limit(arguments.isa)
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: arguments.threads])  # for all systems
    path = find_model(arguments.model).absolute()
    bundle = load_bundle(path)
    languages = bundle.header.src_lang, bundle.header.tgt_lang
    text = Text.read(arguments.data, arguments.set, languages, arguments.lines)
    arguments.work.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="translate-", dir=arguments.work)).absolute()
    report(f"models, results and logs are in {folder}")
    job = {
        "sources": text.sources,
        "n_single": arguments.single,
        "length_penalty": bundle.header.search.length_penalty,
        "length_factor": text.length_factor(bundle.tokenizer),
        "batch_tokens": BATCH_TOKENS,
        "threads": arguments.threads,
    }
    bench = Bench(folder, job, arguments.timeout)
    available = systems(arguments.work, files_of(arguments.data.absolute(), "train", languages))
    for name in dict.fromkeys(arguments.systems):
        bench.add(available[name], path)
    bench.measure(arguments.beam_sizes, arguments.rounds)
    as_table = as_markdown if arguments.markdown else as_text
    n_lines, n_single = len(text.sources), min(arguments.single, len(text.sources))
    for beam_size, turns in bench.turns.items():
        print(f"\nbeam {beam_size}: {n_lines:,} lines of {arguments.set} at once, {n_single} one by one\n")
        print(as_table(HEADER, table(turns, text, bundle)))
    sys.exit(1 if bench.n_failed else 0)


if __name__ == "__main__":
    run_program(main)
