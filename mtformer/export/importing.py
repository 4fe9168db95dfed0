"""Turn a model of another toolkit into a bundle."""

from pathlib import Path

from mtformer.bundle.format import write_bundle
from mtformer.config.sources import LanguagePair
from mtformer.export.hub_models import download_model
from mtformer.export.import_huggingface import Imported, read_huggingface
from mtformer.runs.folder import BUNDLE
from mtformer.support import __version__
from mtformer.support.errors import UserError
from mtformer.support.hub import license_in

_HUB = "hf:"


def read_model(model: str, languages: LanguagePair | None = None, revision: str | None = None) -> Imported:
    """Read a model of another toolkit.

    Args:
        model: a model of Hugging Face's transformers, its folder or ``hf:OWNER/NAME`` on the hub.
        languages: those that it translates, where its files do not say.
        revision: of a model on the hub, a branch, tag or commit; None: the newest commit.

    Raises:
        UserError: it is a model that we cannot have or find, or its files do not belong together.
        MtformerError: the download failed.
    """
    origin = {"version": __version__}
    if model.startswith(_HUB):
        folder, commit = download_model(model.removeprefix(_HUB), revision)
        origin |= {"imported_from": model, "revision": commit}
    else:
        folder = Path(model)
        if not folder.is_dir():
            raise UserError(f"there is no folder {folder}")
        if revision is not None:
            raise UserError("--revision is for a model of the hub, as in hf:OWNER/NAME")
        origin["imported_from"] = folder.resolve().name
    imported = read_huggingface(folder, origin["imported_from"], languages)
    if license := license_in(folder / "README.md"):
        origin["license"] = license
    return imported._replace(
        header=imported.header.model_copy(update={"provenance": imported.header.provenance | origin})
    )


def write_model(imported: Imported, folder: Path) -> None:
    """Write the bundle of an imported model into a folder."""
    write_bundle(folder / BUNDLE, imported.header, imported.tensors, imported.tokenizers)
