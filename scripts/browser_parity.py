"""Compare a model in a web page with torch: logits, translations, BLEU, and the page's time and size.

The run's test set is translated with the ids that Python gives the model, so that what is compared is the model and its
search alone. The page runs in a headless browser, on one thread, first with float32 weights and then with int8 ones.
Logits are those along the translations that torch has found.
"""

import argparse
import base64
import gzip
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

sys.path.append(str(Path(__file__).parent.parent / "tests"))

from browser import opened
from playwright.sync_api import Page
from program import run_program

from mtformer.browser.pack import ENGINE_ASSETS, Quantization, pack
from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import SearchOptions
from mtformer.engines.torch import TorchEngine
from mtformer.evaluate.metrics import bleu, bleu_tokenize
from mtformer.evaluate.testsets import combined, read_eval_sets
from mtformer.model.weights import count_parameters
from mtformer.runs.finding import find_model
from mtformer.search.engine import SearchRequest, results_of
from mtformer.search.hypothesis import rank
from mtformer.support.page import assemble

_CHUNK = 50  # sentences that a page translates at once

_IN_PAGE = """
async function weightsOf(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}
const loaded = weightsOf(document.getElementById("weights").textContent).then(async (data) => ({
  plain: new Transformer(pageData, new PlainKernels(pageData.tensors, data)),
  wasm: new Transformer(pageData, await makeKernels(pageData.tensors, data)),
}));
function translationOf(model, [ids, options]) {
  const start = performance.now();
  const search = searchTranslations(model.start(ids), { ...options, lengthPenalty: lengthPenaltyOf(options) });
  let step;
  do step = search.next();
  while (!step.done);
  return { ids: step.value[0].ids, ms: performance.now() - start };
}
async function translationsOf([kind, searches]) {
  const model = (await loaded)[kind];
  return searches.map((search) => translationOf(model, search));
}
async function worstOf([kind, src, tgtIn, encoded]) {
  const decoder = (await loaded)[kind].start(src);
  const expected = new Float32Array(Uint8Array.from(atob(encoded), (character) => character.charCodeAt(0)).buffer);
  const found = tgtIn.flatMap((id) => Array.from(decoder.step([id])));
  return found.reduce((worst, logit, i) => Math.max(worst, Math.abs(logit - expected[i])), 0);
}
"""


@contextmanager
def page_of(bundle: Bundle, quantization: Quantization) -> Iterator[Page]:
    """Open a page with a model, and print the size of its file."""
    packed = pack(bundle, quantization=quantization)
    weights = base64.b64encode(gzip.compress(packed.data, mtime=0)).decode()
    body = f'<script type="text/plain" id="weights">{weights}</script>'
    text = assemble("parity", body, data=packed.header, assets=ENGINE_ASSETS, computes=True)
    n_parameters = count_parameters(bundle.model)
    print(f"{quantization}: a page of {len(text.encode()):,} bytes for {n_parameters:,} parameters")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.html"
        path.write_text(text.replace("</body>", f"<script>{_IN_PAGE}</script></body>"), encoding="utf-8")
        with opened(path) as page:
            yield page


def translations(page: Page, kind: str, requests: Sequence[SearchRequest]) -> tuple[list[list[int]], float]:
    """Return the ids that a page finds for requests, and the mean milliseconds that one takes."""
    found: list[dict[str, Any]] = []
    for start in range(0, len(requests), _CHUNK):
        chunk = [[list(each.src), _options(each)] for each in requests[start : start + _CHUNK]]
        found += page.evaluate("translationsOf", [kind, chunk])
    return [each["ids"] for each in found], fmean(each["ms"] for each in found)


def _options(request: SearchRequest) -> dict[str, Any]:
    options = request.options
    own = {"limit": request.limit, "forced": list(request.forced), "beamSize": options.beam_size}
    return {**options.model_dump(), **own}


@torch.inference_mode()
def worst_logit(page: Page, kind: str, bundle: Bundle, pairs: Sequence[tuple[Sequence[int], list[int]]]) -> float:
    """Return the largest difference of a logit along translations that are given as ids."""
    worst, model = 0.0, bundle.model
    start = [model.architecture.special_ids.start, *bundle.tokenizer.prefixes.tgt]
    for src, tgt in pairs:
        ids, tgt_in = torch.tensor([src]), [*start, *tgt]
        expected = model.project(model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([tgt_in])))[0]
        encoded = base64.b64encode(expected.numpy().tobytes()).decode()
        worst = max(worst, page.evaluate("worstOf", [kind, list(src), tgt_in, encoded]))
    return worst


def compare(bundle: Bundle, path: Path, arguments: argparse.Namespace) -> None:
    """Translate the test set with torch and in the page, and print how they differ."""
    texts = combined(read_eval_sets(path, bundle.header))
    sources, references = texts.sources[: arguments.n], texts.references[0][: arguments.n]
    tokenizer, tgt_lang = bundle.tokenizer, bundle.header.tgt_lang
    tokenize = bleu_tokenize(bundle.header.bleu_tokenize, tgt_lang)
    engine = TorchEngine(bundle.model)

    def requests(beam_size: int) -> list[SearchRequest]:
        options = SearchOptions.model_validate({**bundle.header.search.model_dump(), "beam_size": beam_size})
        of_texts = tokenizer.encode_src(sources)
        forced = tokenizer.prefixes.tgt
        return [SearchRequest(ids, options, options.limit(len(ids)), forced=forced) for ids in of_texts]

    def score(found: Sequence[list[int]]) -> float:
        return bleu(list(map(tokenizer.decode, found)), references, tokenize).value

    beams = sorted({1, bundle.header.search.beam_size})
    expected: dict[int, list[list[int]]] = {}
    for beam in beams:
        asked = requests(beam)
        results = results_of(engine, asked)
        best = [rank(each.options, found, tokenizer.decode)[0] for each, found in zip(asked, results, strict=True)]
        expected[beam] = [hypothesis.ids for hypothesis in best]
        print(f"torch, beam {beam}: {score(expected[beam]):.2f} BLEU on {len(sources):,} lines of {texts.name}")
    for quantization in ("float32", "int8"):
        with page_of(bundle, quantization) as page:
            pairs = [(each.src, tgt) for each, tgt in zip(requests(1), expected[1], strict=True)][: arguments.logits]
            for kind in ("plain", "wasm"):
                worst = worst_logit(page, kind, bundle, pairs)
                print(f"{quantization}, {kind}: logits of {len(pairs)} sentences differ by at most {worst:.2g}")
            translations(page, "wasm", requests(1)[:_CHUNK])  # which compiles the scripts
            for beam in beams:
                found, ms = translations(page, "wasm", requests(beam))
                n_equal = sum(ours == theirs for ours, theirs in zip(found, expected[beam], strict=True))
                print(
                    f"{quantization}, beam {beam}: {score(found):.2f} BLEU, {ms:.1f} ms a sentence, "
                    f"{100 * n_equal / len(found):.1f} % of the translations equal torch's"
                )
            _, ms = translations(page, "plain", requests(1)[: arguments.logits])
            print(f"{quantization}, beam 1, without WebAssembly: {ms:.1f} ms a sentence")


def main() -> None:
    """Compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    parser.add_argument("-n", type=int, default=1_000, help="sentences to translate (default: 1000)")
    parser.add_argument("--logits", type=int, default=200, help="sentences whose logits are compared (default: 200)")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    path = find_model(arguments.run)
    compare(load_bundle(path), path, arguments)


if __name__ == "__main__":
    run_program(main)
