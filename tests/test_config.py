import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Project
from pydantic import ValidationError

from mtformer.config import (
    Base,
    Change,
    Config,
    Facts,
    HubDataset,
    JsonlFile,
    ModelConfig,
    Provenance,
    ResolvedConfig,
    TextFiles,
    TokenizerConfig,
    TsvFile,
    dump_config,
    load_config,
    resolve,
)
from mtformer.errors import UserError

MINIMAL = """\
data:
  src_lang: en
  tgt_lang: de
  train: [{src: a.en, tgt: a.de}]
  valid: [{tsv: pairs.tsv}]
"""  # what a test adds begins in line 6
SECTIONS: dict[str, Any] = {name: field.annotation for name, field in Config.model_fields.items()}
del SECTIONS["provenance"]  # not for users
TINY, SMALL = (2, 128, 4, 512, 0.2, "pre"), (3, 256, 4, 1024, 0.2, "pre")
BASE, BIG = (6, 512, 8, 2048, 0.1, "post"), (6, 1024, 16, 4096, 0.3, "post")  # Vaswani et al. 2017, table 3


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "texts"
    for name in ("a.en", "a.de", "pairs.tsv", "pairs.jsonl.gz", "more/b.tsv"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # paths do not depend on where the command is run
    return folder


def load(folder: Path, text: str | bytes, *overrides: str) -> Config:
    path = folder / "my.config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_config(path, overrides)


def problems(folder: Path, text: str | bytes, *overrides: str) -> list[str]:
    """Return what is wrong with a config, one sentence per problem, with ``C`` for the config's path."""
    with pytest.raises(UserError) as caught:
        load(folder, text, *overrides)
    heading, *rest = str(caught.value).replace(f"{folder}/my.config.yaml", "C").replace(f"{folder}/", "").split("\n")
    assert not rest or heading == f"the config has {len(rest)} problems:"
    return rest or [heading]


def size_of(config: Config) -> tuple[object, ...]:
    model = config.model
    assert model.n_encoder_layers == model.n_decoder_layers
    return model.n_encoder_layers, model.d_model, model.n_heads, model.d_ff, model.dropout, model.norm


def test_a_minimal_config_is_completed_with_the_defaults(folder: Path) -> None:
    config = load(folder, MINIMAL + "training:\nmodel: {}\nrun:\n")
    assert (config.data.src_lang, config.data.tgt_lang, config.data.test) == ("en", "de", [])
    assert (config.run.dir, config.run.name) == (Path("runs"), "my.config")
    for name in SECTIONS.keys() - {"data", "run"}:
        assert getattr(config, name) == SECTIONS[name]()


def test_every_kind_of_source_is_read_and_its_path_starts_from_the_config(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder / "more" / ".."))
    text = f"""\
data:
  src_lang: en
  tgt_lang: de
  train:
    - {{src: ~/a.en, tgt: ./more/../a.de}}
    - tsv: more/b.tsv
    - {{jsonl: pairs.jsonl.gz, src_key: no, tgt_key: text}}
    - {{hf: org/name, config: 012, split: train, src_column: x, tgt_column: y}}
  valid: [{{tsv: {folder}/pairs.tsv}}]
  test: [{{jsonl: pairs.jsonl.gz}}, {{hf: org/name, split: test}}]
"""
    data, jsonl = load(folder, text).data, folder / "pairs.jsonl.gz"
    assert data.train == [
        TextFiles(src=folder / "a.en", tgt=folder / "a.de"),
        TsvFile(tsv=folder / "more" / "b.tsv"),
        JsonlFile(jsonl=jsonl, src_key="no", tgt_key="text"),
        HubDataset(hf="org/name", config="012", split="train", src_column="x", tgt_column="y"),
    ]
    assert data.valid == [TsvFile(tsv=folder / "pairs.tsv")]
    assert data.test == [JsonlFile(jsonl=jsonl), HubDataset(hf="org/name", split="test")]


