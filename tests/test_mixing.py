"""How often the pairs of each source occur in an epoch, and which tokens stand in front of them."""

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from conftest import Project, make_project, sentence_pairs, write_pairs
from faults import PowerCut, power_cut_before

from mtformer.bundle.format import load_bundle
from mtformer.config import Config, load_config
from mtformer.data.arrays import Ragged
from mtformer.data.tokens import Prefixed
from mtformer.data.training import epoch_order, mixing_weights
from mtformer.runs.checkpoints import newest_checkpoint
from mtformer.runs.description import source_label
from mtformer.runs.folder import RunFolder
from mtformer.support.errors import UserError
from mtformer.training import run

MORE = {"src": "more.en", "tgt": "more.de"}
SOURCES = np.repeat([0, 1, 2], [10, 4, 7])


def counts(order: np.ndarray) -> Counter[int]:
    return Counter(order.tolist())


def test_without_weights_all_pairs_occur_once_in_the_order_of_the_corpus() -> None:
    assert epoch_order(SOURCES, [1.0, 1.0, 1.0], seed=1, epoch=5).tolist() == list(range(21))


def test_a_weight_says_how_often_pairs_occur_in_an_epoch() -> None:
    found = counts(epoch_order(SOURCES, [0.3, 2.0, 1.5], seed=1, epoch=0))
    assert sum(found[i] for i in range(10)) == 3
    assert [found[i] for i in range(10, 14)] == [2] * 4
    assert {found[i] for i in range(14, 21)} == {1, 2}
    assert sum(found[i] for i in range(14, 21)) == 7 + 3
    later = counts(epoch_order(SOURCES, [0.3, 2.0, 1.5], seed=1, epoch=1))
    assert sum(later[i] for i in range(14, 21)) == 7 + 4  # 21 of 14 pairs in two epochs


@pytest.mark.parametrize("weight", [0.2, 0.3, 0.7, 2.4])
def test_over_many_epochs_no_pair_occurs_more_often_than_another_by_two(weight: float) -> None:
    sources, total = np.zeros(10, dtype=np.int64), Counter[int]()
    for epoch in range(30):
        total += counts(epoch_order(sources, [weight], seed=3, epoch=epoch))
        assert max(total.values()) - min(total[i] for i in range(10)) <= 1
    assert total.total() == pytest.approx(30 * 10 * weight)


def test_a_source_with_less_than_a_pair_in_each_epoch_has_its_turn_as_well() -> None:
    sources = np.repeat([0, 1], [4, 5])
    orders = [epoch_order(sources, [1.0, 0.1], seed=1, epoch=epoch).tolist() for epoch in range(10)]
    assert [len(order) for order in orders] == [4, 5] * 5
    assert sorted(order[4] for order in orders[1::2]) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("weights", [[0.001, 0.09, 0.001], [0.0, 0.2, 0.1]])
def test_weights_that_leave_epochs_without_pairs_are_refused(weights: list[float]) -> None:
    for epoch in (0, 4):
        with pytest.raises(UserError, match="no source has a pair in each epoch: raise the weights"):
            epoch_order(SOURCES, weights, seed=1, epoch=epoch)


def test_an_epoch_depends_on_the_seed_and_its_number_alone() -> None:
    weights = [0.5, 1.0, 0.5]
    first = epoch_order(SOURCES, weights, seed=1, epoch=7)
    assert np.array_equal(first, epoch_order(SOURCES, weights, seed=1, epoch=7))
    assert not np.array_equal(first, epoch_order(SOURCES, weights, seed=1, epoch=8))
    assert not np.array_equal(first, epoch_order(SOURCES, weights, seed=2, epoch=7))


def write_file(path: Path) -> Path:
    path.write_bytes(b"")
    return path


def config_of(folder: Path, **data: Any) -> Config:
    project = make_project(folder, n_pairs=20)
    config = yaml.safe_load(project.config.read_text())
    write_pairs(folder, "more", sentence_pairs(20, seed=5))
    config["data"]["train"].append({"src": "more.en", "tgt": "more.de"})
    config["training"]["init_from"] = data.pop("init_from", None)
    config["data"] |= data
    project.config.write_text(yaml.safe_dump(config))
    return load_config(project.config)


