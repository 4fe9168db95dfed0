"""How time_to_bleu.py compares toolkits: each trains until its translations of the validation text are good enough.

All train on one thread, and the measure is processor time: what the processes of a training, with all their threads,
worked, whatever else ran beside them. A training starts, reads the text and trains; ours also trains its tokenizer and
validates, while the vocabulary of the others is ready. At each checkpoint the training is halted while another process
translates the validation text with it, by the toolkit's own greedy search. That counts for none.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench_training import write_tokens
from bench_translate import Bench, report
from bench_translate import System as Translating
from peer_recipes import RECIPES, VOCAB_SIZE
from readme_pictures import WIDTH, axes, line_through, svg, text

from mtformer.config import TokenizerConfig, load_config
from mtformer.data.sources.parallel import ParallelText
from mtformer.evaluate.metrics import bleu
from mtformer.runs.checkpoints import list_checkpoints
from mtformer.support.files import write_atomically
from mtformer.support.terminal import as_markdown
from mtformer.text.tokenizer.train import train_tokenizer

PEERS = Path(__file__).resolve().parent / "peers"
SYSTEMS = ("mtformer", *RECIPES)
GOAL, LAST = 35.0, 38.0  # of BLEU: the mark that counts, and the one at which a training ends
MARKS = (25.0, 30.0, 33.0, GOAL, 37.0, LAST)
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Point:
    """The quality of a checkpoint.

    Attributes:
        step: the updates until then.
        processor_minutes: the time that the training worked until then.
        wall_minutes: the time that passed, without that of translating checkpoints.
        bleu: of the validation text.
    """

    step: int
    processor_minutes: float
    wall_minutes: float
    bleu: float


Curve = Sequence[Point]


def first_at(curve: Curve, mark: float) -> Point | None:
    """Return the first point that reaches ``mark``."""
    return next((point for point in curve if point.bleu >= mark), None)


def processor_seconds(group: int, proc: Path = Path("/proc")) -> float:
    """Return the processor time of a group of processes, with that of children that have ended."""
    ticks = 0
    for path in proc.glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[2]) == group:
            ticks += sum(map(int, fields[11:15]))
    return ticks / TICKS


@contextmanager
def halting(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """Halt the group of a process, if it is running, until the block ends."""
    running = process.poll() is None
    if running:
        os.killpg(process.pid, signal.SIGSTOP)
    yield
    if running:
        os.killpg(process.pid, signal.SIGCONT)


class Race:
    """The trainings on the text of a config, in the folder ``time_to_bleu`` of the working folder.

    Args:
        work: has the virtual environments of the toolkits.
        config: what ours trains, and the text of all.
        settings: of ours, instead of the config's.
        every: the updates between checkpoints.
        isa: the newest instructions in use; results with others are kept apart.
    """

    def __init__(self, work: Path, config: Path, settings: Sequence[str], every: int, isa: str) -> None:
        self.work, self.config, self.settings, self.every = work.absolute(), config.absolute(), settings, every
        self.folder = self.work / "time_to_bleu"
        self.suffix = "" if isa == "native" else f".{isa}"
        self.data = load_config(config, settings).data
        pairs = list(ParallelText(self.data.valid, self.data.src_lang, self.data.tgt_lang))
        self.sources, self.references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]

    def curve(self, name: str) -> list[Point]:
        """Return what is known of a system."""
        return [Point(**point) for point in self._read(name)["points"]]

    def run(self, name: str, times: float) -> None:
        """Train a system, unless that was done before.

        Args:
            name: one of SYSTEMS.
            times: how many times as long as ours took to the goal another system may train.
        """
        python = self.work / name.split("-")[0] / "bin" / "python"
        if self._read(name)["ended"]:
            return
        if name != "mtformer" and not python.exists():
            report(f"{name} is not installed: scripts/peers/install {self.work} {python.parts[-3]}")
            return
        folder = self._path(name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self._train(name, self._prepare(name, folder, python), times)

    def _read(self, name: str) -> dict[str, Any]:
        path = self._path(name, ".json")
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"ended": False, "points": []}

    def _write(self, name: str, points: Sequence[Point], *, ended: bool) -> None:
        found = json.dumps({"ended": ended, "points": [asdict(point) for point in points]}, indent=1)
        write_atomically(self._path(name, ".json"), lambda path: path.write_text(found))

    def _most(self, name: str, times: float) -> float:
        """Return the most processor minutes of a training, as far as ours says how long that is."""
        goal = None if name == "mtformer" else first_at(self.curve("mtformer"), GOAL)
        return times * goal.processor_minutes if goal else float("inf")

    def _path(self, name: str, ending: str = "") -> Path:
        return self.folder / f"{name}{self.suffix}{ending}"

    def _prepare(self, name: str, folder: Path, python: Path) -> list[str]:
        """Write all that a training needs into ``folder``; return its command."""
        if name == "mtformer":
            settings = [*self.settings, f"run.dir={folder}", "run.name=run", f"training.checkpoint_every={self.every}"]
            sets = [word for setting in settings for word in ("--set", setting)]
            return [sys.executable, "-m", "mtformer", "train", "--fresh", str(self.config), *sets]
        pairs = list(ParallelText(self.data.train, self.data.src_lang, self.data.tgt_lang))
        tokens = TokenizerConfig(vocab_size=VOCAB_SIZE, type="bpe")
        tokenizer = train_tokenizer(pairs, tokens, self.data.src_lang, self.data.tgt_lang, seed=1)
        sides = {"src": [pair.src for pair in pairs], "tgt": [pair.tgt for pair in pairs]}
        for side, lines in sides.items():
            (folder / f"train.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        write_tokens(folder, tokenizer, sides)
        (folder / "tokenizer.spm").write_bytes(tokenizer.src_model)
        # Sources end in EOS, as in fairseq and in the other toolkits.
        sources = (folder / "train.pieces.src").read_text(encoding="utf-8")
        (folder / "train.pieces.src").write_text(sources.replace("\n", " </s>\n"), encoding="utf-8")
        recipe = json.dumps(RECIPES[name](self.every))  # which is YAML, too
        (folder / "recipe.json").write_text(recipe)
        toolkit = name.split("-")[0]
        if toolkit == "huggingface":
            from mtformer.export.huggingface import to_fast_tokenizer  # needs an extra of ours

            to_fast_tokenizer(tokenizer.src_model, max_length=512).save_pretrained(folder / "tokenizer")
        program = ["-m", "onmt.bin.train", "-config"] if toolkit == "opennmt" else [str(PEERS / f"{toolkit}.py")]
        return [str(python), *program, "recipe.json"]

    def _train(self, name: str, command: list[str], times: float) -> None:
        """Train until the last mark is reached, or for ``times`` as long as ours; score each checkpoint."""
        folder, points = self._path(name), list[Point]()
        settings = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
        started, halted, seconds = time.monotonic(), 0.0, 0.0
        with self._path(name, ".log").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=folder, env=os.environ | settings, stdout=log, stderr=log, start_new_session=True
            )
        try:
            ended = False
            while not ended:
                time.sleep(0.1)
                ended = process.poll() is not None
                seconds = seconds if ended else processor_seconds(process.pid)
                found = newest_checkpoint(name, folder)
                if found and (not points or found[0] > points[-1].step):
                    halted_at = time.monotonic()
                    with halting(process):
                        wall = (halted_at - started - halted) / 60
                        points.append(Point(found[0], seconds / 60, wall, self._score(name, *found)))
                    self._write(name, points, ended=False)
                    report(f"{name}: {points[-1]}")
                    halted += time.monotonic() - halted_at
                ended = ended or bool(first_at(points, LAST)) or seconds >= 60 * self._most(name, times)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if process.returncode not in (0, -signal.SIGKILL) or not points:
            sys.exit(f"{name} failed; see {self._path(name, '.log')}")
        self._write(name, points, ended=True)

    def _score(self, name: str, step: int, checkpoint: Path) -> float:
        """Return the BLEU of the translations by a checkpoint, whose folder then goes."""
        toolkit, trained = name.split("-")[0], self._path(name)
        folder = self._path(name, ".checkpoint")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        python, model = self.work / toolkit / "bin" / "python", folder
        if toolkit == "mtformer":
            python, model = Path(sys.executable), folder / "model.safetensors"
            average = ["average", str(trained / "run"), "--last", "1", "--output", str(model)]
            subprocess.run([sys.executable, "-m", "mtformer", *average], check=True, capture_output=True)
        elif toolkit == "huggingface":
            for part in (checkpoint, trained / "tokenizer"):
                shutil.copytree(part, folder, dirs_exist_ok=True)
        else:
            shutil.copy(checkpoint, folder / f"model{checkpoint.suffix}")
            shutil.copy(trained / "tokenizer.spm", folder)
        job = {"sources": self.sources, "n_single": 0, "length_penalty": 0.0, "length_factor": 3.0}
        bench = Bench(folder, job | {"batch_tokens": 4096, "threads": 1}, 600.0)
        system = Translating(name, python, f"translate_{toolkit}.py")
        bench.models[system] = model
        bench.measure([1], 1)
        if bench.n_failed:
            sys.exit(f"{name}: checkpoint {step} did not translate")
        translations = bench.turns[1][system][0].translations
        if toolkit == "marian":  # prints tokens
            translations = ["".join(line.split()).replace("▁", " ").strip() for line in translations]
        return bleu(translations, self.references).value


def newest_checkpoint(name: str, folder: Path) -> tuple[int, Path] | None:
    """Return the step and the place of the newest checkpoint that is complete."""
    if name == "mtformer":  # translates with the first bundle on, which has the tokenizer
        has_bundle = (folder / "run/model.safetensors").exists()
        places = list_checkpoints(folder / "run/checkpoints") if has_bundle else []
    else:
        pattern = {"huggingface": "step-*", "marian": "model.iter*.npz", "opennmt": "model_step_*.pt"}
        places = list(folder.glob(pattern[name.split("-")[0]]))
    found = [(int(re.findall(r"\d+", place.stem)[0]), place) for place in places]
    complete = [(step, place) for step, place in found if place.is_dir() or zipfile.is_zipfile(place)]
    return max(complete, default=None)


def table(results: Mapping[str, Curve]) -> str:
    """Return a row for each system with the processor minutes to each mark; ratios are to the first system."""
    ours = first_at(next(iter(results.values())), GOAL)
    rows = []
    for name, curve in results.items():
        reached = [first_at(curve, mark) for mark in MARKS]
        cells = [f"{point.processor_minutes:.1f}" if point else "–" for point in reached]
        goal, best = first_at(curve, GOAL), max(curve, key=lambda point: point.bleu)
        ended = curve[-1].processor_minutes
        wall = f"{goal.wall_minutes:.1f}" if goal else "–"
        ratio = "–"
        if ours:
            sign, minutes = ("", goal.processor_minutes) if goal else ("> ", ended)
            ratio = f"{sign}{minutes / ours.processor_minutes:.2f}"
        rows.append([name, *cells, wall, ratio, f"{best.bleu:.1f}", f"{ended:.1f}", f"{curve[-1].step:,}"])
    header = ["system", *(f"{mark:.0f}" for mark in MARKS), f"wall, {GOAL:.0f}", "ratio", "best", "ended", "updates"]
    return as_markdown(header, rows)


def draw(results: Mapping[str, Curve]) -> str:
    """Draw the BLEU of all systems over processor minutes, ours first, with lines at the marks that count."""
    longest = max(curve[-1].processor_minutes for curve in results.values())
    title = "Multi30k en-de: BLEU on the validation set"
    marks = (0, 10, 20, 30, int(GOAL), int(LAST))
    names = list[tuple[float, float]]()
    parts, at = axes(title, "processor minutes of training", longest, marks, 45)
    for number, (name, curve) in enumerate(results.items()):
        places = [at(point.processor_minutes, point.bleu) for point in curve]
        style = f'class="line other" fill="none" stroke-dasharray="{1 + 3 * number} 3"' if number else 'class="ink"'
        parts.append(f'<path {style} d="{line_through(places)}" stroke-width="2" stroke-linejoin="round"/>')
        (x, y), kind = places[-1], "muted small" if number else "strong"
        while any(abs(x - other) < 100 and abs(y - height) < 13 for other, height in names):
            y -= 13
        names.append((x, y))
        beside = x < 0.7 * WIDTH  # where a name has room
        parts.append(text(x + 6 if beside else x, y - 6, name, kind, "start" if beside else "end"))
    return svg("BLEU over processor minutes of training", ["<style>.other { stroke: #8b949e }</style>", *parts])
