"""A run that is killed again and again ends with the very weights of one that is left alone."""

import random
import subprocess
import sys
import time
from pathlib import Path

import torch
from conftest import Project, make_project

from mtformer.bundle import load_bundle
from mtformer.training.checkpoint import list_checkpoints, newest_checkpoint

N_KILLS = 20
MAX_STEPS = 600


def make(folder: Path) -> Project:
    settings = {"max_steps": MAX_STEPS, "ema_decay": 0.99, "validate_every": 60, "keep_best": 2, "on_fault": "skip"}
    return make_project(folder, n_pairs=100, **settings, spike_factor=1.5, max_tokens=128, grad_accum_steps=2)


def command(project: Project, checkpoint_every: int) -> list[str]:
    sets = [f"training.checkpoint_every={checkpoint_every}", "model.dropout=0.2", "eval.n_samples=0"]
    arguments = [part for override in sets for part in ("--set", override)]
    return [sys.executable, "-m", "mtformer", "train", str(project.config), *arguments, "--quiet"]


def last_step(project: Project) -> int:
    newest = list_checkpoints(project.folder / "runs" / "config" / "checkpoints")[:1]
    return int(newest[0].name.removeprefix("step-")) if newest else 0


def test_twenty_kills_at_random_moments_change_nothing(tmp_path: Path) -> None:
    whole, killed = make(tmp_path / "whole"), make(tmp_path / "killed")
    subprocess.run(command(whole, 100), cwd=whole.folder, check=True)
    moments = random.Random(1)
    saves_cut_off = 0
    for _ in range(N_KILLS):
        before = last_step(killed)
        process = subprocess.Popen(command(killed, 1), cwd=killed.folder)
        while last_step(killed) == before:
            assert process.poll() is None, "the run ended before it could be killed"
            time.sleep(0.005)
        time.sleep(0.25 * moments.random())
        process.kill()
        process.wait()
        saves_cut_off += bool(list((killed.folder / "runs" / "config" / "checkpoints").glob(".step-*.tmp")))
    assert saves_cut_off > 0  # most of the time goes into saving
    assert 0 < last_step(killed) < MAX_STEPS
    subprocess.run(command(killed, 1), cwd=killed.folder, check=True)

    bundles = [load_bundle(project.folder / "runs" / "config" / "model.safetensors") for project in (whole, killed)]
    assert bundles[0].header.scores == bundles[1].header.scores
    for ours, theirs in zip(*(bundle.model.parameters() for bundle in bundles), strict=True):
        assert torch.equal(ours, theirs)
    folders = [project.folder / "runs" / "config" / "checkpoints" for project in (whole, killed)]
    ends = [newest_checkpoint(folder) for folder in folders]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[0].tensors.keys() == ends[1].tensors.keys()
    assert all(torch.equal(tensor, ends[1].tensors[name]) for name, tensor in ends[0].tensors.items())
    assert ends[0].state | {"seconds": 0} == ends[1].state | {"seconds": 0}
