"""The gate: formatting, lint, types and tests. What passes here may land; nothing else is checked anywhere.

usage: python scripts/test.py [--lowest] [PYTEST ARGUMENTS]

--lowest tests the oldest releases of the dependencies that pyproject.toml allows.
"""

from __future__ import annotations  # an older Python has to get as far as its error message

import sys
from concurrent.futures import ThreadPoolExecutor

from environment import python_with, run

CHECKS = (
    "ruff format --check .",
    "ruff check .",
    "mypy",
    "mypy --platform win32 --cache-dir .mypy_cache/win32 mtformer",
    "mypy --platform darwin --cache-dir .mypy_cache/darwin mtformer",
)


def main(arguments: list[str]) -> None:
    """Run all checks, two at a time, and then the tests; what fails ends the script."""
    if {"-h", "--help"} & set(arguments):
        print(__doc__)
        return
    lowest = arguments[:1] == ["--lowest"]
    print("about 10 minutes on two fast cores, and 20 on slow ones", file=sys.stderr, flush=True)
    python = python_with(".venv-lowest", "constraints-lowest.txt") if lowest else python_with()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda check: run(python, "-m", *check.split()), () if lowest else CHECKS))
    # The tests of a file run in one process, so that what they share is made once; tests/conftest.py orders the files.
    options = "--numprocesses 2 --dist loadfile --no-loadscope-reorder"
    run(python, "-m", "pytest", *options.split(), *arguments[lowest:])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:  # which the checks have received as well
        sys.exit(130)
