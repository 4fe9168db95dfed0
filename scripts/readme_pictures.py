"""Draw the pictures at the top of the README: what *it* attends to, and BLEU over minutes of training.

The first run must be a phrasebook model from English. Of its heads the one is drawn that knows best what *it* refers to
(see pronoun_attention.py), in two sentences that differ in their last word. The second run gives the curve.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from program import run_program
from pronoun_attention import Head, measure, places_of, questions

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.phrasebook.splits import held_out
from mtformer.runs.finding import find_model
from mtformer.runs.folder import Journal, RunFolder
from mtformer.support.errors import UserError
from mtformer.support.files import open_atomically
from mtformer.translate.translator import Translator

SENTENCE = "The animal did not cross the street because it was too {}."
REASONS = ("tired", "wide")
WIDTH, HEIGHT = 480, 340
FAINTEST = 0.005  # of the weights that are drawn
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", "Noto Sans", "Noto Sans CJK SC", sans-serif; fill: #1f2328 }
  .card { fill: #ffffff } .muted { fill: #656d76 } .small { font-size: 11px } .title { font-weight: 600 }
  .line { stroke: #d0d7de } .ink { stroke: #0969da; fill: none } .dot, .strong { fill: #0969da }
  .strong { font-weight: 700 }
  .a { stroke: #0969da; fill: #0969da } .b { stroke: #bc4c00; fill: #bc4c00 } .c { stroke: #1a7f37; fill: #1a7f37 }
  .curve { fill: none; stroke-width: 2; stroke-linejoin: round } text.a, text.b, text.c { stroke: none }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .card { fill: #0d1117 } .muted { fill: #9198a1 } .line { stroke: #3d444d }
    .ink { stroke: #58a6ff } .dot, .strong { fill: #58a6ff }
    .a { stroke: #58a6ff; fill: #58a6ff } .b { stroke: #f0883e; fill: #f0883e } .c { stroke: #3fb950; fill: #3fb950 }
    .curve { fill: none }
  }
"""


Place = Callable[[float, float], tuple[float, float]]


def svg(title: str, parts: Sequence[str], height: int = HEIGHT) -> str:
    """Return a picture that follows the reader's light or dark theme, its background included."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n"
        f'<rect class="card" width="{WIDTH}" height="{height}" rx="6"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return ``words`` at a point; ``kind`` names classes of the style."""
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


@dataclass(frozen=True)
class Panel:
    """What one token attends to.

    Attributes:
        title: stands above.
        rows: the tokens whose attention it is: of the source, or of the translation in cross-attention.
        row: the place of the one to draw.
        columns: the source's tokens.
        weights: of that token on each of ``columns``.
    """

    title: str
    rows: Sequence[str]
    row: int
    columns: Sequence[str]
    weights: Sequence[float]


def panel_of(translator: Translator, head: Head, source: str, pattern: str, title: str = "") -> Panel:
    """Translate ``source`` and return what the token that matches ``pattern`` attends to."""
    trace = translator.explain(source)
    columns = [token.text for token in trace.source.tokens]
    rows = columns if head.kind == "encoder" else [token.text for token in trace.target.tokens]
    row = places_of(pattern, rows)[0]
    weights = trace.attention(head.kind, layer=head.layer, head=head.number)[row]
    return Panel(title, rows, row, columns, weights.tolist())


def draw_panel(panel: Panel, x: float) -> list[str]:
    """Draw both lists of tokens, and a line from the one that attends to each other, as thick as its weight."""
    pitch = min(20.0, 270 / max(len(panel.rows), len(panel.columns)))
    left, right, top = x + 92, x + 150, 48.0
    start = top + panel.row * pitch - 4
    parts = [text(x + WIDTH / 4, 22, panel.title, "title", "middle")]
    for place, token in enumerate(panel.rows):
        kind = "strong" if place == panel.row else "muted"
        parts.append(text(left, top + place * pitch, token.replace("▁", ""), kind, "end"))
    for place, (token, weight) in enumerate(zip(panel.columns, panel.weights, strict=True)):
        y = top + place * pitch
        kind = "strong" if weight == max(panel.weights) else "muted" if weight < 0.1 else ""
        parts.append(text(right, y, token.replace("▁", ""), kind))
        if weight >= FAINTEST:
            parts.append(
                f'<path class="ink" d="M{left + 4:.1f} {start:.1f}C{left + 30:.1f} {start:.1f} {right - 30:.1f} '
                f'{y - 4:.1f} {right - 4:.1f} {y - 4:.1f}" stroke-width="{0.5 + 6 * weight:.2f}" '
                f'stroke-opacity="{0.25 + 0.75 * weight:.2f}"><title>{weight:.3f}</title></path>'
            )
    return parts


