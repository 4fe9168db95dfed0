"""Treat text from stdin as older papers do: lower-case, normalize punctuation, tokenize as Moses does.

usage: python scripts/moses_text.py LANG < TEXT > TREATED    (pip install sacremoses)

This makes files such as the test2016.lc.norm.tok.de of Multi30k, line for line.
"""

import sys

from sacremoses import MosesPunctNormalizer, MosesTokenizer

if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
    sys.exit(__doc__)
normalizer, tokenizer = MosesPunctNormalizer(sys.argv[1]), MosesTokenizer(sys.argv[1])
for line in sys.stdin:
    print(tokenizer.tokenize(normalizer.normalize(line.rstrip("\n").lower()), return_str=True))
