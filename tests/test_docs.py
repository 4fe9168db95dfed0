"""The README, docs/ and the docstrings agree with the program."""

import ast
import doctest
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from conftest import Project
from references import command_line, is_role, missing_files, problems, setting_problems

import mtformer
from mtformer.config import Config

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))}
CURRENT = {name: text for name, text in PAGES.items() if name != "CHANGELOG.md"}  # which names what is no more
SOURCES = [*(ROOT / "mtformer").rglob("*.py"), *(ROOT / "scripts").rglob("*.py")]


def blocks(text: str) -> list[str]:
    """Return the indented blocks of a page without their indentation; a blank line inside does not end one."""
    found = re.findall(r"^(?: {4}.*\n|\n(?= {4}))+", text, flags=re.MULTILINE)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE).strip("\n") for block in found if block.strip()]


def inline_code(text: str) -> list[str]:
    """Return what stands in backticks in a page, its blocks aside."""
    prose = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    return [code for _, code in re.findall(r"(`+)(.+?)\1", prose, flags=re.DOTALL)]


def command_lines(text: str) -> list[list[str]]:
    """Return the words of all commands of mtformer in the blocks of a page."""
    lines = "\n".join(blocks(text)).replace("\\\n", " ").splitlines()
    return [words for line in lines for words in commands_of(re.sub(r"^(?:\$|>) +", "", line))]


def commands_of(line: str) -> Iterator[list[str]]:
    """Split a line of a shell into its commands, and yield the words of those that run mtformer."""
    if not re.search(r"(?:^|[|] *|=\S+ |-m )mtformer ", line) or ">>>" in line:
        return
    lexer = shlex.shlex(re.sub(r"<\(.*?\)", "pipe", line), posix=True, punctuation_chars="|<>&;")
    lexer.whitespace_split = True
    command: list[str] = []
    for word in [*lexer, "|"]:
        if word == "|":
            if "mtformer" in command:
                yield command[command.index("mtformer") + 1 :]
            command = []
        elif command[-1:] == ["<"] or command[-1:] == [">"]:
            command.pop()  # a redirection is no argument
        else:
            command.append(word)


def refusal(words: list[str]) -> str | None:
    """Return why the command line refuses these words; None if it takes them. Nothing is done with them."""
    try:
        command_line().main([word for word in words if word != "OPTIONS"], prog_name="mtformer", standalone_mode=False)
    except Exception as error:
        return str(error)
    return None


