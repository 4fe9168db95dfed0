"""Preprocess text from stdin as older papers do: lower-case, normalize punctuation, tokenize like Moses.

usage: python scripts/moses_text.py LANG < TEXT > OUTPUT    (pip install sacremoses)

The result matches files such as test2016.lc.norm.tok.de of Multi30k line for line.
"""

import sys

from sacremoses import MosesPunctNormalizer, MosesTokenizer

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
normalizer, tokenizer = MosesPunctNormalizer(sys.argv[1]), MosesTokenizer(sys.argv[1])
for line in sys.stdin:
    print(tokenizer.tokenize(normalizer.normalize(line.rstrip("\n").lower()), return_str=True))