def test_a_temperature_evens_out_the_shares_of_sources(tmp_path: Path) -> None:
    data = config_of(tmp_path, temperature=2).data
    # Sizes of 900 and 100 have roots of 30 and 10: shares of 750 and 250 of the 1,000 pairs.
    assert mixing_weights(data, [900, 100]) == pytest.approx([750 / 900, 2.5])
    assert mixing_weights(data.model_copy(update={"temperature": 1.0}), [900, 100]) == [1, 1]
    assert mixing_weights(data.model_copy(update={"temperature": 5.0}), [333, 333, 333]) == [1, 1, 1]
    assert mixing_weights(data.model_copy(update={"temperature": 1.0}), [97_001, 3, 1_234_567]) == [1, 1, 1]
    assert mixing_weights(data, [900, 0]) == pytest.approx([1, 0])


def test_general_sources_share_as_many_pairs_as_the_others_have(tmp_path: Path) -> None:
    own, general = ({"src": "train.en", "tgt": "train.de", "general": is_general} for is_general in (False, True))
    model = str(write_file(tmp_path / "model.safetensors"))
    data = config_of(tmp_path, train=[own, general, general | {"weight": 0.5}], init_from=model).data
    # 100 of 800 + 200 pairs: one in ten of each, and half as many of the last.
    assert mixing_weights(data, [100, 800, 200]) == pytest.approx([1, 0.1, 0.05])
    assert mixing_weights(data, [100, 30, 20]) == [1, 1, 0.5]  # no pair of it occurs twice
    assert mixing_weights(data, [100, 0, 0]) == [1, 1, 0.5]
    assert source_label(data.train[2]).endswith("train.de, weight 0.5, general")


