"""Download Multi30k (Elliott et al. 2016) from the Hugging Face hub as pairs of .gz files, into the folder given."""

import sys
from pathlib import Path

from mtformer.config import HubDataset
from mtformer.text.lines import open_output
from mtformer.text.sources import ParallelText

NAMES = {"train": "train", "validation": "val", "test": "test2016"}


def main() -> None:
    """Write train, val and test2016, each as .en.gz and .de.gz."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for split, name in NAMES.items():
        pairs = ParallelText([HubDataset(hf="bentrevett/multi30k", split=split)], "en", "de")
        with open_output(folder / f"{name}.en.gz") as english, open_output(folder / f"{name}.de.gz") as german:
            for pair in pairs:
                english.write(f"{pair.src}\n")
                german.write(f"{pair.tgt}\n")


if __name__ == "__main__":
    main()