def leaves(config: Any, key: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted keys of a config and their values; items of a list have the key of the list."""
    if isinstance(config, dict):
        for name, value in config.items():
            yield from leaves(value, f"{key}.{name}" if key else name)
    elif isinstance(config, list) and any(isinstance(item, dict) for item in config):
        for item in config:
            yield from leaves(item, key)
    else:
        yield key, yaml.safe_dump(config, default_flow_style=True)


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def docstrings(tree: ast.AST, classes: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the docstrings of a module, those of attributes included, with the classes around each."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield classes, text
            case ast.stmt():
                yield from docstrings(node, (*classes, node.name) if isinstance(node, ast.ClassDef) else classes)


def docstring_problems(source: str, module: str) -> list[str]:
    """Return what the docstrings of a module name that does not exist."""
    tree = ast.parse(source)
    found = []
    for classes, text in docstrings(tree):
        roles = re.findall(r":[a-z]+:`([^`]+)`", text)
        found += [f"no {role}" for role in roles if not is_role(role, module, tree, classes)]
        code = inline_code(re.sub(r":[a-z]+:`[^`]+`", "", text))
        found += [problem for piece in code for problem in problems(piece)]
        found += [missing for missing in missing_files(text) if missing not in found]
    return found


def python_blocks(text: str) -> list[str]:
    """Return the blocks of Python without prompts that use mtformer."""
    found = []
    for block in blocks(text):
        try:
            tree = ast.parse(block)
        except SyntaxError:
            continue
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if "Translator" in names:
            found.append(block)
    return found


def test_the_config_reference_is_that_of_the_schema() -> None:
    command = [sys.executable, str(ROOT / "scripts/config_reference.py")]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert page == PAGES["config.md"]


@pytest.mark.parametrize("page", CURRENT)
def test_names_in_it_exist(page: str) -> None:
    assert [(code, problems(code)) for code in inline_code(PAGES[page]) if problems(code)] == []


@pytest.mark.parametrize("page", CURRENT)
def test_settings_in_it_exist(page: str) -> None:
    configs = [block for block in blocks(PAGES[page]) if re.match(rf"(?:{'|'.join(Config.model_fields)}):", block)]
    sections = [section for block in configs for section in re.split(r"\n(?=\w)", block)]
    settings = [setting for section in sections for setting in leaves(yaml.load(section, Loader=yaml.BaseLoader))]
    assert [problem for key, value in settings for problem in setting_problems(key, value)] == []


@pytest.mark.parametrize("page", CURRENT)
def test_commands_in_it_are_understood(page: str) -> None:
    commands = command_lines(PAGES[page])
    assert len(commands) >= len(re.findall(r"^ {4}(?:\$ )?mtformer ", PAGES[page], re.MULTILINE))
    assert [(words, refusal(words)) for words in commands if refusal(words)] == []
    assert [problem for words in commands for problem in problems(shlex.join(["mtformer", *words]))] == []


@pytest.mark.parametrize("page", [name for name, text in CURRENT.items() if python_blocks(text) or name == "python.md"])
def test_python_in_it_runs(page: str, trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = re.findall(r"\bruns/(\w+)", "".join(blocks(PAGES[page])))
    for run in {"config", *named}:  # the same model does for all
        shutil.copytree(trained.folder / "runs/config", tmp_path / "runs" / run)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "terms.tsv").write_text("dog\tHund\n")
    if "exported" in PAGES[page]:
        command = ("export", "runs/config", "--to", "ctranslate2", "--output", "exported")
        result = Project(tmp_path, tmp_path).mtformer(*command)
        assert result.status == 0, result.stderr
    names: dict[str, Any] = {"Translator": mtformer.Translator}
    for block in python_blocks(PAGES[page]):
        exec(compile(block, page, "exec"), names)
    examples = doctest.DocTestParser().get_doctest(PAGES[page], names, page, page, 0)
    results = doctest.DocTestRunner().run(examples)
    assert results.failed == 0
    assert results.attempted > 20 or page != "python.md"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_names_in_docstrings_exist(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    assert docstring_problems(path.read_text(encoding="utf-8"), module) == []


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("model.start_cache", "no model.start_cache"),
        ("translator.explane(text)", "no translator.explane"),
        ("Translator.of_bundle", "no Translator.of_bundle"),
        ("Translation.text.size", None),
        ("BeamSearch", "no BeamSearch"),
        ("start_cache", "no start_cache"),
        ("start_cache=True", "no start_cache"),
        ("beam_size", None),
        ("nn.Linear", None),
        ("nn.Linaer", "no nn.Linaer"),
        ("mtformer.search.beam.beam_search", None),
        ("mtformer.search.beam_search", "no mtformer.search.beam_search"),
        ("from mtformer.search import beam_search", "no mtformer.search.beam_search"),
        ("from mtformer import Translator", None),
        ("data.filters", None),
        ("data.filter", "no data.filter"),
        ("training.max_minutes: 4", None),
        ("training.max_minutes: soon", "training.max_minutes cannot be soon"),
        ("max_minute: 4", "no key max_minute"),
        ("note: a word with a colon", None),
        ("mtformer eval --json", None),
        ("mtformer eval --jsn", "no option --jsn"),
        ("eval --jsn", "no option --jsn"),
        ("--jsn", "no option --jsn"),
        ("mtformer evaluate", "no command evaluate"),
        ("mtformer evaluate --json", "no command evaluate"),
        ("mtformer train --set training.lr=1", "no key training.lr"),
        ("mtformer train --set training.max_steps=few", "training.max_steps cannot be few"),
        ("python scripts/demon", "no file scripts/demon"),
        ("python scripts/bench_data.py --pair en-de", None),
        ("python scripts/bench_data.py --pears en-de", "no option --pears"),
        ("configs/phrasebook.yaml", "no file configs/phrasebook.yaml"),
        ("mtformer/search/beams.py", "no file mtformer/search/beams.py"),
        ("~/.cache/mtformer/x", None),
        ("metrics.jsonl", None),
        ("line.split()", None),
    ],
)
def test_a_name_that_does_not_exist_is_a_problem(code: str, problem: str | None) -> None:
    assert problems(code) == ([] if problem is None else [problem])


@pytest.mark.parametrize(
    "line",
    [
        "mtformer explain",
        "mtformer evaluate",
        "mtformer translate --beam-sice 4 text",
        "mtformer translate --beam-size few text",
        "mtformer translate two words",
        "mtformer export runs/x --to",
        "cat test.en | mtformer score --srk test.en > scores",
        "OMP_NUM_THREADS=1 mtformer train a.yaml b.yaml",
        "torchrun --nnodes 2 -m mtformer data checks",
    ],
)
def test_a_command_with_a_mistake_is_refused(line: str) -> None:
    [words] = command_lines(f"text\n\n    $ {line}\n    output\n")
    assert refusal(words)


def test_a_line_of_a_shell_is_split_into_commands() -> None:
    text = (
        '\n    mtformer data sample "src:"<(zcat a b)",tgt:c" -n 2 < x > y | mtformer score \\\n      --src z  # why\n'
    )
    assert command_lines(text) == [["data", "sample", "src:pipe,tgt:c", "-n", "2"], ["score", "--src", "z"]]


def test_docstrings_are_searched_for_names_that_do_not_exist() -> None:
    source = '''"""A :class:`Decoder`, and ``model.start_cache``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtformer.search.decoder import Decoder


class Config:
    """See :meth:`model_dump`, :meth:`Decoder.step`, :meth:`Decoder.stop`, and :func:`mtformer.config.resolve`."""

    key: int
    """As scripts/demon has it; not :attr:`kee`, but `beam_size` of :class:`.Beams`, which are no :class:`.Beems`."""
'''
    problems_found = docstring_problems(source, "mtformer.config.schema")
    assert problems_found == ["no model.start_cache", "no Decoder.stop", "no kee", "no .Beems", "no file scripts/demon"]


def test_extras_are_installed_from_a_clone() -> None:
    named = [page for page, text in PAGES.items() if re.search(r"install\b.*mtformer\[", text)]
    assert named == []  # the package index may have somebody else's mtformer


@pytest.mark.parametrize("page", PAGES)
def test_files_that_it_names_exist(page: str) -> None:
    assert missing_files(PAGES[page]) == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    [path] = [path for path in (ROOT / page, ROOT / "docs" / page) if path.exists()]
    links = [link.partition("#") for link in re.findall(r"\]\(([^)]+)\)", PAGES[page]) if "://" not in link]
    assert [link for link, _, _ in links if not (path.parent / link).exists()] == []
    targets = [(path.parent / link if link else path, anchor) for link, _, anchor in links if anchor]
    assert [(path.name, anchor) for path, anchor in targets if anchor not in anchors(PAGES[path.name])] == []


def test_the_minimal_config_in_it_is_one() -> None:
    block = re.search(r"^ {4}data:\n(?: {4}.*\n)+", README, flags=re.MULTILINE)
    assert block
    text = re.sub(r"^ {4}", "", block[0], flags=re.MULTILINE)
    assert len(text.splitlines()) < 10
    Config.model_validate(yaml.safe_load(text))


def test_the_readme_begins_with_both_commands_of_a_newcomer() -> None:
    first_screen = README.splitlines()[:40]
    for script in ("scripts/demo", "scripts/test"):
        assert any(line.startswith(f"    {script} ") for line in first_screen)
    assert len(README.splitlines()) <= 130


def test_the_demo_runs_the_sentences_that_the_readme_shows() -> None:
    demo = (ROOT / "scripts/demo.py").read_text(encoding="utf-8")
    sentences = re.findall(r"--model runs/demo (\".+\")", README)
    assert sentences
    assert [sentence for sentence in sentences if f"--model runs/demo {sentence}" not in demo] == []


@pytest.mark.parametrize("script", ["demo", "test", "environment"])
def test_a_script_says_what_it_does_and_installs_nothing(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("subprocess.run", lambda *command, **_: pytest.fail(f"{command} is run"))
    monkeypatch.setattr("sys.argv", [f"{script}.py", "--help"])
    with suppress(SystemExit):
        runpy.run_path(str(ROOT / f"scripts/{script}.py"), run_name="__main__")
    assert "usage: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("lines of code", r"^ {4}(?!\s*#).*$"),
        ("code in the text", r"`[^`\n]+`"),
        ("figures", r"\d+(?:[.,:]\d+)*"),
        ("headings, items and rows", r"^(#+|-|\|)"),
        ("links", r"\]\((?!README)[^)]+\)"),
    ],
)
def test_the_readme_in_chinese_agrees_with_the_english_one(what: str, pattern: str) -> None:
    english, chinese = (Counter(re.findall(pattern, page, re.MULTILINE)) for page in (README, PAGES["README.zh.md"]))
    assert english
    assert (english - chinese, chinese - english) == (Counter(), Counter()), what


@pytest.mark.parametrize("path", sorted((ROOT / "configs").glob("*.yaml")), ids=lambda path: path.name)
def test_every_config_is_valid(path: Path) -> None:
    Config.model_validate(yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader))