def draw_it(bundle: Bundle) -> str:
    """Draw the weights of the best head for *it* in both sentences, side by side."""
    head = measure(bundle.model, questions(bundle, held_out("pronouns")))[0]
    pattern = {"encoder": r"(?<=because )it\b", "cross": r"(?<=weil )\w+|(?<=因为)\w"}[head.kind]
    translator = Translator.load(bundle, device="cpu")
    parts = []
    for number, reason in enumerate(REASONS):
        panel = panel_of(translator, head, SENTENCE.format(reason), pattern, f"… because it was too {reason}.")
        parts += draw_panel(panel, number * WIDTH / 2)
    name = {"encoder": "encoder self-attention", "cross": "cross-attention"}[head.kind]
    caption = f"what {name} looks at for “it” (layer {head.layer}, head {head.number})"
    parts.append(text(WIDTH / 2, HEIGHT - 12, caption, "muted small", "middle"))
    return svg("What “it” attends to", parts)


def axes(title: str, across: str, longest: float, marks: Sequence[int], most: float) -> tuple[list[str], Place]:
    """Draw a line at each of ``marks`` of BLEU, of ``most`` points, over minutes; return what finds a point's place."""
    left, top, right, bottom = 42.0, 40.0, WIDTH - 16.0, HEIGHT - 44.0
    step = next(step for step in (1, 2, 5, 10, 20, 60, 120, 600, 6000) if longest / step <= 8)

    def at(minutes: float, bleu: float) -> tuple[float, float]:
        return left + (right - left) * minutes / (1.02 * longest), bottom - (bottom - top) * bleu / most

    parts = [text(left, 22, title, "title")]
    for bleu in marks:
        _, y = at(0, bleu)
        parts.append(f'<path class="line" d="M{left} {y:.1f}H{right}"/>')
        parts.append(text(left - 8, y + 4, str(bleu), "muted small", "end"))
    minutes = range(0, int(1.02 * longest) + 1, step)
    parts += [text(at(mark, 0)[0], bottom + 16, str(mark), "muted small", "middle") for mark in minutes]
    return [*parts, text((left + right) / 2, bottom + 34, across, "muted small", "middle")], at


def draw_bleu(run: RunFolder) -> str:
    """Draw the BLEU of each validation over the minutes of training until then."""
    lines = Journal(run.metrics).read()
    points = [(line["seconds"] / 60, line["valid_bleu"]) for line in lines if "valid_bleu" in line]
    if not points:
        raise UserError(f"{run.metrics} has no validation with a BLEU score")
    most = 10 * -(-max(bleu for _, bleu in points) // 10)
    title = f"{run.path.name}: BLEU on the validation set"
    parts, at = axes(title, "minutes of training", points[-1][0], range(0, int(most) + 1, 10), most)
    places = [at(*point) for point in points]
    parts.append(f'<path class="ink" d="{line_through(places)}" stroke-width="2" stroke-linejoin="round"/>')
    parts += [f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in places]
    minutes, bleu = max(points, key=lambda point: point[1])
    x, y = at(minutes, bleu)
    parts.append(text(min(x, WIDTH - 16.0), y - 10, f"{bleu:.1f}", "strong", "end"))
    return svg("BLEU over minutes of training", parts)


def line_through(places: Sequence[tuple[float, float]]) -> str:
    """Return the path of straight lines from each place to the next."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def main() -> None:
    """Write both pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phrasebook", type=Path, help="a run on the phrasebook, for it.svg")
    parser.add_argument("curve", type=Path, help="the run whose validations bleu.svg shows")
    parser.add_argument("--output", type=Path, default=Path("docs/pictures"), help="the folder of the pictures")
    arguments = parser.parse_args()
    pictures = {
        "it.svg": draw_it(load_bundle(find_model(arguments.phrasebook))),
        "bleu.svg": draw_bleu(RunFolder(arguments.curve)),
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, picture in pictures.items():
        with open_atomically(arguments.output / name) as file:
            file.write(picture.encode())


if __name__ == "__main__":
    run_program(main)
