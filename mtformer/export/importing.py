"""Turn a model of another toolkit into a bundle."""

from pathlib import Path

from mtformer.bundle.format import write_bundle
from mtformer.config.sources import LanguagePair
from mtformer.export.import_huggingface import Imported, read_huggingface
from mtformer.runs.folder import BUNDLE
from mtformer.support import __version__
from mtformer.support.errors import UserError


def read_model(model: str, languages: LanguagePair | None = None) -> Imported:
    """Read a model of another toolkit.

    Args:
        model: the folder of a model of Hugging Face's transformers.
        languages: those that it translates, where its files do not say.

    Raises:
        UserError: it is a model that we cannot have, or its files do not belong together.
    """
    folder = Path(model)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}")
    imported = read_huggingface(folder, folder.resolve().name, languages)
    provenance = {"version": __version__, "imported_from": folder.resolve().name}
    return imported._replace(header=imported.header.model_copy(update={"provenance": provenance}))


def write_model(imported: Imported, folder: Path) -> None:
    """Write the bundle of an imported model into a folder."""
    write_bundle(folder / BUNDLE, imported.header, imported.tensors, imported.tokenizers)
