"""Sentence pairs from the sources of a config: files of several formats, data sets, test sets, the phrasebook."""

from mtformer.text.sources.pairs import Example, Fingerprint, SentencePair, fingerprint
from mtformer.text.sources.parallel import ParallelText, require_readable, source_files, source_name

__all__ = [
    "Example",
    "Fingerprint",
    "ParallelText",
    "SentencePair",
    "fingerprint",
    "require_readable",
    "source_files",
    "source_name",
]
