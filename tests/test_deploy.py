"""The files that deploy a server name options and paths that there are."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from references import problems

from mtformer.serve import app, libretranslate, own
from mtformer.serve.admission import RequestLimits

DEPLOY = Path(__file__).parent.parent / "deploy"
STOPPING = RequestLimits().timeout + app._DRAIN_SECONDS  # seconds that a server may take to stop
PATHS = [route.path for route in (*libretranslate.ROUTES, *own.ROUTES)]


def test_the_unit_of_systemd() -> None:
    text = (DEPLOY / "mtformer.service").read_text()
    commands = re.findall(r"/bin/mtformer (serve .*)", text)
    assert len(commands) == 2
    found = re.search(r"^TimeoutStopSec=(\d+)$", text, re.MULTILINE)
    assert found
    assert int(found[1]) > STOPPING
    assert [problem for command in commands for problem in problems(f"mtformer {command}")] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    text = (DEPLOY / "mtformer.service").read_text().replace("/opt/mtformer/bin/mtformer", "/bin/true")
    (tmp_path / "mtformer.service").write_text(text)
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / "mtformer.service"], capture_output=True, text=True)
    assert "mtformer.service" not in done.stdout + done.stderr


def test_the_image() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    found = re.search(r"^CMD (\[.*\])$", text, re.MULTILINE)
    assert found
    assert problems(shlex.join(["mtformer", "serve", *yaml.safe_load(found[1])])) == []
    copied = [name for names in re.findall(r"^COPY (?!--)(.*) \S+$", text, re.MULTILINE) for name in names.split()]
    assert "mtformer" in copied
    assert [name for name in copied if not (DEPLOY.parent / name).exists()] == []
    assert any(f"8000{path}" in text for path in PATHS)


def test_the_manifest_of_kubernetes() -> None:
    documents = {each["kind"]: each for each in yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())}
    pod = documents["Deployment"]["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert "--database" in container["args"]  # which several servers share
    assert container["lifecycle"]["preStop"]["sleep"]["seconds"] + STOPPING < pod["terminationGracePeriodSeconds"]
    assert problems(shlex.join(["mtformer", "serve", *container["args"]])) == []
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        assert container[probe]["httpGet"]["path"] in PATHS
    [metric] = documents["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert metric["pods"]["metric"]["name"] == "mtformer_waiting_tokens"
