"""The main job where Python lacks what only Linux and macOS have."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import Project, make_project

TESTS = Path(__file__).parent

PRELUDE = """
import sys
from mtformer.cli import main

def run(*arguments):
    sys.argv = ["mtformer", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code, arguments
"""

KILLED = """
import os
from mtformer.training import checkpoint

save = checkpoint.save_checkpoint
def save_and_die(*arguments, **settings):
    save(*arguments, **settings)
    os._exit(9)  # as abrupt as kill -9
checkpoint.save_checkpoint = save_and_die
run("train", "config.yaml")
"""

ALL = """
from mtformer.support.processes import workers

workers._SECONDS_ALONE, workers.n_cpus = 0, lambda: 2
assert list(workers.in_order(abs, [-1, 2, -3])) == [(-1, 1), (2, 2), (-3, 3)]
run("train", "config.yaml")
run("runs")
run("translate", "--model", "runs/config", "--input", "valid.en", "--output", "valid.txt")
run("translate", "--model", "runs/config", "dieses grüne Auto")
run("eval", "--model", "runs/config", "--output", "test.txt")
run("explain", "--model", "runs/config", "the red house", "--output", "page.html")
run("export", "runs/config", "--to", "ctranslate2", "--output", "exported")
run("translate", "--model", "exported", "the red house")
run("train", "config.yaml", "--fresh", "--set", "training.max_steps=1")
"""


def run_as_on_windows(project: Project, script: str) -> subprocess.CompletedProcess[str]:
    """Run commands in a process whose encoding is not UTF-8 and which, on Linux, lacks what Windows lacks."""
    simulation = [str(TESTS / "like_windows")] if sys.platform == "linux" else []
    paths = [*simulation, str(TESTS.parent), os.environ.get("PYTHONPATH", "")]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONIOENCODING": "cp1252",
        "LC_ALL": "C",
        "PYTHONCOERCECLOCALE": "0",
        "PYTHONUTF8": "0",
    }
    file = project.folder / "script.py"
    file.write_text(
        f"{PRELUDE}\nif __name__ == '__main__':\n" + "".join(f"    {line}\n" for line in script.splitlines())
    )
    return subprocess.run([sys.executable, file], cwd=project.folder, env=env, capture_output=True, encoding="utf-8")


def test_the_main_job_needs_nothing_that_windows_lacks(tmp_path: Path) -> None:
    project = make_project(tmp_path, n_pairs=60, max_steps=6, validate_every=2)
    killed = run_as_on_windows(project, KILLED)
    assert killed.returncode == 9, killed.stderr
    done = run_as_on_windows(project, ALL)
    assert done.returncode == 0, done.stderr
    assert "resuming from step 2" in done.stderr
    assert len((tmp_path / "valid.txt").read_text(encoding="utf-8").splitlines()) == 20
    assert (tmp_path / "page.html").is_file() and (tmp_path / "exported/model.bin").is_file()
    left = [path.name for path in tmp_path.iterdir() if ".part" in path.name or path.name.startswith(".")]
    assert left in ([], ["valid.txt.part.lock"])  # on Windows, filelock removes it
