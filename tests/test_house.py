"""The rooms of the house and the direction of imports between them."""

import ast
from pathlib import Path

import mtformer

PACKAGE = Path(mtformer.__file__).parent

# Left to right; a room imports only from rooms to its left, or from itself.
ROOMS = (
    "errors",
    "versions",
    "logs",
    "progress",
    "files",
    "hardware",
    "seeds",
    "config",
    "runs",
    "phrasebook",
    "text",
    "data",
    "model",
    "bundle",
    "search",
    "translator",
    "streams",
    "evaluate",
    "training",
    "cli",
)


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(path: Path) -> set[str]:
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the direction"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("mtformer.")} - {"__version__"}
    return rooms


def test_imports_point_to_the_left() -> None:
    wrong = []
    for path in PACKAGE.rglob("*.py"):
        room = room_of(path)
        if room in ("__init__", "__main__"):
            continue
        allowed = set(ROOMS[: ROOMS.index(room) + 1])
        wrong += [f"{path.name} in {room} imports from {other}" for other in imported_rooms(path) - allowed]
    assert wrong == []


def test_nothing_unpickles() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    assert [path.name for path, text in sources.items() if "torch.load" in text or "import pickle" in text] == []
