"""Models of the Hugging Face hub, downloaded with ``huggingface_hub`` into its cache (``$HF_HOME``)."""

import logging
import re
from collections.abc import Mapping
from pathlib import Path

from mtformer.export.import_huggingface import FILES, family_of
from mtformer.export.imported import read_json
from mtformer.export.tensors import WEIGHTS, weight_paths
from mtformer.support.errors import UserError
from mtformer.support.hub import explained, prepare_hub, verified

log = logging.getLogger(__name__)

_CONFIG = "config.json"
_VARIANTS = [variant for name in WEIGHTS for variant in (name, f"{name}.index.json")]  # the first one is taken
_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def download_model(name: str, revision: str | None = None) -> tuple[Path, str]:
    """Download and verify the files that importing a model needs, unless they are in the cache.

    Args:
        name: as in ``Helsinki-NLP/opus-mt-en-de``.
        revision: a branch, tag or commit; None: the newest commit.

    Returns:
        The folder of the files, and the commit that they are from.

    Raises:
        UserError: the model or a file of it does not exist or is not accessible, or no such model can be imported.
        MtformerError: the download failed.
    """
    if not _NAME.fullmatch(name):
        raise UserError(f"hf:{name} names no model of the hub, as hf:OWNER/NAME would")
    with explained(f"cannot load the model hf:{name}", f"https://huggingface.co/{name}"):
        commit, sizes = _listing(name, revision)
        weights = next((file for file in _VARIANTS if file in sizes), None)
        if weights is None:
            raise UserError(f"the model hf:{name} has no weights: neither {' nor '.join(WEIGHTS)}")
        small = _download(name, commit, {_CONFIG: None, **{file: sizes[file] for file in FILES if file in sizes}})
        family_of(read_json(small[_CONFIG]))  # before much is downloaded for nothing
        folder = _download(name, commit, {weights: sizes[weights]})[weights].parent
        _download(name, commit, {path.name: sizes.get(path.name) for path in weight_paths(folder)})
    return folder, commit


def _listing(name: str, revision: str | None) -> tuple[str, Mapping[str, int | None]]:
    """Return the commit and the sizes of its files: those on the hub or, if it is not asked, those in the cache."""
    from huggingface_hub import HfApi

    is_cache = prepare_hub()
    # This notes in the cache which commit the revision is.
    folder = _path(name, revision, _CONFIG).parent
    commit = folder.name
    if not is_cache:
        info = HfApi().model_info(name, revision=commit, files_metadata=True)
        return commit, {file.rfilename: file.size for file in info.siblings or []}
    files = [path.name for path in folder.iterdir()]
    if not any(variant in files for variant in _VARIANTS):
        _path(name, commit, _VARIANTS[0])  # raises the library's error
    return commit, dict.fromkeys(files)


def _download(name: str, commit: str, sizes: Mapping[str, int | None]) -> dict[str, Path]:
    """Return the paths of files of a commit; those that are not in the cache are downloaded."""
    paths: dict[str, Path] = {}

    def download() -> None:
        paths.update({file: _path(name, commit, file, size) for file, size in sizes.items()})

    verified(download, lambda: {f"hf:{name}/{file}": path for file, path in paths.items()})
    return paths


def _path(name: str, revision: str | None, file: str, size: int | None = None) -> Path:
    """Return the path of a file, which is downloaded if it is not in the cache."""
    from huggingface_hub import errors, hf_hub_download, try_to_load_from_cache

    if not isinstance(try_to_load_from_cache(name, file, revision=revision), str):
        log.info("downloading %s%s", file, f" ({size / 1e6:,.0f} MB)" if size and size >= 1e6 else "")
    try:
        return Path(hf_hub_download(name, file, revision=revision))
    except (errors.GatedRepoError, errors.LocalEntryNotFoundError):  # kinds of the following
        raise
    except errors.RepositoryNotFoundError:
        raise UserError(
            f"there is no model hf:{name}, or it is private: check its name, or run `hf auth login`"
        ) from None
    except errors.RevisionNotFoundError:
        raise UserError(f"the model hf:{name} has no revision {revision}") from None
    except errors.EntryNotFoundError:
        raise UserError(f"the model hf:{name} lacks {file}") from None
