"""The package as others install it: built from the sources, installed into a clean environment, and run from there."""

import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

import mtformer

ROOT = Path(__file__).parent.parent


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def copy_sources(folder: Path) -> Path:
    """Copy the sources to ``folder``: building writes beside them."""
    folder.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copytree(ROOT / "mtformer", folder / "mtformer", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sources = copy_sources(tmp_path_factory.mktemp("wheel") / "sources")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    run(*command, "--wheel-dir", sources / "dist", sources, cwd=sources)
    [found] = (sources / "dist").iterdir()
    return found


@pytest.fixture(scope="module")
def bin(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel and, from the gate's own environment, its dependencies."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    python = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--python", str(python)]
    run(*pip, "install", "--quiet", "--no-deps", "--no-index", wheel, cwd=folder)
    [packages] = folder.glob("lib/python*/site-packages")
    dependencies = {sysconfig.get_path(name) for name in ("purelib", "platlib")}
    (packages / "dependencies.pth").write_text("\n".join(dependencies))
    assert Path(run(python, "-c", "import mtformer; print(mtformer.__file__)", cwd=folder).strip()).is_relative_to(
        folder
    )
    return python.parent


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    wanted = [path for path in (ROOT / "mtformer").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {path.relative_to(ROOT).as_posix() for path in wanted}
    assert "mtformer/py.typed" in packed
    assert any(name.endswith(".tsv") for name in packed)


def test_an_editable_install_can_be_imported_in_the_folder_that_contains_the_clone(tmp_path: Path) -> None:
    clone = copy_sources(tmp_path / "mtformer")
    run(sys.executable, "-c", "from setuptools.build_meta import build_editable; build_editable('..')", cwd=clone)
    [built] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path / "installed")
    program = "import site; site.addsitedir('installed'); import mtformer; print(mtformer.__file__)"
    assert Path(run(sys.executable, "-S", "-c", program, cwd=tmp_path).strip()) == clone / "mtformer/__init__.py"


def test_the_installed_command_knows_its_version_and_shows_help(bin: Path, tmp_path: Path) -> None:
    assert run(bin / "mtformer", "--version", cwd=tmp_path) == f"mtformer {mtformer.__version__}\n"
    assert "Usage: mtformer [OPTIONS] COMMAND" in run(bin / "mtformer", "--help", cwd=tmp_path)


def test_the_installed_command_samples_the_phrasebook(bin: Path, tmp_path: Path) -> None:
    command = "data sample builtin:phrasebook,split:valid --pair en-zh -n 3"
    sampled = run(bin / "mtformer", *command.split(), cwd=tmp_path)
    assert [len(line.split("\t")) for line in sampled.splitlines()] == [2, 2, 2]


def test_the_lowest_constraints_are_the_lower_bounds() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    itself, *for_development = map(Requirement, extras["dev"])
    assert itself.name == project["name"]
    of_extras = [requirement for name in itself.extras for requirement in extras[name]]
    bounds = {
        canonicalize_name(requirement.name): Version(bound.version)
        for requirement in [*map(Requirement, project["dependencies"] + of_extras), *for_development]
        for bound in requirement.specifier
        if bound.operator == ">="
    }
    pins = dict(line.split("==") for line in (ROOT / "constraints-lowest.txt").read_text().splitlines()[1:])
    assert {canonicalize_name(name): Version(version) for name, version in pins.items()} == bounds
