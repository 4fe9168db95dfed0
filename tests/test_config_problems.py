"""What a config's author is told about its problems."""

import re
from pathlib import Path

import pytest
from config_texts import MINIMAL, SECTIONS, problems
from conftest import Project

from mtformer.config import load_config
from mtformer.config.problems import other_names, our_keys
from mtformer.support.errors import UserError


@pytest.mark.parametrize(
    ("dotted", "written", "problem"),
    [
        ("training.max_steps", "many", "given `many`, allowed: a whole number"),
        ("training.max_steps", "0", "given `0`, allowed: 1 or more"),
        ("training.max_tokens", "many", "given `many`, allowed: a whole number or auto"),
        ("training.threads", "many", "given `many`, allowed: a whole number or auto"),
        ("training.threads", "0", "given `0`, allowed: 1 or more"),
        ("training.seed", "true", "given `true`, allowed: a whole number"),
        ("training.seed", "~", "given nothing, allowed: a whole number"),
        ("training.seed", "2147483648", "given `2147483648`, allowed: less than 2147483648"),
        ("training.learning_rate", "0", "given `0`, allowed: more than 0.0"),
        ("training.learning_rate", ".inf", "given `.inf`, allowed: a finite number"),
        ("training.learning_rate", "1e400", "given `1e400`, allowed: a finite number"),
        ("training.optimizer", "sgd", "given `sgd`, allowed: auto, muon, adamw or adam"),
        ("model.preset", "huge", "given `huge`, allowed: auto, tiny, small, base or big"),
        ("tokenizer.joint", "maybe", "given `maybe`, allowed: true or false"),
        ("tokenizer.vocab_size", "2000000", "given `2000000`, allowed: 1048576 or less"),
        ("run.name", "[a, b]", "given `['a', 'b']`, allowed: text"),
    ],
)
def test_a_wrong_value_is_told_with_what_is_allowed(folder: Path, dotted: str, written: str, problem: str) -> None:
    section, key = dotted.split(".")
    assert problems(folder, f"{MINIMAL}{section}:\n  {key}: {written}\n") == [f"C:7: {dotted}: {problem}"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("type: word", ["C:7: tokenizer.type: given `word`, allowed: unigram, bpe, char or byte"]),
        ("normalization: nfd", ["C:7: tokenizer.normalization: given `nfd`, allowed: nfc, nfkc or identity"]),
        ("user_symbols: x", ["C:7: tokenizer.user_symbols: given `x`, allowed: a list, as in [x]"]),
        (
            "user_symbols: ['', 'a b', <s>, <0x41>, </term>]",
            [
                "C:7: tokenizer.user_symbols.0: a symbol is empty: remove it",
                "C:7: tokenizer.user_symbols.1: 'a b' has a space, a control character or ▁, which separate words",
                "C:7: tokenizer.user_symbols.2: <s> is a special token",
                "C:7: tokenizer.user_symbols.3: <0x41> is a special token",
                "C:7: tokenizer.user_symbols.4: </term> is a special token",
            ],
        ),
        ("user_symbols: [x, y, x]", ["C:6: tokenizer: user_symbols has x twice"]),
        (
            "{user_symbols: [ﬁ], normalization: nfkc}",
            ["C:6: tokenizer: user_symbols: with normalization = nfkc, no text contains ﬁ"],
        ),
        (
            "{model: a.en, src_model: a.en, tgt_model: a.de}",
            ["C:6: tokenizer: model is for both languages, src_model and tgt_model are for one each: set either"],
        ),
        (
            "src_model: a.en",
            ["C:6: tokenizer: src_model and tgt_model belong together: set both, or model for both languages"],
        ),
        ("{model: a.en, joint: false}", ["C:6: tokenizer: joint = false with model: remove joint"]),
        (
            "{model: a.en, character_coverage: 1}",
            ["C:6: tokenizer: character_coverage is for training a tokenizer; remove it, or model"],
        ),
        ("model: gone.model", ["C:7: tokenizer.model: there is no file gone.model"]),
        (
            "model: a.en\ntraining:\n  init_from: a.en",
            [
                "C: training.init_from with tokenizer.model: a bundle is fine-tuned with the tokenizer that it "
                "contains; remove one of the two"
            ],
        ),
    ],
)
def test_settings_of_a_tokenizer_that_cannot_be_are_named(folder: Path, written: str, expected: list[str]) -> None:
    section = f"tokenizer: {written}\n" if written.startswith("{") else f"tokenizer:\n  {written}\n"
    assert problems(folder, MINIMAL + section) == expected


