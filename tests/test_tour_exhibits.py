"""scripts/recurrent.py and scripts/tour_pictures.py: the comparisons and pictures of docs/tour.md."""

import json
import runpy
import struct
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from conftest import sentence_pairs, training_settings

from mtformer.config import ModelConfig, TokenizerConfig
from mtformer.data.batches import pad
from mtformer.data.tokens import Encoder
from mtformer.model.architecture import Architecture
from mtformer.model.positions import sinusoidal_table
from mtformer.model.transformer import Transformer
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer

ROOT = Path(__file__).parent.parent
SVG = "{http://www.w3.org/2000/svg}"
PAIRS = [SentencePair(*pair) for pair in sentence_pairs(200)]


@pytest.fixture(scope="module")
def scripts() -> Any:
    """The names of both scripts, which import their neighbours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "scripts")
        return {
            **runpy.run_path(str(ROOT / "scripts/recurrent.py")),
            **runpy.run_path(str(ROOT / "scripts/tour_pictures.py")),
        }


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(PAIRS, TokenizerConfig(vocab_size=300), "en", "de", adjust=True)


@pytest.fixture(scope="module")
def architecture(tokenizer: Tokenizer) -> Architecture:
    config = ModelConfig(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=2, n_decoder_layers=2, dropout=0)
    return config.architecture(
        src_vocab_size=tokenizer.src_vocab_size,
        tgt_vocab_size=tokenizer.tgt_vocab_size,
        joint=tokenizer.joint,
        max_length=64,
    )


@pytest.mark.parametrize("attends", [False, True])
@torch.inference_mode()
def test_a_recurrent_network_ignores_padding_and_reads_token_by_token(
    attends: bool, scripts: Any, architecture: Architecture
) -> None:
    torch.manual_seed(1)
    model = scripts["Recurrent"](architecture, 12, attends=attends).eval()
    rows, tgt_in = [[7, 8, 3], [4, 5, 6, 9, 8, 3]], torch.tensor([[2, 5, 6], [2, 9, 4]])
    src = pad(rows, 0)
    together = model(src, src != 0, tgt_in)
    for row, tgt, expected in zip(rows, tgt_in, together, strict=True):
        alone = torch.tensor([row])
        torch.testing.assert_close(model(alone, alone != 0, tgt[None])[0], expected)
    decoder = scripts["RecurrentDecoder"](model, src, src != 0)
    decoder.select(torch.tensor([1, 0]), torch.zeros(2, 1, dtype=torch.long))
    steps = torch.stack([decoder.step(tokens) for tokens in tgt_in.flip(0).T], dim=1)
    torch.testing.assert_close(steps.flip(0), model.output.project(together).log_softmax(dim=-1))


def test_the_memory_reaches_the_decoder_by_attention_only_where_there_is_some(
    scripts: Any, architecture: Architecture
) -> None:
    src, tgt_in = torch.tensor([[7, 8, 3]]), torch.tensor([[2, 5, 6]])
    for attends in (False, True):
        model = scripts["Recurrent"](architecture, 12, attends=attends)
        memory, state = model.encode(src, src != 0)
        [changed] = torch.autograd.grad(
            model.decode(tgt_in, memory, src != 0, state)[0].sum(), memory, allow_unused=True
        ) or [None]
        assert (changed is not None) == attends


def test_products_that_wait_for_each_other_grow_with_the_length_of_recurrent_networks_only(
    scripts: Any, architecture: Architecture
) -> None:
    count = scripts["products_in_a_row"]
    assert [count(Transformer(architecture), length) for length in (8, 80)] == [33, 33]
    plain, attending = (scripts["Recurrent"](architecture, 12, attends=attends) for attends in (False, True))
    assert [count(plain, length) for length in (8, 80)] == [2 * 9 + 2, 2 * 81 + 2]
    assert count(attending, 8) == count(plain, 8) + 3


def test_texts_are_one_to_four_sentences_and_use_each_once(scripts: Any) -> None:
    texts = scripts["texts_of"](PAIRS, seed=1)
    assert " ".join(text.src for text in texts) == " ".join(pair.src for pair in PAIRS)
    assert "".join(text.tgt for text in texts) == "".join(pair.tgt for pair in PAIRS)
    assert {text.src.count(".") for text in texts} == {1, 2, 3, 4}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["LSTM with attention", "Transformer"])
def test_models_learn_from_the_same_batches_and_are_scored_by_length(
    name: str, scripts: Any, tokenizer: Tokenizer, architecture: Architecture, tmp_path: Path
) -> None:
    class Bundle:
        header = type("Header", (), {"architecture": architecture})

    bundle: Any = Bundle()
    bundle.tokenizer = tokenizer
    corpus = Encoder(tokenizer, max_length=64, max_ratio=9.0).corpus(PAIRS[:40])
    settings = training_settings(max_tokens=256, ema_decay=0.9)
    setting = scripts["Setting"](bundle, settings, corpus, 2, PAIRS[:20])
    model, facts = scripts["trained"](name, setting, tmp_path, [1e-6, 0.01])
    assert facts["rate"] == 0.01
    again, same = scripts["trained"](name, setting, tmp_path, [1e-6, 0.01])
    assert same == facts
    rows = scripts["quality"](again, setting)
    assert rows == scripts["quality"](model, setting)
    assert sum(row["texts"] for row in rows) == 20


def pixels_of(image: ElementTree.Element) -> np.ndarray:
    data = b64decode(image.attrib["href"].removeprefix("data:image/png;base64,"))
    width, height = struct.unpack(">II", data[16:24])
    length = struct.unpack(">I", data[33:37])[0]
    rows = np.frombuffer(zlib.decompress(data[41 : 41 + length]), np.uint8).reshape(height, -1)
    assert not rows[:, 0].any()  # no filter
    return rows[:, 1:].reshape(height, width, 4)


def test_the_table_of_positions_is_drawn_value_by_value(scripts: Any) -> None:
    picture = ElementTree.fromstring(scripts["draw_positions"](n_positions=50, d_model=64))
    [image] = picture.iter(f"{SVG}image")
    pixels, table = pixels_of(image), sinusoidal_table(50, 64).numpy()
    opacity = pixels[..., 3] / 255
    assert opacity == pytest.approx(np.abs(table), abs=1 / 30 + 0.003)
    is_blue = pixels[..., 2] > pixels[..., 0]
    assert (is_blue == (table > 0))[opacity > 0].all()


@torch.inference_mode()
def test_matrices_and_vectors_are_drawn(scripts: Any, tokenizer: Tokenizer, architecture: Architecture) -> None:
    model = Transformer(architecture).eval()
    pictures = [scripts["draw_matrices"](model), scripts["draw_noun"](model, tokenizer, "house")]
    matrices, noun = map(ElementTree.fromstring, pictures)
    images = list(matrices.iter(f"{SVG}image"))
    assert [pixels_of(image).shape[:2] for image in images] == [(16, 16)] * 4 + [(24, 24)] * 2
    points = [path.attrib for path in noun.iter(f"{SVG}path") if "fill-opacity" in path.attrib]
    assert len(points) == 3 * 30 + 3  # in each of three panels, and in the legend
    assert {point["class"] for point in points} == {"a", "b", "c"}


def test_curves_go_through_the_results(scripts: Any, tmp_path: Path) -> None:
    quality = [{"longest": longest, "bleu": bleu} for longest, bleu in ((8, 100.0), (16, 50.0), (99, 0.0))]
    times = [{"length": length, "ms": ms} for length, ms in ((8, 100.0), (1024, 200.0))]
    results = tmp_path / "recurrent.json"
    results.write_text(
        json.dumps({name: {"quality": quality, "updates_by_length": times} for name in scripts["MODELS"]})
    )
    picture = ElementTree.fromstring(scripts["draw_recurrent"](results))
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in picture.iter(f"{SVG}circle")]
    assert dots[:3] == [(46, 66), (246, 141), (446, 216)]
    assert dots[3:5] == [(46, 361), (446, 286)]
    assert {"1–8", "9–16", "over 16", "1,024", "LSTM with attention"} <= {e.text for e in picture.iter(f"{SVG}text")}
