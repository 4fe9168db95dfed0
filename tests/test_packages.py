"""Packages that only some commands need: they are asked for before any work, and the error says how to install them."""

import shlex
import sys
from pathlib import Path

import pytest
from conftest import Project

from mtformer.config import SearchConfig
from mtformer.support import packages
from mtformer.support.errors import UserError

PIP_INSTALL = f"{shlex.quote(sys.executable)} -m pip install"


@pytest.mark.parametrize(
    ("command", "missing", "needs"),
    [
        ("translate a --mbr 4", "fastchrf", "mbr"),
        ("eval --mbr 4", "fastchrf", "mbr"),
        ("eval --protocol multi30k-2016-lc-tok", "sacremoses", "--protocol multi30k-2016-lc-tok"),
        ("translate a.md", "markdown_it", "Markdown"),
        ("translate a.pdf", "pypdf", "PDF"),
    ],
)
def test_a_missing_package_is_named_before_a_model_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, missing: str, needs: str
) -> None:
    for name in ("broken.safetensors", "a.md", "a.pdf"):
        (tmp_path / name).touch()
    monkeypatch.setitem(sys.modules, missing, None)
    result = Project(tmp_path, tmp_path).mtformer(*command.split(), "--model", "broken.safetensors")
    assert (result.status, result.stdout) == (2, "")
    start = f"Error: {needs} needs the package {missing}, which is not installed; install it with {PIP_INSTALL} "
    assert result.stderr.startswith(start)


def test_an_extra_is_installed_into_the_checkout_that_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastchrf", None)
    commands = {
        tmp_path: "'mtformer[mbr]'",
        tmp_path / "a b": f"-c '{tmp_path / 'a b/constraints.txt'}' -e '{tmp_path / 'a b'}[mbr]'",
    }
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b/pyproject.toml").touch()
    for root, command in commands.items():
        monkeypatch.setattr(packages, "_ROOT", root)
        with pytest.raises(UserError) as error:
            SearchConfig().updated(mbr=4)
        assert str(error.value).endswith(f"fastchrf, which is not installed; install it with {PIP_INSTALL} {command}")
