"""The path of a GPU, on a device that is not the processor but computes on it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent


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


def test_the_processor_waits_for_the_end_and_for_nan_in_each_step_of_a_greedy_search(
    runs: list[dict[str, Any]],
) -> None:
    for run in runs[1::2]:
        n_steps = 1 + max(len(ids) for [(ids, _)] in run["results"]["beam 1"])
        in_each_step = {place: n for place, n in run["waits"]["beam 1"].items() if n >= n_steps}
        assert in_each_step.keys() <= {
            "search/processors.py refuse_nan",
            "search/greedy.py choose",
            "search/greedy.py decode_rows",
        }
