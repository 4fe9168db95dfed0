"""Packages that only some uses need: whether they are installed, and how to install them."""

import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path

from mtformer.support.errors import UserError

_ROOT = Path(__file__).parents[2]


def require_package(name: str, purpose: str, extra: str = "") -> None:
    """Check that a package is installed, without importing it.

    Args:
        name: of the module.
        purpose: what needs it, the subject of the message.
        extra: of this program, to install the package with; without one, its own name installs it.

    Raises:
        UserError: it is not installed; the message says how to install it.
    """
    if importlib.util.find_spec(name) is None:
        install = install_command(extra) if extra else _pip_install(name)
        raise UserError(f"{purpose} needs the package {name}, which is not installed; install it with {install}")


def install_command(extra: str) -> str:
    """Return the command that installs an extra: into the checkout that is running, if it is one."""
    if (_ROOT / "pyproject.toml").is_file():
        return _pip_install("-c", f"{_ROOT / 'constraints.txt'}", "-e", f"{_ROOT}[{extra}]")
    return _pip_install(f"mtformer[{extra}]")


def _pip_install(*what: str) -> str:
    """Return the command of the Python that is running: the pip of the shell may belong to another one."""
    command = [sys.executable, "-m", "pip", "install", *what]
    return subprocess.list2cmdline(command) if os.name == "nt" else shlex.join(command)
