"""The parts of a page about the data, the model, the settings and the environment of a run, and how to repeat it."""

import shlex
from collections.abc import Iterator

from mtformer.config import dump_override
from mtformer.report.elements import Html, element, facts, markup, muted, table
from mtformer.report.test_set import TranslatedTestSet
from mtformer.runs.contents import METRIC_NAMES, Contents
from mtformer.runs.description import source_label
from mtformer.support.terminal import counted


def data_and_model(run: Contents, result: TranslatedTestSet | None) -> Html:
    """Return the sources and the size of the text, and the architecture of the model."""
    return element("div", element("div", _data(run, result)), element("div", _model(run)), class_="columns")


def _data(run: Contents, result: TranslatedTestSet | None) -> Iterator[Html]:
    config, data = run.config.data, run.data
    recorded = data.get("pairs_by_source", [])
    by_source = recorded if len(recorded) == len(config.train) else [None] * len(config.train)
    rows = [("train", source_label(source), count) for source, count in zip(config.train, by_source, strict=True)]
    rows += [
        (part, "; ".join(map(source_label, sources)) if sources else "held out of train", count)
        for part, sources, count in (
            ("valid", config.valid, data.get("valid_pairs")),
            ("test", config.test, len(result.sentences) if result else None),
        )
        if sources or part in config.held_out
    ]
    yield element("h3", "Data")
    cells = [[part, names, "–" if count is None else f"{count:,}"] for part, names, count in rows]
    yield table(["part", "sources", "pairs"], cells, numbers=[2])
    dropped = data.get("dropped", {})
    if data:
        n_dropped = f"{counted(sum(dropped.values()), 'pair')} dropped:" if dropped else "No pair was dropped."
        tokens = f"{data['src_tokens']:,} source and {data['tgt_tokens']:,} target tokens"
        yield element("p", f"{data['pairs']:,} pairs with {tokens} were trained on. {n_dropped}")
    if dropped:
        yield table(["reason", "pairs"], [[why, f"{n:,}"] for why, n in dropped.items()], numbers=[1])


def _model(run: Contents) -> Iterator[Html]:
    model, tokenizer = run.config.model, run.config.tokenizer
    src_size, tgt_size = run.vocab_sizes or (tokenizer.vocab_size, tokenizer.vocab_size)
    is_single = tokenizer.joint or not run.vocab_sizes
    yield element("h3", "Model")
    yield facts(
        [
            ("layers", f"{model.n_encoder_layers} encoder, {model.n_decoder_layers} decoder"),
            (
                "width",
                f"d_model {model.d_model}, d_ff {model.d_ff}, {model.n_heads} heads of "
                f"{model.d_model // model.n_heads}",
            ),
            ("norm", f"{model.norm}-norm"),
            ("feed-forward", model.feed_forward),
            ("positions", model.positions),
            ("dropout", model.dropout),
            ("tokenizer", f"{tokenizer.type}, {'joint' if tokenizer.joint else 'one for each language'}"),
            ("vocabulary", f"{src_size:,} " + ("" if is_single else f"source and {tgt_size:,} target ") + "tokens"),
            *((f"parameters, {part}", f"{count:,}") for part, count in run.parameters.items()),
        ]
    )


def settings(run: Contents) -> Iterator[Html]:
    """Yield the settings of training and search, their changes, and the whole config."""
    training, search = run.config.training, run.config.search
    limits = [
        f"{value:,.9g} {name if value != 1 else name.removesuffix('s')}"
        for name in ("steps", "epochs", "minutes")
        if (value := getattr(training, f"max_{name}")) is not None
    ]
    times = f" × {training.grad_accum_steps}" if training.grad_accum_steps > 1 else ""
    warmup = f"{training.schedule}, up to {training.warmup_steps:,} warm-up steps"
    yield facts(
        [
            ("fine-tuned from", training.init_from),
            ("kept fixed", ", ".join(training.freeze)),
            ("adapter", training.lora and f"LoRA of rank {training.lora.rank}"),
            ("optimizer", training.shown_optimizer),
            ("learning rate", f"{training.learning_rate:g} at most, {warmup}"),
            ("batch", f"{training.max_tokens:,} tokens{times}"),
            ("limit", ", ".join(limits)),
            ("label smoothing", training.label_smoothing),
            ("gradient clipping", training.max_grad_norm),
            ("weight average", training.ema_decay or "none"),
            ("best model by", f"validation {METRIC_NAMES[run.metric]}"),
            ("seed", training.seed),
            ("search", f"beam size {search.beam_size}, length penalty {search.length_penalty:g}"),
        ]
    )
    if changes := run.config.provenance.changes:
        rows = [[f"{change.step:,}", change.key, str(change.old), str(change.new)] for change in changes]
        yield element("h3", "Changed when the run was resumed")
        yield table(["step", "key", "old", "new"], rows, numbers=[0])
    text = run.folder.config.read_text(encoding="utf-8", errors="replace")
    yield element("details", element("summary", "config.yaml"), element("pre", text, tabindex=0))


def environment(run: Contents) -> Html:
    """Return the hardware and versions of the run, and how to reproduce it."""
    provenance, machine = run.config.provenance, run.machine
    rows: list[tuple[object, object]] = [
        *((key, machine.get(key)) for key in ("system", "processor", "device", "processes", "threads")),
        ("precision", run.config.training.precision),
        ("versions", ", ".join(f"{name} {version}" for name, version in provenance.versions.items())),
        *((f"fingerprint of {name}", digest) for name, digest in provenance.fingerprints.items()),
    ]
    for i, start in enumerate(run.starts):
        time = start["time"].replace("T", " ").replace("+00:00", " UTC")
        rows.append(("resumed" if i else "started", f"{time} at step {start['step']:,}"))
    code = element("pre", "\n".join(commands(run)), tabindex=0)
    return markup([facts(rows), element("h3", "Commands"), code, muted(_reproduction(run))])


def _reproduction(run: Contents) -> str:
    """Return a sentence on how exactly the commands reproduce the run."""
    reasons = []
    if run.config.training.max_minutes is not None:
        reasons.append(
            "the time limit (training.max_minutes) ends another run at another step, and the learning rate may depend "
            "on the time as well"
        )
    if run.config.provenance.changes:
        reasons.append("settings were changed when the run was resumed, and config.yaml has the last ones only")
    same = "The same settings, seed and text on the same machine give the same weights"
    if not reasons:
        return f"{same}."
    return f"{same} after as many steps. Not so here: {'; '.join(reasons)}. Expect similar scores, not equal ones."


def commands(run: Contents) -> list[str]:
    """Return the commands that train such a model again, score it and write this page."""
    again = f"{run.name}-again"
    path = run.folder.path
    home = path.parent if path.name == run.name else path.resolve().parent  # a run may be named `.`
    folder = str(home / again)
    versions = dict(run.config.provenance.versions)
    own = ", ".join(f"{name} {versions.pop(name)}" for name in ("mtformer", "python") if name in versions)
    packages = [f"{name}=={version.partition('+')[0]}" for name, version in versions.items()]
    n_processes = run.machine.get("processes", 1)
    processes = ["--nproc", str(n_processes)] if n_processes > 1 else []
    train = ["mtformer", "train", str(home / run.name / run.folder.config.name)]
    train += ["--set", dump_override("run.dir", str(home)), "--set", dump_override("run.name", again), *processes]
    return [
        *([f"# with {own}"] if own else []),
        shlex.join(["pip", "install", *packages]),
        shlex.join(train),
        shlex.join(["mtformer", "eval", "--model", folder]),
        shlex.join(["mtformer", "report", folder]),
    ]
