"""Draw the pictures of docs/tour.md.

usage: python scripts/tour_pictures.py RUN RECURRENT [--output docs/pictures]

RUN is a run on the phrasebook from English to Chinese, RECURRENT the file recurrent.json of scripts/recurrent.py:

* positions.svg: the table of sinusoidal positions, and products of its rows;
* matrices.svg: W^Q, W^K, W^V and W^O of the first self-attention;
* chips.svg: the vectors of *chips* in sentences with its three senses, from layer to layer;
* recurrent.svg: BLEU and time per update by length, of recurrent networks and the Transformer.
"""

import argparse
import json
import struct
import zlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from program import run_program
from pronoun_attention import places_of
from readme_pictures import line_through, svg, text
from torch import Tensor

from mtformer.model.layers import EncoderLayer, Residual
from mtformer.model.positions import sinusoidal_table
from mtformer.model.transformer import Transformer
from mtformer.runs.finding import find_model
from mtformer.support.files import open_atomically
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.translate.translator import Translator

POSITIVE, NEGATIVE = (47, 129, 247), (224, 108, 36)  # blue and orange, on white as well as on black
N_SHADES = 15  # few compress well
SUBJECTS = ("I", "You", "She", "He", "We", "They", "Tom", "Emma", "Anna", "Peter")
VERBS = ("ate", "designed", "bet")
KINDS = ("a", "b", "c")  # the classes of three colours


class Box(NamedTuple):
    """A place in the picture."""

    x: float
    y: float
    width: float
    height: float

    @property
    def bottom(self) -> float:
        """The lower edge."""
        return self.y + self.height


