"""The versions of everything that a result depends on."""

import platform
from importlib.metadata import version


def versions() -> dict[str, str]:
    """Return the versions of all that a result depends on."""
    packages = ("mtformer", "torch", "numpy", "sentencepiece", "sacrebleu")
    return {"python": platform.python_version()} | {package: version(package) for package in packages}
