"""Models for other programs compute what ours do."""

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch
from conftest import Project

from mtformer import Translator
from mtformer.bundle import Bundle, load_bundle
from mtformer.export.ctranslate2 import to_spec
from mtformer.search import TorchEngine

FIXTURE = Path(__file__).parent / "fixtures/bundle-2.safetensors"
SENTENCE = "the red house sees my old friend."


def untrained(**architecture: Any) -> Bundle:
    """A bundle of two encoder layers and one decoder layer, with random weights everywhere."""
    bundle = load_bundle(FIXTURE)
    changed = bundle.header.architecture.model_copy(
        update={"n_encoder_layers": 2, "n_decoder_layers": 1} | architecture
    )
    torch.manual_seed(1)
    model = changed.build().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return replace(bundle, model=model, header=bundle.header.model_copy(update={"architecture": changed}))


@pytest.mark.parametrize(
    ("norm", "norm_type", "activation", "positions", "tied"),
    [
        *product(["pre", "post"], ["layernorm", "rmsnorm"], ["relu"], ["sinusoidal", "learned", "rotary"], [True]),
        ("pre", "layernorm", "gelu", "sinusoidal", True),
        ("pre", "layernorm", "swiglu", "sinusoidal", True),
        ("post", "layernorm", "relu", "sinusoidal", False),
    ],
)
def test_ctranslate2_gives_the_log_probabilities_of_every_architecture(
    tmp_path: Path, norm: str, norm_type: str, activation: str, positions: str, tied: bool
) -> None:
    bundle = untrained(norm=norm, norm_type=norm_type, activation=activation, positions=positions, tie_embeddings=tied)
    spec = to_spec(bundle)
    spec.validate()
    spec.optimize()
    spec.save(str(tmp_path))
    translator = ctranslate2.Translator(str(tmp_path), compute_type="float32", intra_threads=1)
    sources = [[*range(10, 20), 3], [*range(30, 33), 3]]
    targets = [[*range(40, 44)], [*range(50, 59)]]
    found = translator.score_batch(
        list(map(bundle.tokenizer.src_tokens, sources)), list(map(bundle.tokenizer.tgt_tokens, targets))
    )
    for ours, theirs in zip(TorchEngine(bundle.model).score(sources, targets), found, strict=True):
        assert theirs.log_probs == pytest.approx(ours, abs=1e-4)


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_export_writes_a_folder_that_translates_as_its_readme_says(
    trained: Project, tmp_path: Path, quantization: str
) -> None:
    model, folder = trained.folder / "runs/config/model.safetensors", tmp_path / "exported"
    result = trained.mtformer(
        "export", model, "--to", "ctranslate2", "--output", folder, "--quantization", quantization
    )
    assert (result.status, result.stdout) == (0, f"{folder}\n"), result.stderr
    readme = (folder / "README.md").read_text(encoding="utf-8")
    code = "\n".join(line.removeprefix("    ") for line in readme.splitlines() if line.startswith("    "))
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        exec(code.replace("…", SENTENCE), {"print": printed.append})
    [[best]] = Translator.load(model).translate([SENTENCE])
    assert printed == [best.text]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--output", "."), ". exists: name a new folder with --output"),
        (("--output", "new", "--quantization", "int4"), "--quantization int4: it is one of float32, float16"),
    ],
)
def test_bad_arguments_of_export_are_explained(trained: Project, arguments: tuple[str, ...], message: str) -> None:
    result = trained.mtformer("export", "runs", "--to", "ctranslate2", *arguments)
    assert result.status == 2
    assert message in result.stderr
    assert not (trained.folder / "new").exists()


def test_a_package_that_is_missing_is_named(trained: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    result = trained.mtformer("export", "runs", "--to", "ctranslate2", "--output", "new")
    assert result.status == 2
    assert "needs the package ctranslate2, which is not installed; pip install 'mtformer[ctranslate2]'" in result.stderr
