"""A small config, and how tests read it and its problems."""

from pathlib import Path
from typing import Any

import pytest

from mtformer.config import Config, load_config
from mtformer.support.errors import UserError

MINIMAL = """\
data:
  src_lang: en
  tgt_lang: de
  train: [{src: a.en, tgt: a.de}]
  valid: [{tsv: pairs.tsv}]
"""  # what a test adds begins in line 6
SECTIONS: dict[str, Any] = {name: field.annotation for name, field in Config.model_fields.items()}
del SECTIONS["provenance"]  # not for users


def load(folder: Path, text: str | bytes, *overrides: str) -> Config:
    path = folder / "my.config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(path, overrides)


def problems(folder: Path, text: str | bytes, *overrides: str) -> list[str]:
    """Return what is wrong with a config, one sentence per problem, with ``C`` for the config's path."""
    with pytest.raises(UserError) as caught:
        load(folder, text, *overrides)
    heading, *rest = str(caught.value).replace(f"{folder}/my.config.yaml", "C").replace(f"{folder}/", "").split("\n")
    assert not rest or heading == f"the config has {len(rest)} problems:"
    return rest or [heading]