@pytest.mark.parametrize(("src", "tgt"), [("en", "de"), ("de", "en")])
def test_languages_are_filled_into_paths_and_the_name_and_links_stay_links(folder: Path, src: str, tgt: str) -> None:
    (folder / "link.en").symlink_to(folder / "a.en")
    (folder / "link.de").symlink_to(folder / "a.de")
    text = MINIMAL.replace("{src: a.en, tgt: a.de}", "{src: 'link.{src_lang}', tgt: 'link.{tgt_lang}'}")
    text += "run: {name: 'x_{src_lang}_{tgt_lang}_{other}'}\n"
    config = load(folder, text, f"data.src_lang={src}", f"data.tgt_lang={tgt}")
    assert config.data.train == [TextFiles(src=folder / f"link.{src}", tgt=folder / f"link.{tgt}")]
    assert config.run.name == f"x_{src}_{tgt}_{{other}}"


@pytest.mark.parametrize("written_in", ["the file", "an override"])
@pytest.mark.parametrize(
    ("dotted", "written", "meant"),
    [
        ("training.learning_rate", "5e-4", 0.0005),
        ("training.seed", "012", 12),
        ("training.max_steps", "'10'", 10),
        ("tokenizer.joint", "no", False),
        ("data.src_lang", "no", "no"),
        ("run.name", "012", "012"),
        ("run.name", "1e3", "1e3"),
        ("run.name", "2024-01-01", "2024-01-01"),
        ("run.name", "12:30", "12:30"),
        ("run.name", "'null'", "null"),
        ("run.name", '"~"', "~"),
        ("run.name", "~", "my.config"),
        ("eval.bleu_tokenize", "none", "none"),
        ("training.early_stopping_patience", "null", None),
        ("training.early_stopping_patience", "~", None),
        ("training.early_stopping_patience", "", None),
    ],
)
def test_a_value_is_what_its_key_means_and_not_what_yaml_guesses(
    folder: Path, written_in: str, dotted: str, written: str, meant: object
) -> None:
    section, key = dotted.split(".")
    if written_in == "an override":
        config = load(folder, MINIMAL, f"{dotted}={written}")
    elif section == "data":
        config = load(folder, MINIMAL.replace(f"{key}: en", f"{key}: {written}"))
    else:
        config = load(folder, f"{MINIMAL}{section}:\n  {key}: {written}\n")
    value = getattr(getattr(config, section), key)
    assert (value, type(value)) == (meant, type(meant))  # with the type, as 1 == True