@pytest.mark.parametrize(
    ("languages", "places"),
    [
        ("{src_lang: jp, tgt_lang: de, ", ["1: data.src_lang"]),
        ("{src_lang: en, tgt_lang: jp_JP, ", ["1: data.tgt_lang"]),
        ("{directions: [jp-de, de-jp], ", ["1: data.directions.0", "1: data.directions.1"]),
    ],
)
def test_a_country_that_is_no_language_is_answered_with_its_language(
    folder: Path, languages: str, places: list[str]
) -> None:
    """Japanese has no spaces between words, which its code tells, and the defaults follow from it."""
    found = problems(folder, f"data: {languages}train: [{{tsv: pairs.tsv}}]}}\n")
    assert [problem.partition(": jp")[0] for problem in found] == [f"C:{place}" for place in places]
    assert all(problem.endswith(" is the code of a country; that of its language is ja") for problem in found)


@pytest.mark.parametrize("name", ["..", ".", "a/b", "a\\b", "''", '"a\\0b"', "a:b", "a?", "a.", "'a '"])
def test_the_name_of_a_run_is_that_of_a_folder_on_every_system(folder: Path, name: str) -> None:
    (problem,) = problems(folder, f"{MINIMAL}run:\n  name: {name}\n")
    assert problem.startswith("C:7: run.name: given ")
    assert "match pattern" not in problem  # a regular expression is no plain sentence


@pytest.mark.parametrize("written", ['"a\\0b"', '"a\\ud800b"'])
def test_text_that_no_path_can_have_is_refused_wherever_it_is(folder: Path, written: str) -> None:
    shown = written.strip('"').replace("\\0", "\\x00")
    problem = f"given `{shown}`, allowed: text without null characters and surrogates"
    assert problems(folder, f"{MINIMAL}run: {{dir: {written}}}\n") == [f"C:6: run.dir: {problem}"]
    assert problems(folder, MINIMAL, f"run.dir={written}") == [f"--set run.dir={written}: {problem}"]
    assert problems(folder, f"{MINIMAL}tokenizer: {{user_symbols: [x, {written}]}}\n") == [
        f"C:6: tokenizer.user_symbols.1: {problem}"
    ]


@pytest.mark.parametrize("path", ["~", "[a.en]", "~nosuchuser/a.en", "a" * 300, "a.en/x", '"a\\0b"', "."])
def test_a_path_that_cannot_be_is_a_problem_like_a_missing_file(folder: Path, path: str) -> None:
    (problem,) = problems(folder, MINIMAL.replace("a.en", path))
    assert problem.startswith("C:4: data.train.0.src: ")
    assert "pathlib" not in problem


def test_a_model_in_place_of_a_config_is_called_one(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"\x86\x00")
    with pytest.raises(UserError, match=r"model\.safetensors is a model, not a config$"):
        load_config(path)


@pytest.mark.parametrize("name", ["pairs.xlsx", "pairs.XLS", "pairs.ods"])
def test_a_spreadsheet_in_place_of_a_config_is_to_be_saved_as_csv(tmp_path: Path, name: str) -> None:
    advice = (
        r" is a spreadsheet, not a config; save it as CSV in UTF-8, and write a config that names it, data: .*csv: "
    )
    with pytest.raises(UserError, match=rf"{name}{advice}.*pairs\.csv}}\]}}$"):
        load_config(tmp_path / name)


