"""Verified downloads of data sets of the Hugging Face hub."""

from functools import partial
from pathlib import Path
from typing import Any

from datasets import DatasetBuilder, DownloadConfig, DownloadManager

from mtformer.support.hub import verified


class VerifiedDownloads(DownloadManager):  # type: ignore[misc]
    """Downloads the files that a data set is built from, and verifies those that come from the hub."""

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
        return verified(partial(super().download, url_or_urls), self._files_of_hub)

    def _files_of_hub(self) -> dict[str, Path]:
        """Return the paths of the files that were downloaded from the hub, by their addresses."""
        paths = ((str(url), Path(path)) for url, path in self.downloaded_paths.items())
        return {url: path for url, path in paths if url.startswith("hf://")}
