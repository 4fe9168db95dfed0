"""``python -m mtformer``: the same as the command ``mtformer``."""

from mtformer.cli import main

main()
