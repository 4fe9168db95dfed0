"""The gate: formatting, lint, types and tests. What passes here may land."""

from __future__ import annotations  # an older Python has to get as far as its error message

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from environment import python_with, run

CHECKS = ("ruff format --check .", "ruff check .", "mypy")
OTHER_SYSTEMS = tuple(
    f"mypy --platform {system} --cache-dir .mypy_cache/{system} mtformer" for system in ("darwin", "win32")
)


def main(arguments: list[str]) -> None:
    """Run all checks, two at a time, and then the tests; what fails ends the script."""
    parser = argparse.ArgumentParser(
        description=__doc__, epilog="All other arguments are pytest's.", allow_abbrev=False
    )
    parser.add_argument("--all", action="store_true", help="run the slowest tests, too")
    parser.add_argument("--lowest", action="store_true", help="with the oldest dependencies that pyproject.toml allows")
    given, for_pytest = parser.parse_known_args(arguments)
    minutes = "10 minutes on two fast cores, and 20" if given.all else "7 minutes on two fast cores, and 14"
    print(f"about {minutes} on slow ones", file=sys.stderr, flush=True)
    python = python_with(".venv-lowest", "constraints-lowest.txt") if given.lowest else python_with()
    checks = () if given.lowest else CHECKS + OTHER_SYSTEMS if given.all else CHECKS
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda check: run(python, "-m", *check.split()), checks))
    # The tests of a file run in one process, so that what they share is made once; tests/conftest.py orders the files.
    options = "--numprocesses 2 --dist loadfile --no-loadscope-reorder".split()
    is_named = any(not argument.startswith("-") for argument in for_pytest)
    options += [] if given.all or is_named else ["-m", "not slow"]
    run(python, "-m", "pytest", *options, *for_pytest)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:  # which the checks have received as well
        sys.exit(130)
