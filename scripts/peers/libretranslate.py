"""Run LibreTranslate with one model that mtformer export --to argos has written, for scripts/bench_serve.py --url.

LibreTranslate downloads models that split texts into sentences; here each text is a sentence, which saves it that time,
and nothing is downloaded.
Run this with the Python of an environment that has libretranslate: python scripts/peers/libretranslate.py PACKAGE PORT
"""

import os
import sys
import tempfile
import zipfile
from pathlib import Path


def main() -> None:
    """Serve a package on a port."""
    package, port = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    with zipfile.ZipFile(package) as archive:
        archive.extractall(folder / "packages")
    os.environ |= {"ARGOS_PACKAGES_DIR": str(folder / "packages"), "XDG_DATA_HOME": str(folder)}
    os.environ |= {"XDG_CONFIG_HOME": str(folder), "ARGOS_CHUNK_TYPE": "MINISBD"}
    sys.path[:] = [path for path in sys.path if path != str(Path(__file__).parent)]  # where this file has its name

    import argostranslate.sbd
    import libretranslate.init
    from libretranslate.main import main as serve

    libretranslate.init.boot = lambda *_: None  # looks for newer models
    argostranslate.sbd.MiniSBDSentencizer.split_sentences = lambda self, text: [text]
    os.chdir(folder)  # it writes into the current folder
    sys.argv = ["libretranslate", "--port", port, "--disable-web-ui", "--disable-files-translation", "--threads", "64"]
    serve()


if __name__ == "__main__":
    main()
