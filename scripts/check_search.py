"""Compare beam search with greedy search on a trained model.

Prints BLEU and time of both and how often the score of the beam's translation is below that of the greedy one: the
search had dropped the greedy prefix for others that proved worse later. Then searches for as many translations as there
are beams, which takes more steps; the best should always be the same. Exits with status 1 otherwise.
"""

import argparse
import sys
import time
from pathlib import Path

from mtformer.bundle.format import Bundle, load_bundle
from mtformer.evaluate.metrics import bleu, bleu_tokenize
from mtformer.evaluate.testsets import EvalSet, combined, read_eval_sets
from mtformer.runs.folder import find_model
from mtformer.support.errors import UserError
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

_TOLERANCE = 1e-4  # of scores: batches of other shapes are rounded otherwise


def main() -> None:
    """Translate a test set three times and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path, help="a run's folder or a model bundle")
    parser.add_argument(
        "--data", metavar="SOURCE", help="the text, as for mtformer eval; the run's test set without it"
    )
    parser.add_argument("-n", type=int, default=1_000, help="sentences to translate")
    parser.add_argument("--beam-size", type=int, default=4, help="hypotheses kept at each step")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"], help="where to compute")
    arguments = parser.parse_args()
    try:
        path = find_model(arguments.run)
        bundle = load_bundle(path)
        data = [arguments.data] if arguments.data else []
        texts = combined(read_eval_sets(path, bundle.header, data=data))
        greedy, greedy_time = _translate(bundle, texts, arguments.n, arguments.device, 1)
        beam, beam_time = _translate(bundle, texts, arguments.n, arguments.device, arguments.beam_size)
        longer, _ = _translate(bundle, texts, arguments.n, arguments.device, arguments.beam_size, arguments.beam_size)
    except UserError as error:
        sys.exit(f"check_search: {error}")
    print(f"beam search takes {beam_time / greedy_time:.2f} times as long as greedy search")
    differing = [(one, other) for one, other in zip(greedy, beam, strict=True) if one.text != other.text]
    worse = [(one, other) for one, other in differing if other.score < one.score - _TOLERANCE]
    print(f"{len(differing)} of {len(greedy)} translations differ; {len(worse)} of the beam's have a worse score")
    missed = [(one, other) for one, other in zip(beam, longer, strict=True) if other.score > one.score + _TOLERANCE]
    print(f"{len(missed)} of {len(beam)} searches stopped too early")
    for one, other in missed[:10]:
        print(f"  {one.score:.4f}  {one.text}\n  {other.score:.4f}  {other.text}")
    sys.exit(1 if missed else 0)


def _translate(
    bundle: Bundle, texts: EvalSet, n: int, device: str, beam_size: int, n_best: int = 1
) -> tuple[list[Translation], float]:
    """Translate the first ``n`` sources, print the score, and return the translations and the seconds they took."""
    translator = Translator.load(bundle, device, raw=True, beam_size=beam_size, n_best=n_best)
    start = time.perf_counter()
    found = [best for best, *_ in translator.translate(texts.sources[:n])]
    seconds = time.perf_counter() - start
    tokenize = bleu_tokenize(bundle.header.bleu_tokenize, bundle.header.tgt_lang)
    score = bleu([translation.text for translation in found], texts.references[0][:n], tokenize)
    print(f"beam size {beam_size}, {n_best} best: {score.value:6.2f} BLEU in {seconds:.1f} s  {score.signature}")
    return found, seconds


if __name__ == "__main__":
    main()