@pytest.mark.parametrize(
    ("dotted", "written", "problem"),
    [
        ("training.max_steps", "many", "given `many`, allowed: a whole number"),
        ("training.max_steps", "0", "given `0`, allowed: 1 or more"),
        ("training.seed", "true", "given `true`, allowed: a whole number"),
        ("training.seed", "~", "given nothing, allowed: a whole number"),
        ("training.seed", "2147483648", "given `2147483648`, allowed: less than 2147483648"),
        ("training.learning_rate", "0", "given `0`, allowed: more than 0.0"),
        ("training.learning_rate", ".inf", "given `.inf`, allowed: a number"),
        ("training.optimizer", "sgd", "given `sgd`, allowed: adamw, adam or muon"),
        ("model.preset", "huge", "given `huge`, allowed: auto, tiny, small, base or big"),
        ("tokenizer.joint", "maybe", "given `maybe`, allowed: true or false"),
        ("tokenizer.vocab_size", "300000", "given `300000`, allowed: 256000 or less"),
        ("run.name", "[a, b]", "given `['a', 'b']`, allowed: text"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed(folder: Path, dotted: str, written: str, problem: str) -> None:
    section, key = dotted.split(".")
    assert problems(folder, f"{MINIMAL}{section}:\n  {key}: {written}\n") == [f"C:7: {dotted}: {problem}"]


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", "''"])
def test_a_run_cannot_be_named_like_another_folder(folder: Path, name: str) -> None:
    (problem,) = problems(folder, f"{MINIMAL}run:\n  name: {name}\n")
    assert problem.startswith("C:7: run.name: given ")
    assert "match pattern" not in problem  # a regular expression is no plain sentence


@pytest.mark.parametrize("path", ["~", "[a.en]", "~nosuchuser/a.en", "a" * 300, "a.en/x", '"a\\0b"', "."])
def test_a_path_that_cannot_be_is_a_problem_like_a_missing_file(folder: Path, path: str) -> None:
    (problem,) = problems(folder, MINIMAL.replace("a.en", path))
    assert problem.startswith("C:4: data.train.0.src: ")
    assert "pathlib" not in problem


def test_all_problems_are_told_at_once_each_with_its_line(folder: Path) -> None:
    text = """\
data:
  src_lang: EN
  train:
    - {src: a.en, tgt: gone.de}
    - {src: gone.en,
       tgt: gone.de}
    - {jsonl: pairs.jsonl.gz, scr_key: x}
    - tsvv: pairs.tsv
  valid: {tsv: pairs.tsv}
  test:
    - tsv: gone.tsv
    - jsonl: gone.jsonl
    - hf: org/name
    - {tsv: pairs.tsv, hf: org/name}
    - a.en
modle: {}
warmup_steps: 10
training: hello
tokenizer:
  vocab_size: 10
  vocab_size: many
search:
  beam_size: 4
eval: {colour: red}
search:
  beam_size: 4.5
  beem_size: 4
model: {source_lang: en}
"""
    kinds = "a source is one of {src: …, tgt: …}, {tsv: …}, {jsonl: …}, {hf: …, split: …}, {builtin: phrasebook}"
    assert set(problems(folder, text, "eval.n_samples")) == {
        "C:2: data.src_lang: given `EN`, allowed: a language code such as en, de or zh",
        "C:1: data.tgt_lang: this key is required and not given",
        "C:4: data.train.0.tgt: there is no file gone.de",
        "C:5: data.train.1.src: there is no file gone.en",
        "C:6: data.train.1.tgt: there is no file gone.de",
        "C:7: data.train.2.scr_key: there is no such key; did you mean `src_key`?",
        f"C:8: data.train.3: {kinds}",
        "C:9: data.valid: given `{'tsv': 'pairs.tsv'}`, allowed: a list",
        "C:11: data.test.0.tsv: there is no file gone.tsv",
        "C:12: data.test.1.jsonl: there is no file gone.jsonl",
        "C:13: data.test.2.split: this key is required and not given",
        "C:14: data.test.3.hf: there is no such key; there are tsv",
        f"C:15: data.test.4: {kinds}",
        "C:16: modle: there is no such key; did you mean `model`?",
        "C:17: warmup_steps: there is no such key; did you mean `training.warmup_steps`?",
        "C:18: training: given `hello`, allowed: a mapping of keys to values",
        "C:21: tokenizer.vocab_size is given twice, first in line 20",
        "C:21: tokenizer.vocab_size: given `many`, allowed: a whole number",
        "C:24: eval.colour: there is no such key; there are bleu_tokenize, n_samples",
        "C:25: search is given twice, first in line 22",
        "C:26: search.beam_size: given `4.5`, allowed: a whole number",
        "C:27: search.beem_size: there is no such key; did you mean `beam_size`?",
        "C:28: model.source_lang: there is no such key; did you mean `data.src_lang`?",
        "--set eval.n_samples: give it as key=value, such as --set training.max_steps=1000",
    }


@pytest.mark.parametrize("section", SECTIONS)
def test_a_key_in_the_wrong_section_is_answered_with_its_own_section(folder: Path, section: str) -> None:
    homes = {key: home for home, schema in SECTIONS.items() for key in schema.model_fields if home != section}
    text = MINIMAL + ("" if section == "data" else f"{section}:\n") + "".join(f"  {key}: 1\n" for key in homes)
    found = (problem.split(": ", 1)[1] for problem in problems(folder, text))
    assert {problem for problem in found if "no such key" in problem} == {
        f"{section}.{key}: there is no such key; did you mean `{home}.{key}`?" for key, home in homes.items()
    }


def test_what_two_keys_disagree_in_is_told_beside_other_problems(folder: Path) -> None:
    text = MINIMAL.replace("tgt_lang: de", "tgt_lang: en") + "model: {preset: base, n_heads: 3}\neval: {n_samples: x}\n"
    languages, *others = sorted(problems(folder, text))
    assert re.fullmatch(r"C:[123]: .*src_lang and .*tgt_lang are both en", languages)
    assert others[0] == "C:6: model: n_heads = 3 does not divide d_model = 512"
    assert others[1].startswith("C:7: eval.n_samples: ")


@pytest.mark.parametrize(
    ("text", "line"),
    [("training:\n\tseed: 1\n", 7), ("eval: a: b\n", 6), ("eval: {}\nrun: @x\n", 7), ("eval: {}\nrun: *unknown\n", 7)],
)
def test_broken_yaml_is_told_with_its_line(folder: Path, text: str, line: int) -> None:
    (problem,) = problems(folder, (MINIMAL + text).replace("\n", "\r\n"))
    assert problem.startswith(f"C:{line}: this is not valid YAML: ")


@pytest.mark.parametrize(
    "text", ["", "# nothing\n", "- data\n", "data", "\0\1data", b"\x1f\x8b\x08\xff", "&a {data: *a}"]
)
def test_a_file_that_is_no_config_is_told_in_one_sentence(folder: Path, text: str | bytes) -> None:
    (problem,) = problems(folder, text)
    assert re.match(r"C: |the config C ", problem)


@pytest.mark.parametrize(("name", "reason"), [("none.yaml", "No such file"), ("more", "Is a directory")])
def test_a_config_that_cannot_be_opened_is_named(folder: Path, name: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"{re.escape(str(folder / name))}: {reason}"):
        load_config(folder / name)


@pytest.mark.parametrize(("preset", "size"), [("tiny", TINY), ("small", SMALL), ("base", BASE), ("big", BIG)])
def test_keys_beside_a_preset_change_single_values_of_it(folder: Path, preset: str, size: tuple[object, ...]) -> None:
    config = load(folder, f"{MINIMAL}model: {{preset: {preset}}}\n")
    assert size_of(config) == size
    changed = load(
        folder, f"{MINIMAL}model: {{dropout: 0, preset: big}}\n", f"model.preset={preset}", "model.n_heads=2"
    )
    assert changed.model == config.model.model_copy(update={"dropout": 0.0, "n_heads": 2})
    for n_pairs in (100, 10_000_000):
        assert resolve(changed, Facts(n_pairs)).model.model_dump() == changed.model.model_dump()


@pytest.mark.parametrize(
    ("n_pairs", "size", "vocab_size", "training", "learning_rate"),
    [  # the paper's peak, d_model^-½ · 4000^-½, times 1.5 for pre-norm
        (1, TINY, 2_000, (1_024, 30, 200), 1.5 * 0.0013975),
        (10_000, TINY, 2_000, (1_024, 30, 200), 1.5 * 0.0013975),
        (10_001, SMALL, 8_000, (2_048, 12, 400), 1.5 * 0.00098821),
        (200_000, SMALL, 8_000, (2_048, 12, 400), 1.5 * 0.00098821),
        (200_001, SMALL, 16_000, (4_096, 5, 2_000), 1.5 * 0.00098821),
        (2_000_000, SMALL, 16_000, (4_096, 5, 2_000), 1.5 * 0.00098821),
        (2_000_001, BASE, 32_000, (8_192, 4, 4_000), 0.00069877),
    ],
)
def test_what_is_left_open_goes_by_the_size_of_the_data(
    folder: Path,
    n_pairs: int,
    size: tuple[object, ...],
    vocab_size: int,
    training: tuple[int, int, int],
    learning_rate: float,
) -> None:
    config = resolve(load(folder, MINIMAL), Facts(n_pairs))
    chosen = config.training
    assert (size_of(config), config.tokenizer.vocab_size) == (size, vocab_size)
    assert (chosen.max_tokens, chosen.max_epochs, chosen.warmup_steps) == training
    assert chosen.learning_rate == pytest.approx(learning_rate, rel=1e-4)


@pytest.mark.parametrize("n_pairs", [100, 100_000, 10_000_000])
def test_sizing_leaves_given_values_alone(folder: Path, n_pairs: int) -> None:
    text = f"""{MINIMAL}\
tokenizer: {{vocab_size: 777}}
model: {{d_model: 96, n_heads: 3, d_ff: 100, n_encoder_layers: 9, n_decoder_layers: 1, dropout: 0, norm: post}}
training: {{max_tokens: 99, max_epochs: 77, warmup_steps: 0, learning_rate: 3e-5}}
"""
    given, resolved = load(folder, text), resolve(load(folder, text), Facts(n_pairs))
    auto = {"model": {"preset"}, "training": {"precision", "early_stopping_patience"}}
    assert resolved.model_dump(exclude=auto) == given.model_dump(exclude=auto)
    for limit in ("max_steps", "max_minutes"):
        limited = resolve(load(folder, MINIMAL, f"training.{limit}=5"), Facts(n_pairs))
        assert limited.training.max_epochs is None


@pytest.mark.parametrize(("key", "given", "n_pairs"), [("n_heads", 256, 100), ("d_model", 300, 10_000_000)])
def test_a_value_that_does_not_fit_the_chosen_size_is_told(folder: Path, key: str, given: int, n_pairs: int) -> None:
    config = load(folder, MINIMAL, f"model.{key}={given}")
    with pytest.raises(UserError, match=r"n_heads = \d+ does not divide d_model = \d+"):
        resolve(config, Facts(n_pairs))


def test_overrides_change_keys_and_make_sections_in_order(folder: Path) -> None:
    text = MINIMAL.replace("a.en", "gone.en") + "training: {seed: x, max_steps: 5}\n"
    overrides = ["training.seed=4", "training.seed = 5", "search.beam_size=2", "tokenizer={type: bpe}", "run.name=a=b"]
    config = load(folder, text, "data.train=[{tsv: more/b.tsv}, {hf: x/y, split: no}]", *overrides)
    assert config.data.train == [TsvFile(tsv=folder / "more" / "b.tsv"), HubDataset(hf="x/y", split="no")]
    assert (config.training.seed, config.training.max_steps, config.search.beam_size) == (5, 5, 2)
    assert (config.tokenizer.type, config.run.name) == ("bpe", "a=b")


@pytest.mark.parametrize("override", ["training.seed", "=3", "", ".seed=3", "training.=3", "training..seed=3"])
def test_an_override_that_is_not_key_and_value_is_told(folder: Path, override: str) -> None:
    told = f"--set {override}: give it as key=value, such as --set training.max_steps=1000"
    assert problems(folder, MINIMAL, override) == [told]


def test_overrides_that_cannot_be_applied_are_all_told(folder: Path) -> None:
    reasons = {
        "data.train=[{tsv: x}": "not valid YAML",
        "training.seed.x=3": "`seed` holds no keys",
        "data.train.0.src=x": "`train` holds no keys",
        "search={beam_size: 1, beam_size: 2}": "beam_size is given twice",
    }
    found = problems(folder, MINIMAL + "training: {seed: 3}\nevil: 1\n", *reasons)
    assert len(found) == len(reasons) + 1
    for override, reason in reasons.items():
        assert any(problem.startswith(f"--set {override}") and reason in problem for problem in found)


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("training.log_every=z", "training.log_every: given `z`, allowed: a whole number"),
        ("data.train=[]", "data.train: given `[]`, allowed: at least 1 of them"),
        ("training.sede=4", "training.sede: there is no such key; did you mean `seed`?"),
        ("warmup_steps=4", "warmup_steps: there is no such key; did you mean `training.warmup_steps`?"),
        ("searhc.beam_size=4", "searhc: there is no such key; did you mean `search`?"),
        ("data.train=[{tsv: x}]", "data.train.0.tsv: there is no file x"),
        ("data.valid=[{src: a.en}]", "data.valid.0.tgt: this key is required and not given"),
    ],
)
def test_a_wrong_override_is_not_blamed_on_a_line_of_the_file(folder: Path, override: str, problem: str) -> None:
    (found,) = problems(folder, MINIMAL + "training:\n  log_every: y\n", "training.log_every=1", override)
    assert found.endswith(f": {problem}")
    assert not re.match(r"C:\d", found)


@pytest.mark.parametrize("n_pairs", [100, 10_000_000])
@pytest.mark.parametrize("model", ["{}", "{preset: base, dropout: 1e-7}"])
def test_a_resolved_config_is_read_back_and_nothing_in_it_is_open(folder: Path, model: str, n_pairs: int) -> None:
    change = Change(step=500, key="training.freeze", old=["encoder"], new=None)
    provenance = Provenance(versions={"torch": "2"}, changes=[change])
    facts = Facts(n_pairs, vocab_size=777, precision="bf16", max_tokens=9_999, provenance=provenance)
    settings = "training: {max_tokens: auto, schedule: constant}\n"
    config = resolve(load(folder, f"{MINIMAL}model: {model}\n{settings}"), facts)
    assert (config.tokenizer.vocab_size, config.training.max_tokens, config.training.precision) == (777, 9_999, "bf16")
    again = load(folder, dump_config(config))
    assert again.provenance == provenance
    assert resolve(again, Facts(100_000, provenance=provenance)) == config
    assert ResolvedConfig.model_validate(yaml.safe_load(dump_config(config))) == config


@pytest.mark.parametrize("schedule", ["linear", "cosine", "wsd", "constant", "inverse_sqrt"])
def test_a_schedule_that_decays_to_zero_is_not_stopped_on_its_plateau(folder: Path, schedule: str) -> None:
    decays = schedule in ("linear", "cosine", "wsd")
    config = load(folder, MINIMAL, f"training.schedule={schedule}")
    assert resolve(config, Facts(100)).training.early_stopping_patience == (None if decays else 10)
    for given, patience in (("3", 3), ("null", None)):
        config = load(folder, MINIMAL, f"training.schedule={schedule}", f"training.early_stopping_patience={given}")
        assert resolve(config, Facts(100)).training.early_stopping_patience == patience


def test_settings_of_a_bundle_replace_those_of_model_and_tokenizer(folder: Path) -> None:
    config = load(folder, MINIMAL, "model.d_model=64", "tokenizer.type=bpe")
    base = Base(ModelConfig(preset="base", d_model=32), TokenizerConfig(vocab_size=345))
    resolved = resolve(config, Facts(100, base=base, vocab_size=345))
    assert (resolved.model.d_model, resolved.model.norm) == (32, "post")
    assert (resolved.tokenizer.type, resolved.tokenizer.vocab_size) == ("unigram", 345)
    assert resolved.training.learning_rate == pytest.approx((4_000 * 32) ** -0.5, rel=1e-4)


@pytest.mark.parametrize("text", ["no", "012", "1e3", "null", "~", "2024-01-01", "a: b", "- a", "# a", "Übung", "'"])
def test_text_that_looks_like_something_else_is_read_back_as_text(folder: Path, text: str) -> None:
    config = load(folder, MINIMAL)
    source = JsonlFile(jsonl=folder / "pairs.jsonl.gz", src_key=text)
    data = config.data.model_copy(update={"src_lang": "no", "test": [source]})
    run = config.run.model_copy(update={"name": text})
    config = config.model_copy(update={"data": data, "run": run, "provenance": Provenance(versions={"torch": text})})
    assert load(folder, dump_config(config)) == config


def test_a_config_from_a_bundle_is_read_without_its_files(folder: Path) -> None:
    config = load(folder, MINIMAL)
    (folder / "a.en").unlink()
    assert Config.model_validate_json(config.model_dump_json()) == config


def test_a_config_does_not_change_once_it_is_made(folder: Path) -> None:
    config = load(folder, MINIMAL)
    for part in (config, config.data.train[0], *(getattr(config, name) for name in SECTIONS)):
        for key in type(part).model_fields:
            with pytest.raises(ValidationError, match="frozen"):
                setattr(part, key, getattr(part, key))


def test_the_command_line_tells_all_that_is_wrong_and_trains_nothing(project: Project) -> None:
    text = project.config.read_text(encoding="utf-8").replace("train.en", "gone.en").replace("d_model", "d_modle")
    (project.folder / "bad.yaml").write_text(text + "  max_steps: 5e-4\n  warmup_step: 1\n", encoding="utf-8")
    result = project.mtformer("train", "bad.yaml", "--set", "search.beam_size=0", "--set", "nonsense")
    assert (result.status, result.stdout) == (2, "")
    assert "Traceback" not in result.stderr
    lines = text.split("\n")
    gone, width, old, end = (
        next(i for i, line in enumerate(lines, 1) if key in line) for key in ("gone", "modle", "max_steps", "precision")
    )
    for problem in [
        f"bad.yaml:{gone}: data.train.0.src: there is no file {project.folder / 'gone.en'}",
        f"bad.yaml:{width}: model.d_modle: there is no such key; did you mean `d_model`?",
        f"bad.yaml:{end + 1}: training.max_steps is given twice, first in line {old}",
        f"bad.yaml:{end + 1}: training.max_steps: given `5e-4`, allowed: a whole number",
        f"bad.yaml:{end + 2}: training.warmup_step: there is no such key; did you mean `warmup_steps`?",
        "search.beam_size: given `0`, allowed: 1 or more",
        "--set nonsense: give it as key=value",
    ]:
        assert problem in result.stderr
    assert not (project.folder / "runs").exists()
