"""Make the bundle in tests/fixtures that every later version must load, with the translations it must give.

usage: python scripts/make_bundle_fixture.py

Run this once for each new version of the bundle format, under the fixture's new name; never replace an old fixture.
"""

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from mtformer.bundle.peek import BUNDLE_FORMAT
from mtformer.config import load_config
from mtformer.training.run import train
from mtformer.translate.translator import Translator

FIXTURES = Path(__file__).parent.parent / "tests" / "fixtures"

PAIRS = [
    ("The kettle whistles.", "Der Kessel pfeift."),
    ("The kettle is empty.", "Der Kessel ist leer."),
    ("A small bird sings.", "Ein kleiner Vogel singt."),
    ("A small bird is hungry.", "Ein kleiner Vogel ist hungrig."),
    ("Our doors are green.", "Unsere Türen sind grün."),
    ("Our doors open slowly.", "Unsere Türen öffnen sich langsam."),
    ("Where is the green bird?", "Wo ist der grüne Vogel?"),
    ("Where are our kettles?", "Wo sind unsere Kessel?"),
]

CONFIG = """
data:
  src_lang: en
  tgt_lang: de
  train: [{tsv: pairs.tsv}]
  valid: [{tsv: pairs.tsv}]
tokenizer: {vocab_size: 300}
model: {d_model: 16, n_heads: 2, d_ff: 32, n_encoder_layers: 1, n_decoder_layers: 1, dropout: 0.0}
training:
  max_steps: 1200
  learning_rate: 0.01
  warmup_steps: 50
  max_tokens: 256
  validate_every: 300
  early_stopping_metric: loss
  precision: fp32
"""


def main() -> None:
    """Train a model to know eight sentences by heart, and write its bundle and its translations."""
    name = BUNDLE_FORMAT.removeprefix("mtformer-")
    if (FIXTURES / f"{name}.safetensors").exists():
        sys.exit(f"make_bundle_fixture: {name}.safetensors is never replaced: raise BUNDLE_FORMAT first")
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "pairs.tsv").write_text("".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS), encoding="utf-8")
        (folder / "config.yaml").write_text(CONFIG, encoding="utf-8")
        bundle = train(load_config(folder / "config.yaml", [f"run.dir={folder / 'runs'}"]))
        shutil.copy(bundle, FIXTURES / f"{name}.safetensors")
    translator = Translator.load(FIXTURES / f"{name}.safetensors", "cpu", beam_size=1)
    sources = [src for src, _ in PAIRS]
    found = translator.translate(sources)
    shown = [
        {"src": src, "translation": best.text, "log_prob": round(best.log_prob, 4)}
        for src, [best] in zip(sources, found, strict=True)
    ]
    text = json.dumps(shown, indent=2, ensure_ascii=False) + "\n"
    (FIXTURES / f"{name}.json").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
