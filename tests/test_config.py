"""Reading a config."""

from pathlib import Path

import pytest
from config_texts import MINIMAL, SECTIONS, load
from pydantic import ValidationError

from mtformer.config import Config, HubDataset, JsonlFile, Provenance, TextFiles, TsvFile, dump_config, load_config
from mtformer.support.errors import UserError


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


def test_a_model_to_start_from_is_found_in_the_folder_of_its_run(folder: Path) -> None:
    bundle = folder / "more" / "model.safetensors"
    bundle.touch()
    for path in ("more", "more/model.safetensors"):
        assert load(folder, MINIMAL, f"training.init_from={path}").training.init_from == bundle
    bundle.unlink()
    with pytest.raises(UserError, match=r"more has no model\.safetensors: name a bundle, or a run that has one"):
        load(folder, MINIMAL, "training.init_from=more")


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
        ("run.dir", "12:30", Path("12:30")),
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


def test_overrides_change_keys_and_make_sections_in_order(folder: Path) -> None:
    text = MINIMAL.replace("a.en", "gone.en") + "training: {seed: x, max_steps: 5}\n"
    overrides = ["training.seed=4", "training.seed = 5", "search.beam_size=2", "tokenizer={type: bpe}", "run.name=a=b"]
    config = load(folder, text, "data.train=[{tsv: more/b.tsv}, {hf: x/y, split: no}]", *overrides)
    assert config.data.train == [TsvFile(tsv=folder / "more" / "b.tsv"), HubDataset(hf="x/y", split="no")]
    assert (config.training.seed, config.training.max_steps, config.search.beam_size) == (5, 5, 2)
    assert (config.tokenizer.type, config.run.name) == ("bpe", "a=b")


@pytest.mark.parametrize("text", ["no", "012", "1e3", "null", "~", "2024-01-01", "a,  b", "- a", "# a", "Übung", "'"])
def test_text_that_looks_like_something_else_is_read_back_as_text(folder: Path, text: str) -> None:
    config = load(folder, MINIMAL)
    source = JsonlFile(jsonl=folder / "pairs.jsonl.gz", src_key=text)
    data = config.data.model_copy(update={"src_lang": "no", "test": [source]})
    run = config.run.model_copy(update={"name": text})
    config = config.model_copy(update={"data": data, "run": run, "provenance": Provenance(versions={"torch": text})})
    assert load(folder, dump_config(config)) == config


def test_the_path_of_a_config_may_be_a_string(folder: Path) -> None:
    config = load(folder, MINIMAL)
    assert load_config(str(folder / "my.config.yaml")) == config


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