def test_a_merge_of_mappings_is_told_from_an_unknown_key(folder: Path) -> None:
    assert problems(folder, f"{MINIMAL}training: {{<<: {{seed: 2}}, max_steps: 3}}\n") == [
        "C:6: `<<` cannot be used in a config: write the keys that it would add"
    ]


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
    kinds = (
        "a source is one of {src: …, tgt: …}, {moses: …}, {tsv: …}, {csv: …}, {jsonl: …}, {tmx: …}, {hf: …, split: …}, "
        "{sacrebleu: …}, {builtin: phrasebook}"
    )
    assert set(problems(folder, text, "eval.n_samples")) == {
        "C:2: data.src_lang: given `EN`, allowed: a language code such as en, de or zh",
        "C:1: data.tgt_lang: this key is required and not given",
        "C:4: data.train.0.tgt: there is no file gone.de",
        "C:5: data.train.1.src: there is no file gone.en",
        "C:6: data.train.1.tgt: there is no file gone.de",
        "C:7: data.train.2.scr_key: there is no such key; did you mean `src_key`?",
        f"C:8: data.train.3: {kinds}",
        "C:9: data.valid: given `{'tsv': 'pairs.tsv'}`, allowed: a list of sources, as in "
        "[{src: train.en, tgt: train.de}]",
        "C:11: data.test.0.tsv: there is no file gone.tsv",
        "C:12: data.test.1.jsonl: there is no file gone.jsonl",
        "C:13: data.test.2.split: this key is required and not given",
        "C:14: data.test.3.hf: there is no such key; there are weight, tag, general, directions, tsv, src_column, "
        "tgt_column, header, quotes",
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
        "--set eval.n_samples: write it as key=value, such as --set training.max_steps=1000",
    }


@pytest.mark.parametrize(
    ("dotted", "meant"),
    [
        ("training.lr", "`learning_rate`"),
        ("lr", "`training.learning_rate`"),
        ("batch_size", "`training.max_tokens`"),
        ("training.per_device_train_batch_size", "`max_tokens`"),
        ("training.batch_tokens", "`max_tokens`"),
        ("batch_tokens", "`search.batch_tokens`"),
        ("training.max_time", "`max_minutes`"),
        ("training.update-freq", "`grad_accum_steps`"),
        ("training.dim-emb", "`model.d_model`"),
        ("model.layers", "`n_encoder_layers` and `n_decoder_layers`"),
        ("model.enc_layers", "`n_encoder_layers`"),
        ("model.encoder_embed_dim", "`d_model`"),
        ("tokenizer.dim-vocabs", "`vocab_size`"),
        ("search.lenpen", "`length_penalty`"),
        ("data.dev", "`valid`"),
        ("data.augment.typo", "`typos`"),
        ("output_dir", "`run.dir`"),
    ],
)
def test_a_key_of_another_toolkit_is_answered_with_ours(folder: Path, dotted: str, meant: str) -> None:
    assert problems(folder, MINIMAL, f"{dotted}=1") == [
        f"--set {dotted}=1: {dotted}: there is no such key; did you mean {meant}?"
    ]


def test_the_names_of_other_toolkits_stand_for_keys_that_exist_and_are_none_of_ours_in_that_section() -> None:
    ours = {f"{name}.{key}" for name, section in SECTIONS.items() for key in section.model_fields}
    assert set(other_names()) <= ours
    assert not ours & {f"{key.split('.')[0]}.{name}" for key, names in other_names().items() for name in names}


def test_aliases_that_stand_for_very_much_are_refused_at_once(folder: Path) -> None:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    (problem,) = problems(folder, MINIMAL + "\n".join(levels))
    assert problem == "C: this has more than 100,000 values once its aliases are written out"


def test_a_problem_shows_neither_control_characters_nor_very_long_values(folder: Path) -> None:
    long = "9" * 5_000
    lines = [
        '"\\e[31mred": 1',
        f"training: {{seed: {long}, max_steps: [{long}]}}",
        f"{'k' * 1_000}: 1",
        f"eval: *{long}",
    ]
    told = problems(folder, MINIMAL + "\n".join(lines[:3]), "training.device=\x1b[2J\r\n")
    told += problems(folder, MINIMAL + lines[3])
    assert all(problem.isprintable() and len(problem) < 400 for problem in told)
    shortened = f"`{'9' * 50}…{'9' * 50} (5,000 characters)`"
    assert f"C:7: training.seed: given {shortened}, allowed: a whole number" in told
    assert any(r"\x1b[31mred: there is no such key" in problem for problem in told)


def test_a_key_that_is_a_list_is_told_in_words(folder: Path) -> None:
    text = MINIMAL + "training:\n  ? [a, b]\n  : 1\n"
    assert problems(folder, text) == ["C:7: a key is plain text, not a list or a mapping"]


