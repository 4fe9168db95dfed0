"""scripts/readme_pictures.py: the pictures say what was measured."""

import runpy
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import torch
from conftest import BOS_ID, Project

from mtformer.bundle.format import load_bundle
from mtformer.model.attention import record_attention
from mtformer.runs.folder import RunFolder
from mtformer.translate.translator import Translator

ROOT = Path(__file__).parent.parent
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The names of the script, which imports its neighbour."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return runpy.run_path(str(ROOT / "scripts" / "readme_pictures.py"))


def write_metrics(folder: Path, *scores: tuple[float, float]) -> RunFolder:
    lines = ['{"step": 50, "seconds": 9.0, "train_loss": 5.0}']
    lines += [f'{{"step": {i}, "seconds": {m * 60}, "valid_bleu": {b}}}' for i, (m, b) in enumerate(scores, 100)]
    folder.mkdir()
    (folder / "metrics.jsonl").write_text("\n".join(lines) + '\n{"step": 9', encoding="utf-8")
    return RunFolder(folder)


def test_the_curve_goes_through_every_validation(tmp_path: Path, script: dict[str, Any]) -> None:
    scores = [(1.0, 10.0), (2.0, 30.0), (4.0, 40.0), (8.0, 35.0)]
    picture = ElementTree.fromstring(script["draw_bleu"](write_metrics(tmp_path / "run", *scores)))
    points = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in picture.iter(f"{SVG}circle")]
    assert len(points) == len(scores)
    (x0, y0), (x1, y1), *_ = points
    for (x, y), (minutes, bleu) in zip(points, scores, strict=True):  # both axes are linear
        assert x == pytest.approx(x0 + (x1 - x0) * (minutes - 1), abs=0.5)
        assert y == pytest.approx(y0 + (y1 - y0) * (bleu - 10) / 20, abs=0.5)
    assert y1 < y0
    words = [element.text for element in picture.iter(f"{SVG}text")]
    assert {"0", "40", "40.0", "minutes of training"} <= set(words)


def test_a_run_without_validations_has_no_curve(tmp_path: Path, script: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="no validation with a BLEU score"):
        script["draw_bleu"](write_metrics(tmp_path / "run"))


@pytest.mark.parametrize(("kind", "pattern"), [("encoder", r"\bmy"), ("cross", r"\bmein")])
def test_the_lines_are_the_weights_of_the_model(
    kind: str, pattern: str, trained: Project, script: dict[str, Any]
) -> None:
    bundle = load_bundle(trained.folder / "runs/config/model.safetensors")
    sentence = "the red house needs my old friend."
    panel = script["panel_of"](Translator.load(bundle), script["Head"](kind, 1, 2, *[0.0] * 6), sentence, pattern)
    [src] = bundle.tokenizer.encode_src([sentence])
    [tgt] = bundle.tokenizer.encode_tgt(["das rote Haus braucht mein alter Freund."])
    with torch.inference_mode(), record_attention(bundle.model) as recorded:
        src_mask = torch.ones(1, len(src), dtype=torch.bool)
        bundle.model(torch.tensor([src]), src_mask, torch.tensor([[BOS_ID, *tgt[:-1]]]))
    name = {"encoder": "encoder_layers.0.self_attention", "cross": "decoder_layers.0.cross_attention"}[kind]
    expected = recorded[name][0][0, 1, panel.row].tolist()
    assert list(panel.columns) == bundle.tokenizer.src_tokens(src)
    assert list(panel.rows) == (panel.columns if kind == "encoder" else bundle.tokenizer.tgt_tokens(tgt))
    assert panel.weights == pytest.approx(expected, abs=1e-5)
    picture = ElementTree.fromstring(script["svg"]("it", script["draw_panel"](panel, 0.0)))
    drawn = [float(title.text or "nan") for path in picture.iter(f"{SVG}path") for title in path.iter(f"{SVG}title")]
    assert drawn == pytest.approx([weight for weight in expected if weight >= 0.005], abs=0.0006)