def png(pixels: np.ndarray) -> bytes:
    """Return the PNG file of (height, width, 4) red, green, blue and opacity."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def heatmap(values: Tensor, box: Box, most: float) -> str:
    """Draw a matrix: blue above zero and orange below, the stronger the farther from it, up to ``most``."""
    shades = (values / most).clamp(-1, 1).mul(N_SHADES).round() / N_SHADES
    pixels = np.empty((*values.shape, 4), np.uint8)
    pixels[..., :3] = np.where((shades < 0)[..., None], NEGATIVE, POSITIVE)
    pixels[shades == 0] = 0
    pixels[..., 3] = (shades.abs() * 255).round().byte().numpy()
    data = b64encode(png(pixels)).decode()
    return (
        f'<image x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" '
        f'preserveAspectRatio="none" style="image-rendering: pixelated" href="data:image/png;base64,{data}"/>'
    )


def frame(box: Box) -> str:
    """Draw the edges of a box."""
    return (
        f'<rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" fill="none" '
        'class="line"/>'
    )


def curve(values: Sequence[float], box: Box, most: float, kind: str, *, dots: bool = False) -> Iterator[str]:
    """Draw values from 0 to ``most`` at equal distances over the width of a box."""
    places = [
        (box.x + box.width * i / (len(values) - 1), box.bottom - box.height * value / most)
        for i, value in enumerate(values)
    ]
    yield f'<path class="{kind} curve" d="{line_through(places)}"/>'
    if dots:
        yield from (f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)


def ticks(box: Box, most: float, marks: Sequence[float], labels: Sequence[str]) -> Iterator[str]:
    """Draw a line with its number at each of ``marks``, and ``labels`` at equal distances below."""
    for mark in marks:
        y = box.bottom - box.height * mark / most
        yield f'<path class="line" d="M{box.x:.1f} {y:.1f}h{box.width:.1f}"/>'
        yield text(box.x - 6, y + 4, f"{mark:,g}", "muted small", "end")
    for i, label in enumerate(labels):
        yield text(box.x + box.width * i / (len(labels) - 1), box.bottom + 16, label, "muted small", "middle")


def draw_positions(n_positions: int = 60, d_model: int = 128) -> str:
    """Draw the table of positions, and below it the products of two of its rows with all."""
    table = sinusoidal_table(n_positions, d_model)
    box, below = Box(46, 44, 418, 240), Box(46, 342, 418, 100)
    parts = [text(16, 24, "A row for each position: sines and cosines", "title"), heatmap(table, box, 1), frame(box)]
    for position in range(0, n_positions, 10):
        y = box.y + box.height * (position + 0.5) / n_positions
        parts.append(text(box.x - 6, y + 4, str(position), "muted small", "end"))
    for dimension in range(0, d_model, 16):
        x = box.x + box.width * (dimension + 0.5) / d_model
        parts.append(text(x, box.bottom + 15, str(dimension), "muted small", "middle"))
    parts.append(text(16, 326, "Products of rows 15 and 40 with every row", "title"))
    products = table[[15, 40]] @ table.T
    parts += ticks(below, d_model / 2, (0, d_model / 4, d_model / 2), [str(i) for i in range(0, n_positions + 1, 10)])
    for row, kind in zip(products.tolist(), KINDS, strict=False):
        parts += curve(
            row, Box(*below[:2], below.width * (n_positions - 1) / n_positions, below.height), d_model / 2, kind
        )
    return svg("Sinusoidal positions", parts, height=474)


def draw_matrices(model: Transformer, n_positions: int = 24) -> str:
    """Draw the four matrices of the first self-attention, and the scores that its heads give to positions alone."""
    layer = model.encoder_layers[0]
    assert isinstance(layer, EncoderLayer)
    residual, attention = layer.residuals[0], layer.self_attention
    assert isinstance(residual, Residual) and isinstance(residual.norm.weight, Tensor)
    n_heads, d_model = attention.n_heads, attention.d_model
    weights = [*attention.qkv_proj.weight.chunk(3), attention.out_proj.weight]
    side, parts = 206.0, list[str]()
    for number, (name, weight) in enumerate(zip("QKVO", weights, strict=True)):
        box = Box(22 + number % 2 * 230, 34 + number // 2 * 242, side, side)
        parts.append(text(box.x, box.y - 10, f"W^{name}", "title"))
        parts += [heatmap(weight.T, box, 3 * weight.std().item()), frame(box)]
        for at in (side * head / n_heads for head in range(1, n_heads)):
            line = f"M{box.x:.1f} {box.y + at:.1f}h{side}" if name == "O" else f"M{box.x + at:.1f} {box.y:.1f}v{side}"
            parts.append(f'<path class="line" d="{line}"/>')
    parts.append(text(22, 516, "What heads 1 to 4 say of positions alone", "title"))
    table = sinusoidal_table(n_positions, d_model) * residual.norm.weight
    heads = [(table @ weight.T).unflatten(1, (n_heads, -1)).transpose(0, 1) for weight in weights[:2]]  # (H, n, Dh)
    scores = heads[0] @ heads[1].transpose(1, 2)  # (H, n, n)
    scores = scores - scores.mean(dim=2, keepdim=True)  # which softmax does not see
    for number, of_head in enumerate(scores[:4]):
        box = Box(22 + number * 110, 530, 102, 102)
        parts += [heatmap(of_head, box, of_head.abs().max().item()), frame(box)]
    parts.append(text(22, 654, "rows ask, columns are asked; blue: more than the mean, orange: less", "muted small"))
    return svg("The matrices of an attention", parts, height=668)


def vectors_of_noun(model: Transformer, tokenizer: Tokenizer, verb: str, noun: str) -> Tensor:
    """Return ``noun`` after ``verb``, (subjects, layers + 1, D): the encoder's input and what leaves each layer."""
    vectors = []
    for ids in tokenizer.encode_src([f"{subject} {verb} {noun}." for subject in SUBJECTS]):
        states = [model.embed_src(torch.tensor([ids]))]
        for layer in model.encoder_layers:
            states.append(layer(states[-1], None))
        vectors.append(torch.cat(states)[:, places_of(rf"\b{noun}\b", tokenizer.src_tokens(ids))[-1]])
    return torch.stack(vectors)


