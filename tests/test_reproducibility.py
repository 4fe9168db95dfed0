"""What a run records of the code that it was trained with."""

import json
from pathlib import Path

import pytest
from conftest import Project

from mtformer.support import reproducibility
from mtformer.support.reproducibility import digest_of_code


def test_a_changed_added_or_renamed_module_changes_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model").mkdir()
    module, new = tmp_path / "model/attention.py", tmp_path / "model/layers.py"
    module.write_text("scale = 1\n")
    monkeypatch.setattr(reproducibility, "__file__", str(tmp_path / "support/reproducibility.py"))
    digests = [digest_of_code()]
    (tmp_path / "model/.#attention.py").symlink_to("nobody@nowhere")  # the lock of an editor
    assert digest_of_code() == digests[0]
    module.write_text("scale = 2\n")
    digests.append(digest_of_code())
    new.touch()
    digests.append(digest_of_code())
    module.rename(tmp_path / "attention.py")
    assert len({*digests, digest_of_code()}) == 4


def test_each_start_records_it(trained: Project) -> None:
    starts = (trained.folder / "runs/config/starts.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(start)["code"] for start in starts] == [digest_of_code()]
