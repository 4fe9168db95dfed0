"""The rooms, and the direction of imports between their modules."""

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import mtformer

PACKAGE = Path(mtformer.__file__).parent
ROOT = PACKAGE.parent

# A module imports only from rooms to the left of its own, or from its own. The model knows tensors and nothing else;
# the order of the others, after the config, is that of the text's way.
ROOMS = (
    "support",
    "model",
    "config",
    "text",
    "phrasebook",
    "data",
    "bundle",
    "browser",
    "runs",
    "search",
    "engines",
    "explain",
    "translate",
    "serve",
    "evaluate",
    "report",
    "training",
    "export",
    "improve",
    "cli",
)
OUTSIDE = ("mtformer", "mtformer.__main__")  # the package itself, which imports the public API on first use


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported_modules(source: str, modules: Collection[str] = MODULES) -> set[str]:
    """Return the project's modules that a source imports anywhere, inside functions and for type checking included."""
    imported = set()
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative imports hide the direction"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            while name not in modules and "." in name:
                name = name.rpartition(".")[0]
            imported |= {name} & set(modules)
    return imported


def room_of(module: str) -> str:
    return module.split(".")[1]


def against_the_order(imports: Mapping[str, Collection[str]], rooms: Sequence[str] = ROOMS) -> list[str]:
    """Return the imports that point to the right."""
    return [
        f"{module} imports {imported}"
        for module, names in imports.items()
        for imported in sorted(names)
        if imported in OUTSIDE or rooms.index(room_of(imported)) > rooms.index(room_of(module))
    ]


def circle_in(imports: Mapping[str, Collection[str]]) -> list[str]:
    """Return the modules of a circle of imports; an empty list if there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.mark.parametrize(
    ("source", "modules"),
    [
        ("from mtformer import cli", {"mtformer.cli"}),
        ("from mtformer import cli as c, text", {"mtformer.cli", "mtformer.text"}),
        ("import mtformer.cli", {"mtformer.cli"}),
        ("import mtformer.cli.app as app, mtformer.text", {"mtformer.cli.app", "mtformer.text"}),
        ("from mtformer.cli.app import main", {"mtformer.cli.app"}),
        ("from mtformer.cli import app", {"mtformer.cli.app"}),
        ("def f():\n    from mtformer import cli", {"mtformer.cli"}),
        ("class C:\n    def f(self):\n        import mtformer.cli", {"mtformer.cli"}),
        ("if TYPE_CHECKING:\n    from mtformer.cli import app", {"mtformer.cli.app"}),
        ("from mtformer import __version__\nimport torch", {"mtformer"}),
    ],
)
def test_every_way_of_importing_is_seen(source: str, modules: set[str]) -> None:
    assert imported_modules(source) == modules


def test_a_relative_import_is_refused() -> None:
    with pytest.raises(AssertionError, match="relative imports"):
        imported_modules("from . import cli")


def test_an_import_against_the_order_is_seen() -> None:
    rooms = ("text", "data", "cli")
    imports = {"mtformer.text.lines": {"mtformer.data.store"}, "mtformer.cli.app": {"mtformer.text.lines"}}
    assert against_the_order(imports, rooms) == ["mtformer.text.lines imports mtformer.data.store"]
    assert against_the_order({"mtformer.cli.app": {"mtformer"}}, rooms) == ["mtformer.cli.app imports mtformer"]


def test_a_circle_is_seen() -> None:
    assert set(circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})) == {"a", "b", "c"}
    assert circle_in({"a": {"b"}, "b": {"c"}, "d": {"a"}}) == []


def test_every_module_has_its_room_and_no_room_is_empty() -> None:
    assert {room_of(module) for module in MODULES if module not in OUTSIDE} == set(ROOMS)
    assert sorted(path.name for path in PACKAGE.iterdir() if path.suffix == ".py") == ["__init__.py", "__main__.py"]


def test_imports_point_to_the_left_and_form_no_circle() -> None:
    imports = {
        module: imported_modules(path.read_text(encoding="utf-8"))
        for module, path in MODULES.items()
        if module not in OUTSIDE
    }
    assert against_the_order(imports) == []
    assert circle_in(imports) == []


def test_training_knows_nothing_of_reports() -> None:
    training = (path for module, path in MODULES.items() if module.startswith("mtformer.training"))
    imported = set().union(*(imported_modules(path.read_text(encoding="utf-8")) for path in training))
    assert [module for module in imported if room_of(module) == "report"] == []


def test_nothing_unpickles() -> None:
    """Weights of other toolkits alone may be in a pickle, of which torch then reads nothing but tensors."""
    lines = [line for path in PACKAGE.rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if "import pickle" in line] == []
    assert all("weights_only=True" in line for line in lines if "torch.load" in line)


def test_users_read_of_tokens_and_not_of_pieces() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    texts = {path: [path.read_text(encoding="utf-8")] for path in pages}
    for path in PACKAGE.rglob("*.py"):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts[path] = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert [path.name for path, found in texts.items() if re.search(r"\bpieces?\b", "\n".join(found))] == []
