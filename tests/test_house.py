"""The packages and the direction of imports between them."""

import ast
import re
from pathlib import Path

import pytest

import mtformer

PACKAGE = Path(mtformer.__file__).parent
ROOT = PACKAGE.parent

# Left to right; a package imports only from packages to its left, or from itself.
PACKAGES = (
    "errors",
    "versions",
    "logs",
    "progress",
    "tables",
    "files",
    "cache",
    "hardware",
    "memory",
    "seeds",
    "config",
    "runs",
    "phrasebook",
    "text",
    "data",
    "model",
    "header",
    "peek",
    "bundle",
    "export",
    "search",
    "engines",
    "pipeline",
    "guard",
    "page",
    "explain",
    "translator",
    "evaluate",
    "report",
    "training",
    "jobs",
    "cli",
)


def package_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_packages(source: str) -> set[str]:
    packages = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the direction"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        packages |= {name.split(".")[1] for name in names if name.startswith("mtformer.")} - {"__version__"}
    return packages


@pytest.mark.parametrize(
    ("source", "packages"),
    [
        ("from mtformer import cli", {"cli"}),
        ("from mtformer import cli as c, text", {"cli", "text"}),
        ("import mtformer.cli", {"cli"}),
        ("import mtformer.cli.app as app, mtformer.text", {"cli", "text"}),
        ("from mtformer.cli.app import main", {"cli"}),
        ("def f():\n    from mtformer import cli", {"cli"}),
        ("class C:\n    def f(self):\n        import mtformer.cli", {"cli"}),
        ("if TYPE_CHECKING:\n    from mtformer.cli import app", {"cli"}),
        ("from mtformer import __version__\nimport mtformer, torch", set()),
    ],
)
def test_every_way_of_importing_is_seen(source: str, packages: set[str]) -> None:
    assert imported_packages(source) == packages


def test_a_relative_import_is_refused() -> None:
    with pytest.raises(AssertionError, match="relative imports"):
        imported_packages("from . import cli")


def test_imports_point_to_the_left() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        package = package_of(path)
        if package in ("__init__", "__main__"):
            continue
        allowed = set(PACKAGES[: PACKAGES.index(package) + 1])
        imported = imported_packages(path.read_text(encoding="utf-8"))
        wrong += [f"{path.name} in {package} imports from {other}" for other in imported - allowed]
    assert wrong == []


def test_nothing_unpickles() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert [path.name for path, text in sources.items() if "torch.load" in text or "import pickle" in text] == []


def test_users_read_of_tokens_and_not_of_pieces() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    texts = {path: [path.read_text(encoding="utf-8")] for path in pages}
    for path in PACKAGE.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts[path] = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [path.name for path, found in texts.items() if re.search(r"\bpieces?\b", "\n".join(found))] == []
