"""Measure the web pages of models: the size of the file, how soon it can translate, and how long a sentence takes.

Each page is opened several times in Chromium; the fastest counts. Opening lasts from the request for the file until the
model is loaded. A lesson (``mtformer explain --output``) is measured from another sentence until all its views show it.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from browser import Opener, started
from program import run_program

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.explain.explanation import describe, explain
from mtformer.explain.live import render_lesson
from mtformer.export.html import render_page
from mtformer.model.weights import count_parameters
from mtformer.runs.finding import find_model
from mtformer.support.errors import UserError
from mtformer.support.terminal import as_text
from mtformer.translate.translator import Translator

HEADER = ("model", "parameters", "bytes", "bytes a parameter", "opens in", "a sentence takes", "a lesson takes")
_OPENED = "translatorPage.engine.ready.then(() => performance.now())"
_TRANSLATED = """async (text) => {
  const start = performance.now();
  await translatorPage.engine.translate(text);
  return performance.now() - start;
}"""

_FOLLOWED = """async (text) => {
  const start = performance.now();
  await lesson.change({ text });
  return performance.now() - start;
}"""


def main() -> None:
    """Print a table with a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, help="bundles or folders of runs, of one direction each")
    parser.add_argument("--text", default="Two young, white males are outside near many bushes.", help="to translate")
    parser.add_argument("--rounds", type=int, default=5, help="how often each page is opened")
    arguments = parser.parse_args()
    models = {model: find_model(model) for model in arguments.models}
    rows = []
    with tempfile.TemporaryDirectory() as folder, started() as opener:
        for model, found in models.items():
            bundle = load_bundle(found)
            path = Path(folder) / "page.html"
            path.write_text(render_page(bundle), encoding="utf-8")
            opened, translated = [], []
            for _ in range(arguments.rounds):
                with opener(path) as page:
                    opened.append(page.evaluate(_OPENED))
                    page.evaluate(_TRANSLATED, "Warm up.")
                    translated.append(page.evaluate(_TRANSLATED, arguments.text))
            n_parameters, size = count_parameters(bundle.model), path.stat().st_size
            times = (
                f"{min(opened):,.0f} ms",
                f"{min(translated):,.0f} ms",
                lesson_time(opener, bundle, path, arguments),
            )
            rows.append((str(model), f"{n_parameters:,}", f"{size:,}", f"{size / n_parameters:.2f}", *times))
    print(as_text(HEADER, rows))


def lesson_time(opener: Opener, bundle: Bundle, path: Path, arguments: argparse.Namespace) -> str:
    """Return how long a lesson takes to follow another sentence; a dash where the model is too large for one."""
    explainer = Translator.load(bundle, "cpu").explainer()
    explanation = explain(explainer, "Warm up.", model=describe(bundle, ""))
    try:
        path.write_text(render_lesson(bundle, explanation.to_dict()), encoding="utf-8")
    except UserError:
        return "–"
    with opener(path) as page:
        page.wait_for_selector("main[aria-busy=false]")
        times = []
        for _ in range(arguments.rounds):
            times.append(page.evaluate(_FOLLOWED, arguments.text))
            page.evaluate(_FOLLOWED, "Warm up.")
    return f"{min(times):,.0f} ms"


if __name__ == "__main__":
    run_program(main)