@pytest.mark.parametrize("section", SECTIONS)
def test_a_key_in_the_wrong_section_is_answered_with_its_own_section(folder: Path, section: str) -> None:
    homes = {key: home for home, schema in SECTIONS.items() for key in schema.model_fields if home != section}
    homes = {key: home for key, home in homes.items() if not any(ours.startswith(section) for ours in our_keys(key))}
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
    assert re.match("C(:1)?: ", problem)


@pytest.mark.parametrize(("encoding", "line", "byte"), [("utf-16", 1, "ff"), ("latin-1", 7, "fc")])
def test_a_config_in_another_encoding_is_told_with_its_line(folder: Path, encoding: str, line: int, byte: str) -> None:
    text = (MINIMAL + "run:\n  name: für\n").encode(encoding)
    assert problems(folder, text) == [f"C:{line}: byte 0x{byte} is not UTF-8; save the config as UTF-8"]


@pytest.mark.parametrize(("name", "reason"), [("none.yaml", "No such file"), ("more", "Is a directory")])
def test_a_config_that_cannot_be_opened_is_named(folder: Path, name: str, reason: str) -> None:
    with pytest.raises(UserError, match=f"{re.escape(str(folder / name))}: {reason}"):
        load_config(folder / name)


@pytest.mark.parametrize("name", ["multi30k", "multi30k.yml", "mutli30k.yaml"])
def test_a_config_of_nearly_that_name_is_named(folder: Path, name: str) -> None:
    for other in ("multi30k.yaml", "others.yaml"):
        (folder / other).touch()
    with pytest.raises(UserError, match=re.escape(f"; did you mean {folder / 'multi30k.yaml'}?")):
        load_config(folder / name)


def test_a_table_of_pairs_is_no_config(folder: Path) -> None:
    with pytest.raises(UserError, match=r"names it, data: \{src_lang: LANG, tgt_lang: LANG, train: \[\{tsv: "):
        load_config(folder / "pairs.tsv.gz")


def test_the_folder_of_a_run_is_no_config_but_has_one(folder: Path) -> None:
    (folder / "more" / "config.yaml").touch()
    with pytest.raises(UserError, match=re.escape(f"; did you mean {folder / 'more' / 'config.yaml'}?")):
        load_config(folder / "more")


@pytest.mark.parametrize("override", ["training.seed", "=3", "", ".seed=3", "training.=3", "training..seed=3"])
def test_an_override_that_is_not_key_and_value_is_told(folder: Path, override: str) -> None:
    told = f"--set {override}: write it as key=value, such as --set training.max_steps=1000"
    assert problems(folder, MINIMAL, override) == [told]


def test_overrides_that_cannot_be_applied_are_all_told(folder: Path) -> None:
    reasons = {
        "data.train=[{tsv: x}": "not valid YAML",
        "data.train=[{src: a.{src_lang}}]": 'put quotes around text with braces, as in "train.{src_lang}"',
        "data.test=test.en": "given `test.en`, allowed: a list of sources, as in [{src: train.en, tgt: train.de}]",
        "training.seed.x=3": "`seed` has no keys",
        "data.train.0.src=x": "`train` is a list: set all of it",
        "search={beam_size: 1, beam_size: 2}": "beam_size is given twice",
    }
    found = problems(folder, MINIMAL + "training: {seed: 3}\nevil: 1\n", *reasons)
    assert len(found) == len(reasons) + 1
    for override, reason in reasons.items():
        assert any(problem.startswith(f"--set {override}") and reason in problem for problem in found)


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("data.train=[{hf: '', split: train}]", "data.train.0.hf: given ``, allowed: text that is not empty"),
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
        f"bad.yaml:{gone}: data.train.0.src: there is no file gone.en",
        f"bad.yaml:{width}: model.d_modle: there is no such key; did you mean `d_model`?",
        f"bad.yaml:{end + 1}: training.max_steps is given twice, first in line {old}",
        f"bad.yaml:{end + 1}: training.max_steps: given `5e-4`, allowed: a whole number",
        f"bad.yaml:{end + 2}: training.warmup_step: there is no such key; did you mean `warmup_steps`?",
        "search.beam_size: given `0`, allowed: 1 or more",
        "--set nonsense: write it as key=value",
    ]:
        assert problem in result.stderr
    assert not (project.folder / "runs").exists()
