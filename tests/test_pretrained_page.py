"""The commands of docs/pretrained.md lead from a model of another toolkit to one that is tuned and exported."""

import re
import shlex
from pathlib import Path

import pytest
from conftest import Project, sentence_pairs, write_pairs
from pretrained import case_of
from test_docs import blocks

PAGE = (Path(__file__).parent.parent / "docs/pretrained.md").read_text(encoding="utf-8")
MODEL = "hf:Helsinki-NLP/opus-mt-en-de"
SHORTER = {
    "train": ["--set", "training.max_steps=2", "--set", "training.max_tokens=512"],
    "compare": ["--resamples", "20", "--trials", "20"],
}


def test_the_commands_of_the_page_work(tmp_path_factory: pytest.TempPathFactory, tmp_path: Path) -> None:
    """A stand-in takes the place of the model of the hub, and training is short."""
    for number, name in enumerate(("mine", "mine.valid", "mine.test", "general", "general.valid")):
        write_pairs(tmp_path, name, sentence_pairs(12, seed=number))
    project = Project(tmp_path, tmp_path / "tuned.yaml")
    theirs = case_of("marian_two_vocabularies", tmp_path_factory).folder
    [section] = re.findall(r"## From OPUS-MT to your own model\n(.*?)\n## ", PAGE, re.DOTALL)
    n_commands = 0
    for block in blocks(section):
        config, _, commands = block.rpartition("\n\n") if block.startswith("data:") else ("", "", block)
        if config:
            project.config.write_text(config, encoding="utf-8")
        for line in commands.splitlines():
            [_, command, *arguments] = shlex.split(line.replace(MODEL, str(theirs)))
            result = project.mtformer(command, *arguments, *SHORTER.get(command, []))
            assert result.status == 0, f"{line}\n{result.stderr}"
            n_commands += 1
    assert n_commands == 9
    sizes = [(tmp_path / "models" / name / "model.safetensors").stat().st_size for name in ("en-de", "small")]
    assert sizes[1] < 0.9 * sizes[0]
