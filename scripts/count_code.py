"""Count the lines of code in the package, without blank lines, comments and docstrings, and its files.

usage: python scripts/count_code.py
"""

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "mtformer"


def code_lines(source: str) -> int:
    """Return the number of lines that are neither blank, nor a comment, nor part of a docstring."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                documented |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    lines = enumerate(source.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and n not in documented for n, line in lines)


def main() -> None:
    """Print both numbers for each room, and their sums."""
    lines, files = Counter[str](), Counter[str]()
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0]
        lines[room] += code_lines(path.read_text(encoding="utf-8"))
        files[room] += 1
    for room, n_lines in lines.most_common():
        print(f"{n_lines:7,} lines {files[room]:4} files  {room}")
    print(f"{lines.total():7,} lines {files.total():4} files")


if __name__ == "__main__":
    main()
