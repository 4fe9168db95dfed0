"""mtformer improve: the plan, the stages, resuming, and what is refused."""

import json
from pathlib import Path

import pytest
from conftest import Project, make_project


def test_it(tmp_path):
    project = make_project(tmp_path / "p", n_pairs=200, max_steps=150, learning_rate=0.005)
    r = project.mtformer("improve", "config.yaml", "--output", "better", "--plan")
    print(r.stdout, r.stderr)
    r = project.mtformer("improve", "config.yaml", "--output", "better")
    print(r.stderr[-6000:], r.stdout)
    assert r.status == 0
    r = project.mtformer("improve", "config.yaml", "--output", "better")
    print(r.stderr[-3000:])
    assert 0
