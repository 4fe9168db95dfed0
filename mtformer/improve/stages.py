"""The stages: each is a training, a translation or a measurement that other rooms know how to do, and to resume."""

import logging
import shlex
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from mtformer.config import Config, JsonlFile, LanguagePair
from mtformer.data.sources.parallel import ParallelText
from mtformer.engines.loading import load_model
from mtformer.evaluate.evaluation import best_translations
from mtformer.evaluate.metrics import bleu, bleu_tokenize
from mtformer.improve.configs import Configs
from mtformer.improve.state import Outcome, State
from mtformer.runs.contents import gather
from mtformer.runs.folder import RunFolder
from mtformer.support.files import write_atomically
from mtformer.text.pairs import SentencePair
from mtformer.training.run import train
from mtformer.translate.jobs import core
from mtformer.translate.jobs.generation import GenerationJob, json_line
from mtformer.translate.jobs.reading import TextInput
from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

Text = ParallelText | TextInput


def valid_bleu(models: Sequence[Path], valid: Path) -> float:
    """Return the BLEU of a model or an ensemble on the validation pairs, as ``mtformer eval --engine torch`` does."""
    loaded = load_model(models, "torch")
    header = loaded.header
    pairs = list(ParallelText([JsonlFile(jsonl=valid)], header.src_lang, header.tgt_lang))
    best = best_translations(Translator.load(loaded), [pair.src for pair in pairs])
    tokenize = bleu_tokenize(header.bleu_tokenize, header.tgt_lang)
    return bleu([translation.text for translation in best], [pair.tgt for pair in pairs], tokenize).value


def write_pairs(path: Path, languages: LanguagePair, pairs: Iterable[SentencePair]) -> None:
    """Write pairs as JSON lines, each under the codes of its languages."""
    lines = (json_line(languages, pair) for pair in pairs)

    def write(to: Path) -> None:
        with to.open("w", encoding="utf-8") as file:
            file.writelines(lines)

    write_atomically(path, write)


class Stages:
    """Does the stages, each once, in the folder of an improvement."""

    def __init__(self, state: State, configs: Configs) -> None:
        """Take the results so far, and the writer of configs."""
        self._state = state
        self._configs = configs

    def measured(
        self, folder: RunFolder, name: str, command: str, before: float | None = None, *, is_wanted: bool = False
    ) -> Outcome:
        """Score the model of a run that is complete; see :meth:`trained`."""

        def do() -> Outcome:
            run = gather(folder.path)
            score = valid_bleu([folder.bundle], self._configs.valid)
            gain = None if before is None else _gain(score, before)
            return Outcome(
                stage=name,
                commands=[command, self._eval([folder.bundle])],
                minutes=run.minutes,
                steps=run.step,
                bleu=score,
                gain=gain,
                kept=is_wanted or gain is None or gain > 0,
            )

        return self._state.once(do, name)

    def trained(self, config: Config, before: float | None = None, *, is_wanted: bool = False) -> Outcome:
        """Train a model, or resume its training, and score it.

        Args:
            config: of its run.
            before: the BLEU that it is to exceed, to be kept; None if it is not compared.
            is_wanted: keep it in any case.
        """
        folder = RunFolder.of(config)
        name = folder.path.name
        if name not in self._state.outcomes:
            log.info("stage %s", name)
            train(config)
        command = shlex.join(["mtformer", "train", str(self._configs.path(name))])
        return self.measured(folder, name, command, before, is_wanted=is_wanted)

    def joined(self, models: list[Path], name: str) -> list[Path]:
        """Return the models with a new one, if it makes their ensemble better; its stage gets the gain."""
        before, outcome = self._state.outcomes[self._name_of(models[-1])], self._state.outcomes[name]
        together, stage = [*models, self._configs.run(name).bundle], f"{name}.ensemble"

        def do() -> Outcome:
            score = valid_bleu(together, self._configs.valid)
            alone = before.bleu if len(models) == 1 else self._state.outcomes[f"{before.stage}.ensemble"].bleu
            gain, note = _gain(score, alone or 0.0), f"{outcome.bleu:.2f} alone"
            commands = [self._eval(together)]
            return Outcome(stage=stage, commands=commands, bleu=score, gain=gain, kept=gain > 0, note=note)

        return together if self._state.once(do, stage).kept else models

    def _name_of(self, bundle: Path) -> str:
        return "baseline" if bundle == self._configs.baseline.bundle else bundle.parent.name

    def translated(self, name: str, text: Text, models: list[Path], command: Sequence[str]) -> Path:
        """Translate a text into pairs; doubtful translations are left out.

        Args:
            name: of the stage.
            text: what is translated.
            models: one, or an ensemble.
            command: of ``mtformer data``, with the text, that does the same by hand.
        """
        path = self._configs.folder / f"{name}.jsonl"

        def do() -> Outcome:
            log.info("stage %s", name)
            if not path.exists():  # it appears when it is complete
                job = GenerationJob(text=text, models=models, output=path, resume=True)
                try:
                    core.run(job, partial(Translator.load, models, engine="auto"))
                except KeyboardInterrupt:  # the job knows only its own output, which may be empty
                    log.warning("stopped; rerun the same command to resume %s", self._configs.folder.parent)
                    raise
            by_hand = shlex.join(["mtformer", "data", *command, *_options(models), "--output", str(path)])
            return Outcome(stage=name, commands=[by_hand])

        self._state.once(do, name)
        return path

    def _eval(self, models: Sequence[Path]) -> str:
        data = f"jsonl:{self._configs.valid}"
        return shlex.join(["mtformer", "eval", "--engine", "torch", *_options(models), "--data", data])


def _gain(score: float, before: float) -> float:
    """Return the difference of two scores as it is reported: less is no gain."""
    return round(score - before, 2)


def _options(models: Sequence[Path]) -> list[str]:
    return [part for model in models for part in ("--model", str(model))]