def draw_noun(model: Transformer, tokenizer: Tokenizer, noun: str = "chips") -> str:
    """Draw a point for each sentence, in the plane in which the vectors after the last layer differ most."""
    vectors = torch.stack(
        [vectors_of_noun(model, tokenizer, verb, noun) for verb in VERBS]
    )  # (verbs, subjects, stages, D)
    centered = vectors - vectors.mean(dim=(0, 1))
    plane = torch.linalg.svd(centered[:, :, -1].flatten(0, 1))[2][:2]  # (2, D)
    places = centered @ plane.T  # (verbs, subjects, stages, 2)
    side, most = 136.0, 1.1 * places.abs().max().item()
    parts = [text(16, 24, f"“{noun}” in 30 sentences, from layer to layer", "title")]
    for stage in range(places.size(2)):
        box = Box(16 + stage * (side + 20), 60, side, side)
        name = f"after layer {stage}" if stage else "before the layers"
        parts += [text(box.x + side / 2, 50, name, "muted small", "middle"), frame(box)]
        for number, of_verb in enumerate(places[:, :, stage].tolist()):
            for x, y in of_verb:
                parts.append(mark(box.x + side * (x / most + 1) / 2, box.y + side * (y / most + 1) / 2, number))
    for number, verb in enumerate(VERBS):
        x = 24 + number * 156
        parts += [mark(x, 220, number), text(x + 12, 224.5, f"… {verb} {noun}.", KINDS[number])]
    return svg("How the vectors of a word move from layer to layer", parts, height=242)


def mark(x: float, y: float, number: int) -> str:
    """Draw a circle, a square or a triangle."""
    shapes = (
        f"M{x - 4:.1f} {y:.1f}a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
        f"M{x - 3.5:.1f} {y - 3.5:.1f}h7v7h-7z",
        f"M{x:.1f} {y - 4.5:.1f}l4.5 8h-9z",
    )
    return f'<path class="{KINDS[number]}" fill-opacity="0.6" d="{shapes[number]}"/>'


def draw_recurrent(results: Path) -> str:
    """Draw BLEU and the time per update over the length."""
    models = json.loads(results.read_text(encoding="utf-8"))
    above, below = Box(46, 66, 400, 150), Box(46, 286, 400, 150)
    parts = [text(16, 24, "BLEU by the length of the source", "title")]
    for number, name in enumerate(models):
        x = 46 + (0, 84, 252)[number]
        parts += [f'<path class="{KINDS[number]} curve" d="M{x} 45h14"/>', text(x + 20, 49, name, KINDS[number])]
    ends = [0, *(row["longest"] for row in next(iter(models.values()))["quality"])]
    labels = [f"{start + 1}–{end}" if end < 99 else f"over {start}" for start, end in pairwise(ends)]
    parts += ticks(above, 100, (0, 50, 100), labels)
    parts.append(text(16, 266, "Milliseconds for an update on 4,096 tokens, by their length", "title"))
    times = {name: [row["ms"] for row in model["updates_by_length"]] for name, model in models.items()}
    most = 100 * -(-max(map(max, times.values())) // 100)
    lengths = [f"{row['length']:,}" for row in next(iter(models.values()))["updates_by_length"]]
    parts += ticks(below, most, (0, most / 2, most), lengths)
    for kind, (name, model) in zip(KINDS, models.items(), strict=True):
        parts += curve([row["bleu"] for row in model["quality"]], above, 100, kind, dots=True)
        parts += curve(times[name], below, most, kind, dots=True)
    return svg("Recurrent networks and the Transformer by length", parts, height=470)


@torch.inference_mode()
def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a run on the phrasebook from English to Chinese")
    parser.add_argument("recurrent", type=Path, help="recurrent.json of scripts/recurrent.py")
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"), help="the folder of the pictures")
    arguments = parser.parse_args()
    translator = Translator.load(find_model(arguments.run), device="cpu")
    model = translator.engine.model  # type: ignore[attr-defined]
    pictures = {
        "positions.svg": draw_positions(),
        "matrices.svg": draw_matrices(model),
        "chips.svg": draw_noun(model, translator.tokenizer),
        "recurrent.svg": draw_recurrent(arguments.recurrent),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        with open_atomically(arguments.output / name) as file:
            file.write(picture.encode())


if __name__ == "__main__":
    run_program(main)
