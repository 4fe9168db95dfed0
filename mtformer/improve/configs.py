"""The configs of the trainings of an improvement. Each is a file, so that ``mtformer train`` can repeat it by hand."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from mtformer.config import Config, LanguagePair, ResolvedConfig, load_config
from mtformer.runs.folder import RunFolder
from mtformer.support.files import write_text


@dataclass(frozen=True)
class Configs:
    """Writes the configs.

    Attributes:
        folder: where they go, and the runs and the text as well.
        config: the user's.
        resolved: that of the baseline, with nothing left open: the teachers have its settings.
        baseline: the folder of its run.
    """

    folder: Path
    config: Config
    resolved: ResolvedConfig
    baseline: RunFolder

    @property
    def languages(self) -> LanguagePair:
        """The direction of the final model."""
        return self.config.data.language_pairs[0]

    @property
    def texts(self) -> list[Path]:
        """The pairs that the baseline was trained on, a file for each source."""
        return [self.folder / f"train.{number}.jsonl" for number in range(1, 1 + len(self.config.data.train))]

    @property
    def valid(self) -> Path:
        """The validation pairs."""
        return self.folder / "valid.jsonl"

    def run(self, name: str) -> RunFolder:
        """Return the folder of a training."""
        return RunFolder(self.folder / name)

    def path(self, name: str) -> Path:
        """Return the file of a config."""
        return self.folder / f"{name}.yaml"

    def teacher(self, name: str, number: int = 1, *, reverse: bool = False) -> Config:
        """Write the config of a model like the baseline, in either direction; from number 2 on, with another seed."""
        seed = (self.resolved.training.seed + number - 1) % 2**31  # which are less than that
        values = self._values(name, seed=seed)
        data = values["data"]
        if reverse:
            data |= {"src_lang": self.languages.tgt_lang, "tgt_lang": self.languages.src_lang, "terms": None}
            values["tokenizer"] |= self._tokenizer(reverse=True)
        return self._written(name, values)

    def student(self, texts: Sequence[Path], n_steps: int, size: str | None) -> Config:
        """Write the config of the final model.

        Args:
            texts: what it is trained on besides the original text.
            n_steps: its updates.
            size: its preset; None for that of the baseline.
        """
        values = self._values("student", texts, max_steps=n_steps)
        values["data"]["test"] = self._test()
        return self._written("student", values | self.sized(values["training"], size))

    def continued(self, name: str, start: Path, texts: Sequence[Path], n_steps: int) -> Config:
        """Write the config that trains a model on, with ``texts`` besides the original one."""
        values = self._values(name, texts, max_steps=n_steps)
        values["data"]["test"] = self._test()
        values |= {"tokenizer": {}, "model": {}}
        values["training"] |= {"init_from": str(start.absolute()), "learning_rate": None, "warmup_steps": None}
        return self._written(name, values)

    def sized(self, training: dict[str, Any], size: str | None) -> dict[str, Any]:
        """Return the sections that another size of the model changes."""
        if size is None:
            return {}
        given = self.config.training
        rates = {"learning_rate": given.learning_rate, "warmup_steps": given.warmup_steps}
        return {"model": {"preset": size}, "training": training | rates}

    def _values(self, name: str, texts: Sequence[Path] = (), **training: Any) -> dict[str, Any]:
        """Return the settings of the baseline, with the copies of its text and ``texts``."""
        values = self.resolved.model_dump(mode="json", exclude={"provenance"})
        own = [
            {"jsonl": path.name, "weight": source.weight, "tag": source.tag}
            for path, source in zip(self.texts, self.config.data.train, strict=True)
        ]
        added = [{"jsonl": path.name} for path in texts]
        values["data"] |= {"train": own + added, "valid": [{"jsonl": self.valid.name}], "test": [], "filters": []}
        values["tokenizer"] = self._tokenizer()
        if "max_steps" in training:
            training |= {"max_epochs": None, "max_minutes": None}
        given = self.config.training  # the device of the baseline may be gone, and its weight decay is for less text
        open_again = {"device": given.device, "weight_decay": given.weight_decay}
        values["training"] |= {**open_again, "report": False, "log_to": [], **training}
        values["run"] = {"dir": str(self.folder), "name": name}
        return values

    def _tokenizer(self, *, reverse: bool = False) -> dict[str, Any]:
        """Return the section that names the tokenizer of the baseline: an ensemble needs the same one."""
        settings = self.resolved.tokenizer
        kept = {"user_symbols": settings.user_symbols, "slots": settings.slots}
        if settings.joint:
            return kept | {"model": str(self.baseline.joint_tokenizer.absolute())}
        src, tgt = self.baseline.separate_tokenizers[:: -1 if reverse else 1]
        return kept | {"src_model": str(src.absolute()), "tgt_model": str(tgt.absolute())}

    def _test(self) -> list[dict[str, Any]]:
        """Return the test set of the config, or the one that the baseline has held out."""
        if "test" not in self.config.data.held_out:
            return [source.model_dump(mode="json") for source in self.config.data.test]
        src, tgt = self.baseline.held_out_files("test", self.languages)
        return [{"src": str(src.absolute()), "tgt": str(tgt.absolute())}] if src.is_file() else []

    def _written(self, name: str, values: dict[str, Any]) -> Config:
        text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True)
        write_text(self.path(name), text)
        return load_config(self.path(name))
