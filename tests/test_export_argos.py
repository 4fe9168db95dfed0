"""Packages for Argos Translate: what is in them, and that they translate as the bundle does."""

import json
import zipfile
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import sentencepiece
from conftest import Project, sentence_pairs

from mtformer.bundle.format import load_bundle
from mtformer.export.argos import require_argos
from mtformer.support.errors import UserError

PAIRS = dict(sentence_pairs(20, seed=3))


@pytest.fixture(scope="module")
def package(trained: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the package of the model becomes when it is installed."""
    folder = tmp_path_factory.mktemp("argos")
    made = trained.mtformer("export", "runs/config", "--to", "argos", "--output", folder / "en_de.argosmodel")
    assert (made.status, made.stdout) == (0, f"{folder / 'en_de.argosmodel'}\n"), made.stderr
    with zipfile.ZipFile(folder / "en_de.argosmodel") as archive:
        archive.extractall(folder)
    return folder / "translate-en_de-1_0"


def test_a_package_has_what_argos_translate_looks_for(package: Path) -> None:
    metadata = json.loads((package / "metadata.json").read_text())
    names = {"from_code": "en", "from_name": "English", "to_code": "de", "to_name": "German"}
    assert {name: metadata[name] for name in names} == names
    assert metadata["package_version"] == "1.0"
    assert "mtformer" in (package / "README.md").read_text()


def test_it_translates_as_the_exported_model_does(package: Path, trained: Project, tmp_path: Path) -> None:
    """As argostranslate.translate.apply_packaged_translation calls it, with the sentences of a text."""
    made = trained.mtformer("export", "runs/config", "--to", "ctranslate2", "--output", tmp_path / "exported")
    assert made.status == 0, made.stderr
    tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(package / "sentencepiece.model"))
    tokens = [tokenizer.encode(text, out_type=str) for text in PAIRS]

    def translated(model: Path, sources: list[list[str]]) -> list[str]:
        translator: Any = ctranslate2.Translator(str(model))
        results = translator.translate_batch(
            sources,
            replace_unknowns=True,
            max_batch_size=32,
            batch_type="tokens",
            beam_size=4,
            num_hypotheses=4,
            length_penalty=0.2,
            return_scores=True,
        )
        return [tokenizer.decode_pieces(each.hypotheses[0]).replace("▁", " ").strip() for each in results]

    found = translated(package / "model", tokens)
    assert found == translated(tmp_path / "exported", [[*each, "</s>"] for each in tokens])
    assert sum(map(str.__eq__, found, PAIRS.values())) > len(PAIRS) / 2


def test_models_that_argos_translate_cannot_use(trained: Project) -> None:
    header = load_bundle(trained.folder / "runs/config/model.safetensors").header
    require_argos(header)
    several = header.model_copy(update={"src_lang": "mul", "tgt_lang": "mul", "directions": ("en-de", "de-en")})
    with pytest.raises(UserError, match="models of one direction; this one translates en-de, de-en"):
        require_argos(several)


def test_a_file_that_exists_is_not_replaced(trained: Project, tmp_path: Path) -> None:
    (tmp_path / "a.argosmodel").touch()
    refused = trained.mtformer("export", "runs/config", "--to", "argos", "--output", tmp_path / "a.argosmodel")
    assert (refused.status, refused.stderr.count("\n")) == (2, 1)
