"""Turn a model of another toolkit into a bundle."""

from collections.abc import Sequence
from pathlib import Path

from mtformer.bundle.format import write_bundle
from mtformer.bundle.peek import peek
from mtformer.config.sources import LanguagePair
from mtformer.export.hub_models import download_model
from mtformer.export.import_huggingface import read_huggingface
from mtformer.export.import_marian import read_marian
from mtformer.export.imported import Imported
from mtformer.runs.folder import BUNDLE
from mtformer.support import __version__
from mtformer.support.errors import UserError
from mtformer.support.hub import license_in

_HUB = "hf:"


def read_model(
    model: str, languages: LanguagePair | None = None, revision: str | None = None, vocabularies: Sequence[Path] = ()
) -> Imported:
    """Read a model of another toolkit.

    Args:
        model: a model of Hugging Face's transformers, its folder or ``hf:OWNER/NAME`` on the hub; or a model of Marian,
            its ``.npz`` file.
        languages: those that it translates, where its files do not say.
        revision: of a model on the hub, a branch, tag or commit; None: the newest commit.
        vocabularies: of a model of Marian, its two or the only one, if they are not beside it.

    Raises:
        UserError: there is no such model, or it cannot be imported, or its files do not belong together.
        MtformerError: the download failed.
    """
    origin = {"version": __version__}
    is_marian = model.endswith(".npz")
    if revision is not None and not model.startswith(_HUB):
        raise UserError("--revision is for a model of the hub, as in hf:OWNER/NAME")
    if vocabularies and not is_marian:
        raise UserError("--vocab is for a model of Marian, as in model.npz")
    if model.startswith(_HUB):
        folder, commit = download_model(model.removeprefix(_HUB), revision)
        origin |= {"imported_from": model, "revision": commit}
    else:
        folder = Path(model).parent if is_marian else Path(model)
        if folder.is_file():
            raise UserError(f"{folder} is a file: name the folder of the model")
        if not folder.is_dir():
            raise UserError(f"there is no folder {folder}; write hf:OWNER/NAME for a model of the hub")
        if not is_marian and peek(folder / BUNDLE):
            raise UserError(f"{folder} has a bundle already, which needs no import")
        if (folder / "model.bin").is_file():
            raise UserError(
                f"{folder} is a model for CTranslate2, which cannot be imported: import the model that it was made from"
            )
        origin["imported_from"] = Path(model).resolve().name
    if is_marian:
        imported = read_marian(Path(model), vocabularies, languages)
    else:
        imported = read_huggingface(folder, origin["imported_from"], languages)
    if license := license_in(folder / "README.md"):
        origin["license"] = license
    provenance = imported.header.provenance | origin
    return imported._replace(header=imported.header.model_copy(update={"provenance": provenance}))


def write_model(imported: Imported, folder: Path) -> None:
    """Write the bundle of an imported model into a folder."""
    write_bundle(folder / BUNDLE, imported.header, imported.tensors, imported.tokenizers)
