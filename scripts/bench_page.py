"""Measure the web pages of models: the size of the file, how soon it can translate, and how long a sentence takes.

Each page is opened several times in Chromium; the fastest counts. Opening lasts from the request for the file until the
model is loaded.
"""

import argparse
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from browser import started

from mtformer.browser.pack import count_parameters
from mtformer.bundle.format import load_bundle
from mtformer.export.html import write_page
from mtformer.runs.folder import find_model
from mtformer.support.terminal import as_text

HEADER = ("model", "parameters", "bytes", "bytes a parameter", "opens in", "a sentence takes")
_OPENED = "translatorPage.engine.ready.then(() => performance.now())"
_TRANSLATED = """async (text) => {
  const start = performance.now();
  await translatorPage.engine.translate(text);
  return performance.now() - start;
}"""


def main() -> None:
    """Print a table with a row for each model."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path, help="bundles or folders of runs, of one direction each")
    parser.add_argument("--text", default="Two young, white males are outside near many bushes.", help="to translate")
    parser.add_argument("--rounds", type=int, default=5, help="how often each page is opened")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder, started() as opener:
        for model in arguments.models:
            bundle = load_bundle(find_model(model))
            path = write_page(Path(folder) / "page.html", bundle)
            opened, translated = [], []
            for _ in range(arguments.rounds):
                with opener(path) as page:
                    opened.append(page.evaluate(_OPENED))
                    page.evaluate(_TRANSLATED, "Warm up.")
                    translated.append(page.evaluate(_TRANSLATED, arguments.text))
            n_parameters, size = count_parameters(bundle), path.stat().st_size
            times = (f"{min(opened):,.0f} ms", f"{min(translated):,.0f} ms")
            rows.append((str(model), f"{n_parameters:,}", f"{size:,}", f"{size / n_parameters:.2f}", *times))
    print(as_text(HEADER, rows))


if __name__ == "__main__":
    main()
