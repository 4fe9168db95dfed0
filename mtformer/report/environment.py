"""The part of a page about the environment of a run, and how to repeat it."""

import shlex
from collections.abc import Mapping
from typing import Any

from mtformer.report.elements import Html, element, facts, joined
from mtformer.runs.contents import Contents


def environment(run: Contents) -> Html:
    """Return where the run was trained, and how it can be repeated."""
    provenance = run.config.provenance
    machine = run.machine
    versions = provenance.versions
    rows: list[tuple[object, object]] = [
        ("system", machine.get("system")),
        ("processor", machine.get("processor")),
        ("device", machine.get("device")),
        ("processes", machine.get("processes")),
        ("threads", machine.get("threads")),
        ("precision", run.config.training.precision),
        ("versions", ", ".join(f"{name} {version}" for name, version in versions.items())),
        *((f"fingerprint of {name}", digest) for name, digest in provenance.fingerprints.items()),
        *(("resumed" if i else "started", _start(start)) for i, start in enumerate(run.starts)),
    ]
    return joined(
        [
            facts(rows),
            element("h3", "Commands"),
            element("pre", "\n".join(commands(run)), tabindex=0),
            element("p", _reproduction(run), class_="muted"),
        ]
    )


def _reproduction(run: Contents) -> str:
    """Return a sentence on how exactly the commands reproduce the run."""
    same = "The same settings, seed and text on the same machine with as many threads give the same weights"
    changed = bool(run.config.provenance.changes)
    if run.config.training.max_minutes is None and not changed:
        return f"{same}."
    reasons = []
    if run.config.training.max_minutes is not None:
        reasons.append(
            "the time limit (training.max_minutes) ends another run at another step, and the learning rate may depend "
            "on the time as well"
        )
    if changed:
        reasons.append("settings were changed when the run was resumed, and config.yaml has the last ones only")
    return f"{same} after as many steps. Not so here: {'; '.join(reasons)}. Expect similar scores, not equal ones."


def _start(start: Mapping[str, Any]) -> str:
    return f"{str(start.get('time', '')).replace('T', ' ').replace('+00:00', ' UTC')} at step {start['step']:,}"


def commands(run: Contents) -> list[str]:
    """Return the commands that train such a model again, score it and write this page."""
    again = f"{run.name}-again"
    path = run.folder.path
    home = path.parent if path.name == run.name else path.resolve().parent  # a run may be named `.`
    folder = str(home / again)
    machine = run.machine
    versions = run.config.provenance.versions
    packages = [
        f"{name}=={version.partition('+')[0]}"
        for name, version in versions.items()
        if name not in ("mtformer", "python")
    ]
    threads = f"OMP_NUM_THREADS={machine['threads']} " if machine.get("threads") else ""
    n_processes = int(machine.get("processes", 1))
    processes = ["--nproc", str(n_processes)] if n_processes > 1 else []
    train = ["mtformer", "train", str(home / run.name / run.folder.config.name)]
    train += ["--set", f"run.dir={home}", "--set", f"run.name={again}", *processes]
    own = ", ".join(f"{name} {versions[name]}" for name in ("mtformer", "python") if name in versions)
    return [
        *([f"# with {own}"] if own else []),
        shlex.join(["pip", "install", *packages]),
        threads + shlex.join(train),
        shlex.join(["mtformer", "eval", "--model", folder]),
        shlex.join(["mtformer", "report", folder]),
    ]
