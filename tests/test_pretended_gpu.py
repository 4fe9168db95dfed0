"""The path of a GPU, on a device that is not the processor but computes on it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs() -> list[dict[str, Any]]:
    """Results of each architecture, on the processor and on the device in turn."""
    done = subprocess.run([sys.executable, HERE / "pretended_gpu.py"], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_all_tensors_of_updates_and_searches_are_on_the_device_and_have_the_values_of_the_cpu(
    runs: list[dict[str, Any]],
) -> None:
    assert len(runs) == 8
    for on_cpu, on_device in zip(runs[::2], runs[1::2], strict=True):
        assert (on_cpu["results"].pop("device"), on_device["results"].pop("device")) == ("cpu", "pretended:0")
        assert on_device["results"].keys() == on_cpu["results"].keys()
        for name, expected in on_cpu["results"].items():
            assert flat(on_device["results"][name]) == pytest.approx(flat(expected), rel=1e-3, abs=1e-5), name


def flat(value: Any) -> list[float]:
    return [number for item in value for number in flat(item)] if isinstance(value, list) else [value]


def test_the_processor_waits_once_in_an_update(runs: list[dict[str, Any]]) -> None:
    assert all(run["waits"]["update"] == {} for run in runs[::2])
    assert all(run["waits"]["update"] == {"training/update.py update": 2} for run in runs[1::2])  # of two updates


def test_a_greedy_search_waits_once_in_each_step_and_for_what_it_has_found(runs: list[dict[str, Any]]) -> None:
    for run in runs[1::2]:
        lengths = [len(ids) for [(ids, _)] in run["results"]["beam 1"]]
        assert run["waits"]["beam 1"] == {
            "search/processors.py __init__": 2,  # at the start, where it has nothing to wait for
            "search/greedy.py decode_rows": 1 + max(lengths),
            "search/greedy.py <genexpr>": 3 * len(set(lengths)),  # at the end
        }


def test_no_search_waits_inside_a_step_of_the_model(runs: list[dict[str, Any]]) -> None:
    for run in runs[1::2]:
        assert {place.split("/")[0] for place in run["waits"]["beam 4"]} == {"search"}


def test_a_validation_waits_for_the_loss_of_each_batch_and_as_its_searches_do(runs: list[dict[str, Any]]) -> None:
    for run in runs[1::2]:
        waits = run["waits"]["validation"]
        assert waits.pop("training/validation.py _summed_loss") == 2
        assert waits.pop("model/positions.py forward", 0) <= 3  # the table grows
        assert waits.keys() == run["waits"]["beam 1"].keys()
