"""Write mtformer/browser/kernels_wasm.js from kernels.wat beside it. It needs the package wasmtime.

With --check nothing is written; the exit status is 1 if the script is not what would be written.
"""

import argparse
import base64
import sys
from pathlib import Path

from wasmtime import wat2wasm

_FOLDER = Path(__file__).parent.parent / "mtformer/browser"
_SCRIPT = """\
"use strict";
// kernels.wat in binary form, as base64; scripts/build_kernels.py has written it.

const KERNELS_WASM = [
{}
].join("");
"""
_WIDTH = 112  # characters of a line


def build() -> str:
    """Return the script that contains the kernels."""
    encoded = base64.b64encode(wat2wasm((_FOLDER / "kernels.wat").read_text(encoding="utf-8"))).decode()
    lines = (f'  "{encoded[start : start + _WIDTH]}",' for start in range(0, len(encoded), _WIDTH))
    return _SCRIPT.format("\n".join(lines))


def main() -> None:
    """Build, and write or compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    path, script = _FOLDER / "kernels_wasm.js", build()
    if parser.parse_args().check:
        sys.exit(path.read_text(encoding="utf-8") != script)
    path.write_text(script, encoding="utf-8")


if __name__ == "__main__":
    main()
