"""The README and docs/ agree with the program."""

import re
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from mtformer.config import Config

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"))}


def commands() -> list[str]:
    """All lines in indented blocks that call mtformer, without prompts and continuations."""
    lines = re.findall(r"^ {4}(?:\$ )?(mtformer .*)$", "\n".join(PAGES.values()), flags=re.MULTILINE)
    return sorted(set(lines))


def test_the_config_reference_is_that_of_the_schema() -> None:
    command = [sys.executable, str(ROOT / "scripts/config_reference.py")]
    page = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert page == PAGES["config.md"]


@pytest.mark.parametrize("command", commands())
def test_commands_have_only_options_that_exist(command: str) -> None:
    words = shlex.split(command.split("|")[0].split(" #")[0], comments=False)
    options = {word.split("=")[0] for word in words[2:] if word.startswith("--")}
    name = words[1:3] if words[1] == "data" else words[1:2]
    helped = subprocess.run(
        [sys.executable, "-m", "mtformer", *name, "--help"], capture_output=True, text=True, env={"COLUMNS": "200"}
    )
    assert helped.returncode == 0
    assert options <= set(re.findall(r"--[a-z-]+", helped.stdout))


@pytest.mark.parametrize("page", PAGES)
def test_files_that_it_names_exist(page: str) -> None:
    named = set(re.findall(r"(?:configs|scripts|tests|mtformer|docs)/[\w./-]*\w", PAGES[page]))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    [folder] = {path.parent for path in (ROOT / page, ROOT / "docs" / page) if path.exists()}
    links = [link for link in re.findall(r"\]\(([^)#]+)", PAGES[page]) if "://" not in link]
    assert [link for link in links if not (folder / link).exists()] == []


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
    demo = (ROOT / "scripts/demo").read_text(encoding="utf-8")
    sentences = re.findall(r"--model runs/demo (\".+\")", README)
    assert sentences
    assert [sentence for sentence in sentences if f"translate {sentence}" not in demo] == []


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