def test_rows_begin_with_the_tags_of_their_source() -> None:
    tagged = Prefixed(Ragged.of([[7, 3], [8, 9, 3], [3]]), [[4], [5, 6]], np.array([1, 0, 0]))
    assert [tagged[i].tolist() for i in range(len(tagged))] == [[5, 6, 7, 3], [4, 8, 9, 3], [4, 3]]
    assert tagged.lengths.tolist() == [4, 4, 2]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"temperature": 0.5}, "allowed: 1.0 or more"),
        (
            {"temperature": 2, "train": [{"src": "more.en", "tgt": "more.de", "weight": 2}]},
            "temperature with the weight",
        ),
        ({"train": [{"src": "more.en", "tgt": "more.de", "weight": 0}]}, "allowed: more than 0.0"),
        ({"train": [{"src": "more.en", "tgt": "more.de", "weight": 1e9}]}, "allowed: 1000.0 or less"),
        ({"train": [{"src": "more.en", "tgt": "more.de", "weight": float("inf")}]}, "allowed: a finite number"),
        ({"train": [{"src": "more.en", "tgt": "more.de", "tag": "s"}]}, "the token <s> has another meaning"),
        ({"train": [MORE | {"tag": "context"}]}, "the token <context> has another meaning"),
        ({"valid": [{"src": "valid.en", "tgt": "valid.de", "tag": "bt"}]}, "weight and tag are for sources of train"),
        ({"valid": [{"src": "valid.en", "tgt": "valid.de", "general": True}]}, "all sources of valid are general"),
        ({"test": [{"src": "test.en", "tgt": "test.de", "general": True}]}, "general is for sources of train and val"),
        (
            {"temperature": 2, "train": [{"src": "train.en", "tgt": "train.de"}, MORE | {"general": True}]},
            "temperature with a general source",
        ),
        (
            {"train": [{"src": "train.en", "tgt": "train.de"}, MORE | {"general": True}]},
            "a general source without training.init_from",
        ),
    ],
)
def test_mixing_that_cannot_be_is_refused(tmp_path: Path, data: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        config_of(tmp_path, **data)


def test_a_limit_of_forgetting_needs_the_text_that_shows_it(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"training\.max_forgetting without a general source of data\.valid"):
        load_config(make_project(tmp_path, n_pairs=20, max_forgetting=1).config)
    assert load_config(make_project(tmp_path, n_pairs=20, max_forgetting=None).config)


# Training


def mixed(folder: Path, weight: float = 2.5) -> Project:
    """Make a project with two sources, one of them weighted and tagged, whose epochs have 60 + 25 pairs."""
    project = make_project(
        folder, n_pairs=60, max_steps=9, max_tokens=256, validate_every=4, checkpoint_every=1, log_every=1
    )
    config = yaml.safe_load(project.config.read_text())
    write_pairs(folder, "bt", sentence_pairs(10, seed=9))
    config["data"]["train"].append({"src": "bt.en", "tgt": "bt.de", "weight": weight, "tag": "bt"})
    project.config.write_text(yaml.safe_dump(config))
    return project


def train(project: Project, *overrides: str) -> RunFolder:
    run.train(load_config(project.config, ["eval.n_samples=0", f"run.dir={project.folder / 'runs'}", *overrides]))
    return RunFolder(project.folder / "runs" / "config")


def test_a_mixture_is_resumed_exactly_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    whole = train(mixed(tmp_path / "whole"))
    cut, places, n_operations = mixed(tmp_path / "cut"), set(), 60
    folder = RunFolder(cut.folder / "runs" / "config")
    while n_operations < 1_000:
        try:
            with power_cut_before(n_operations):
                train(cut)
        except PowerCut:
            newest = newest_checkpoint(folder.checkpoints)
            places.add((newest.state["epoch"], newest.state["batch"]) if newest else None)
            n_operations *= 2
        else:
            break
    assert any(place and place[1] for place in places)
    bundles = [load_bundle(folder.bundle) for folder in (whole, folder)]
    assert bundles[0].header.scores == bundles[1].header.scores
    for ours, theirs in zip(*(bundle.model.parameters() for bundle in bundles), strict=True):
        assert torch.equal(ours, theirs)


def test_an_epoch_is_as_long_as_the_weights_make_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    n_steps = []
    for weight in (1.0, 31.0):
        folder = train(mixed(tmp_path / str(weight), weight), "training.max_steps=1", "training.max_tokens=64")
        n_steps.append(json.loads(folder.starts.read_text())["steps_per_epoch"])
    assert 4 < n_steps[1] / n_steps[0] < 6  # 60 + 310 pairs for 60 + 10
    assert f"310 pairs an epoch from {tmp_path}/31.0/bt.en, which has 10" in caplog.text


def test_a_run_whose_epochs_would_be_empty_does_not_begin(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=60, max_tokens=256)
    config = yaml.safe_load(project.config.read_text())
    config["data"]["train"][0]["weight"] = 0.001
    project.config.write_text(yaml.safe_dump(config))
    with pytest.raises(UserError, match="no source has a pair in each epoch"):
        train(project)


def test_a_run_is_not_resumed_with_other_weights_or_tags(tmp_path: Path) -> None:
    train(mixed(tmp_path), "training.max_steps=1")
    with pytest.raises(UserError, match=r"data.train.weight was \[1.0, 2.5\], is now \[1.0, 3.0\]"):
        train(mixed(tmp_path, weight=3))
    config = mixed(tmp_path)
    config.config.write_text(config.config.read_text().replace("tag: bt", "tag: web"))
    with pytest.raises(UserError, match=r'data.train.tag was \[null, "bt"\], is now \[null, "web"\]'):
        train(config)


def test_a_model_without_the_tags_is_not_fine_tuned_with_them(tmp_path: Path) -> None:
    plain = make_project(tmp_path / "plain", n_pairs=60, max_tokens=256)
    base = train(plain, "training.max_steps=1").bundle
    with pytest.raises(UserError, match="it has no tokens <bt>, which data"):
        train(mixed(tmp_path / "mixed"), f"training.init_from={base}")


def test_tagged_text_is_translated_by_its_tag(tmp_path: Path) -> None:
    project = mixed(tmp_path)
    folder = train(project, "training.max_steps=2")
    tokenizer = load_bundle(folder.bundle).tokenizer
    assert tokenizer.control_symbols == ["<bt>"]
    plain = project.mtformer("explain", "the red house", "--format", "json", "--model", folder.path)
    tagged = project.mtformer("explain", "the red house", "--format", "json", "--tag", "bt", "--model", folder.path)
    assert '"<bt>"' in tagged.stdout and '"<bt>"' not in plain.stdout
    refused = project.mtformer("translate", "the red house", "--tag", "web", "--model", folder.path)
    assert refused.status == 2 and "the model has no tag 'web'; it has bt" in refused.stderr


def test_an_evaluation_names_its_tag(tmp_path: Path) -> None:
    project = mixed(tmp_path)
    folder = train(project, "training.max_steps=2")
    tags = [[], ["--tag", "bt"]]
    found = [
        json.loads(project.mtformer("eval", "--json", "--model", folder.path, "--max-length", "5", *tag).stdout)
        for tag in tags
    ]
    assert [one["tag"] for one in found] == [None, "bt"]
