"""Verified downloads of the Hugging Face hub: ``huggingface_hub`` compares their sizes, but not their checksums."""

import hashlib
import logging
import re
from pathlib import Path
from typing import Any

from datasets import DatasetBuilder, DownloadConfig, DownloadManager

from mtformer.support.errors import MtformerError
from mtformer.support.progress import watched

log = logging.getLogger(__name__)

_SHA1, _SHA256 = re.compile(r"[0-9a-f]{40}"), re.compile(r"[0-9a-f]{64}")


class VerifiedDownloads(DownloadManager):  # type: ignore[misc]
    """Downloads the files that a data set is built from, and verifies those that come from the hub.

    In the cache of ``huggingface_hub``, a file of a commit is a link to a file that is named by its checksum: the
    SHA-256 of a large one, and git's of any other.
    """

    def __init__(self, builder: DatasetBuilder) -> None:
        """Take the builder of the data set; the settings are those that it chooses by itself."""
        config = DownloadConfig(use_etag=False, token=builder.token, storage_options=builder.storage_options)
        super().__init__(
            builder.dataset_name, builder.config.data_dir, config, builder.base_path, record_checksums=False
        )

    def download(self, url_or_urls: Any) -> Any:
        """Download files and return their paths; those whose checksum is wrong are downloaded a second time.

        Raises:
            MtformerError: a checksum is wrong again.
        """
        paths = super().download(url_or_urls)
        if damaged := self._without_damaged():
            log.warning("%s: the checksum is wrong, downloading again", ", ".join(damaged))
            paths = super().download(url_or_urls)
            if damaged := self._without_damaged():
                raise MtformerError(
                    f"{', '.join(damaged)}: downloaded twice with a wrong checksum, and removed from the cache; "
                    "rerun to download again"
                )
        return paths

    def _without_damaged(self) -> list[str]:
        """Remove damaged files from the cache and return their addresses."""
        files = [(url, Path(path)) for url, path in self.downloaded_paths.items() if str(url).startswith("hf://")]
        damaged = []
        for url, path in watched(files, "verifying the download", "files"):
            if path.is_symlink() and not _is_intact(path):
                damaged.append(str(url))
                # The link points to the file, or to another link, where data sets share the file.
                for file in (path.resolve(), path.parent / path.readlink(), path):
                    file.unlink(missing_ok=True)
        return damaged


def _is_intact(path: Path) -> bool:
    """Tell whether a file has the checksum that its link names; True if that is no checksum of the hub."""
    expected = path.readlink().name
    if _SHA256.fullmatch(expected):
        digest = hashlib.sha256()
    elif _SHA1.fullmatch(expected):
        digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    else:
        return True
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: digest).hexdigest() == expected
