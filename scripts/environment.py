"""Create the virtual environment that the other scripts use, or update it."""

from __future__ import annotations  # an older Python has to get as far as its error message

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).absolute().parent.parent


def python_with(folder: str = ".venv", constraints: str = "constraints.txt", extras: str = "dev") -> str:
    """Install mtformer and its dependencies into a virtual environment, if need be; return its Python."""
    place = ROOT / folder
    python = place / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    sources = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + (ROOT / constraints).read_bytes()).hexdigest()
    installed = place / "installed-from"
    if installed.is_file() and installed.read_text(encoding="utf-8") in (f"{sources} {extras}", f"{sources} dev"):
        return str(python)
    print(f"installing mtformer into {folder} …", file=sys.stderr, flush=True)
    if sys.version_info < (3, 11):  # noqa: UP036
        print("mtformer needs Python 3.11 or newer; run this script with one, or set PYTHON to it", file=sys.stderr)
        sys.exit(2)
    if not python.exists():
        run(sys.executable, "-m", "venv", str(place))
    # Most of what is installed is never imported: Python compiles the rest when it is.
    options = ("--no-compile", "--disable-pip-version-check", "--constraint", constraints)
    _show_downloads(str(python), "-m", "pip", "install", *options, "--editable", f".[{extras}]" if extras else ".")
    installed.write_text(f"{sources} {extras}", encoding="utf-8")
    return str(python)


def run(*command: str) -> None:
    """Run a program in the root of the repository, and end as it does if it fails."""
    # Nothing in our virtual environments is compiled; if Python may not keep what it compiles, torch takes twice as
    # long to import in each of the hundred processes that the tests start.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    try:
        status = subprocess.run(command, cwd=ROOT, check=False, env=environment).returncode
    except KeyboardInterrupt:  # which the program has received as well
        status = 130
    if status:
        sys.exit(status if status > 0 else 1)


def _show_downloads(*command: str) -> None:
    """Run pip, and show of what it prints only the large downloads: torch can take minutes."""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as pip:
        for line in pip.stdout or ():
            if line.lstrip().startswith("Downloading ") and line.rstrip().endswith((" MB)", " GB)")):
                print(f"    {line.strip()}", file=sys.stderr, flush=True)
    if pip.returncode:
        sys.exit(pip.returncode)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", default=".venv", help="where to create it, .venv by default")
    parser.add_argument("constraints", nargs="?", default="constraints.txt", help="a file of versions")
    parser.add_argument("extras", nargs="?", default="dev", help="optional dependencies, dev by default")
    python_with(**vars(parser.parse_args()))
