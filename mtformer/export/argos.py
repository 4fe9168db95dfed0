"""A model as a package of Argos Translate, which LibreTranslate uses: a zip archive with a CTranslate2 model in it."""

import json
import tempfile
import zipfile
from pathlib import Path

from mtformer.bundle.format import Bundle
from mtformer.bundle.header import Header
from mtformer.engines.ctranslate2.conversion import to_spec
from mtformer.engines.ctranslate2.folder import describe_slots
from mtformer.support import __version__
from mtformer.support.errors import UserError
from mtformer.support.files import write_atomically
from mtformer.text.languages import base_language, english_name

_VERSION, _ARGOS_VERSION = "1.0", "1.9"
_MOST_FORCED = 1  # tokens that Argos Translate starts a translation with
_README = """\
# {title}

A model of mtformer {version} for Argos Translate and LibreTranslate, with its weights as {quantization}.

{slots}The bundle that it was made from: {digest}
"""


def require_argos(header: Header) -> None:
    """Check that Argos Translate can use a model.

    Raises:
        UserError: it has several directions, or needs tokens before its texts.
    """
    if len(header.language_pairs) > 1:
        raise UserError(f"Argos Translate takes models of one direction; this one translates {header.title}")
    tokens = header.prefix_tokens(header.language_pairs[0])
    if tokens.src or len(tokens.tgt) > _MOST_FORCED:
        raise UserError("Argos Translate puts no tokens before the texts of a model, and this one needs them")


def write_argos(output: Path, bundle: Bundle, *, quantization: str) -> Path:
    """Write a package that ``argospm install`` takes.

    Argos Translate splits texts into sentences, searches with a length penalty of its own (0.2), and does not prepare
    or check texts as mtformer does.

    Args:
        output: the file.
        bundle: the model.
        quantization: the type of the stored weights.

    Raises:
        UserError: Argos Translate cannot use the model.
        MtformerError: the file cannot be written.
    """
    require_argos(bundle.header)
    write_atomically(output, lambda path: _write(path, bundle, quantization))
    return output


def _write(path: Path, bundle: Bundle, quantization: str) -> None:
    header = bundle.header
    [pair] = header.language_pairs
    src, tgt = map(base_language, pair)
    metadata = {
        "package_version": _VERSION,
        "argos_version": _ARGOS_VERSION,
        "from_code": src,
        "from_name": english_name(src),
        "to_code": tgt,
        "to_name": english_name(tgt),
        "target_prefix": "".join(header.prefix_tokens(pair).tgt),
    }
    readme = _README.format(
        title=header.title,
        version=__version__,
        quantization=quantization,
        slots=describe_slots(bundle.tokenizer),
        digest=bundle.digest,
    )
    spec = to_spec(bundle)
    spec.config.add_source_eos = True  # which mtformer adds itself
    spec.validate()
    spec.optimize(quantization=quantization)
    folder = f"translate-{src}_{tgt}-{_VERSION.replace('.', '_')}"
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        spec.save(temporary)
        for file in sorted(Path(temporary).iterdir()):
            archive.write(file, f"{folder}/model/{file.name}")
        archive.writestr(f"{folder}/sentencepiece.model", bundle.tokenizer.src_model)
        archive.writestr(f"{folder}/metadata.json", json.dumps(metadata, indent=2, ensure_ascii=False))
        archive.writestr(f"{folder}/README.md", readme)
