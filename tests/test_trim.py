"""Models of other toolkits lose the tokens that nobody needs, and compute the same with the others."""

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from conftest import Project
from pretrained import KINDS, LINES, Pretrained, case_of

from mtformer import Translator
from mtformer.bundle.format import Bundle, load_bundle
from mtformer.config import LanguagePair
from mtformer.export.importing import read_model, write_model
from mtformer.export.trim import _Rule, _script, trim
from mtformer.support.errors import UserError
from mtformer.text.languages import letters_of
from mtformer.text.tokenizer.sentencepiece_file import Token

TEXTS = [*LINES[:80:9], *LINES[80:]]
SHORT = [text for text in TEXTS if 0 < len(text) < 100]  # for which the models have positions
OTHERS = {"m2m_100": ["en", "fr"], "nllb": ["en", "deu_Latn"], "mbart": ["en_XX", "de", "zh"]}


@dataclass(frozen=True)
class Case:
    """A model of transformers, the bundle of it, and a trimmed one."""

    folder: Path
    theirs: Pretrained
    whole: Bundle
    trimmed: Bundle
    path: Path


@pytest.fixture(scope="module", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A model of each kind, trimmed to some texts and the languages that it was made for."""
    model, output = case_of(request.param, tmp_path_factory), tmp_path_factory.mktemp("trimmed")
    theirs = model.theirs
    write_model(trim(model.imported, theirs.languages if theirs.languages[0] else None, TEXTS), output)
    path = output / "model.safetensors"
    return Case(model.folder, theirs, model.ours, load_bundle(path).toward(*theirs.languages), path)


def kept_ids(case: Case) -> torch.Tensor:
    """The target tokens of the whole model that are left."""
    tokens = case.trimmed.tokenizer.tgt_tokens(range(case.trimmed.tokenizer.tgt_vocab_size))
    return torch.tensor(case.whole.tokenizer.tgt.ids(tokens))


def test_texts_have_the_same_tokens(case: Case) -> None:
    whole, trimmed = case.whole.tokenizer, case.trimmed.tokenizer
    for before, after in zip(whole.encode_src(TEXTS), trimmed.encode_src(TEXTS), strict=True):
        assert trimmed.src_tokens(after) == whole.src_tokens(before)
    for before, after in zip(whole.encode_tgt(TEXTS), trimmed.encode_tgt(TEXTS), strict=True):
        assert trimmed.tgt_tokens(after) == whole.tgt_tokens(before)
        assert trimmed.decode(after) == whole.decode(before)


def test_special_ids_are_those_of_the_same_tokens(case: Case) -> None:
    whole, trimmed = case.whole.tokenizer, case.trimmed.tokenizer
    before, after = whole.special_ids.model_dump(), trimmed.special_ids.model_dump()
    assert trimmed.tgt_tokens(list(after.values())) == whole.tgt_tokens(list(before.values()))
    for prefixes in ("src", "tgt"):
        ids = [getattr(tokenizer.prefixes, prefixes) for tokenizer in (whole, trimmed)]
        assert trimmed.tgt_tokens(ids[1]) == whole.tgt_tokens(ids[0])
    assert trimmed.tgt_vocab_size < whole.tgt_vocab_size
    assert trimmed.src_vocab_size < whole.src_vocab_size


def test_logits_of_the_remaining_tokens_are_the_same(case: Case) -> None:
    kept = kept_ids(case)
    for text in SHORT:
        logits = []
        for bundle in (case.whole, case.trimmed):
            [src], [tgt] = bundle.tokenizer.encode_src([text]), bundle.tokenizer.encode_tgt([text])
            tgt_in = torch.tensor([[bundle.tokenizer.special_ids.start, *bundle.tokenizer.prefixes.tgt, *tgt]])
            mask = torch.ones(1, len(src), dtype=torch.bool)
            with torch.inference_mode():
                logits.append(bundle.model.project(bundle.model(torch.tensor([src]), mask, tgt_in)))
        torch.testing.assert_close(logits[1], logits[0][..., kept], atol=1e-5, rtol=0)


@pytest.mark.slow
def test_translations_are_those_of_the_whole_model_without_the_dropped_tokens(case: Case) -> None:
    whole, (src_lang, tgt_lang) = case.whole.tokenizer, case.theirs.languages
    options: dict[str, Any] = {"engine": "torch", "beam_size": 1, "max_length": 12}
    translator = Translator.load([case.path], raw=True, src_lang=src_lang, tgt_lang=tgt_lang, **options)
    found = [hypotheses[0].text for hypotheses in translator.translate(SHORT)]
    dropped = set(range(whole.tgt_vocab_size)) - set(kept_ids(case).tolist())
    [forced] = whole.prefixes.tgt or (None,)
    expected = [
        case.theirs.model.generate(
            torch.tensor([ids]),
            max_new_tokens=12 + len(whole.prefixes.tgt),
            suppress_tokens=sorted({*dropped, *whole.special_ids.never}),
            forced_bos_token_id=forced,
            num_beams=1,
        )[0].tolist()
        for ids in whole.encode_src(SHORT)
    ]
    assert found == [whole.decode(ids) for ids in expected]


@pytest.mark.parametrize("kind", OTHERS)
def test_languages_alone_drop_other_languages_scripts_and_unused_ids(kind: str, tmp_path: Path) -> None:
    KINDS[kind](tmp_path, 1)
    imported = read_model(str(tmp_path))
    trimmed = trim(imported, OTHERS[kind], None)
    tokenizer, whole = (model.header.make_tokenizer(model.tokenizers) for model in (trimmed, imported))
    left = set(tokenizer.src_tokens(range(tokenizer.src_vocab_size)))
    assert tokenizer.control_symbols == list(trimmed.header.languages.values())
    assert len(trimmed.header.languages) == len(OTHERS[kind])
    assert trimmed.header.languages.items() <= imported.header.languages.items()
    texts = [text for text in LINES if text.isascii()]
    for before, after in zip(whole.encode_src(texts), tokenizer.encode_src(texts), strict=True):
        assert tokenizer.src_tokens(after) == whole.src_tokens(before)
    assert not {token for token in left if token.startswith("<unused_") or token == "<mask>"}


def test_pieces_of_other_scripts_are_dropped(tmp_path: Path) -> None:
    KINDS["nllb"](tmp_path, 1)
    header = read_model(str(tmp_path)).header.model_copy(update={"languages": {"eng_Latn": "a", "zho_Hans": "b"}})
    rule = _Rule(frozenset(), _script(header), by_text=False)
    kept = [text for text in ("▁the", "你好", "при", "▁п", "12.", "▁", "ä", "ش", "👩", "aп") if rule.keeps(Token(text))]
    assert kept == ["▁the", "你好", "12.", "▁", "ä", "👩", "aп"]


def test_a_script_in_a_code_decides() -> None:
    assert letters_of("srp_Cyrl") == letters_of("ru")
    assert letters_of("uz-Latn") == letters_of("en")
    assert letters_of("zho_Hant") == letters_of("zh")
    assert letters_of("ace") is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--languages", "en,dee"], "does not translate to dee (did you mean de?)"),
        (["--languages", "en"], "a model needs two languages or more"),
        (["--keep-vocabulary", "empty.txt"], "there is no text that says which tokens to keep"),
        (["--keep-vocabulary", "missing.txt"], "missing.txt"),
    ],
)
def test_bad_arguments_are_explained(project: Project, arguments: list[str], message: str) -> None:
    (project.folder / "theirs").mkdir()
    KINDS["m2m_100"](project.folder / "theirs", 1)
    (project.folder / "empty.txt").write_text("\n \n")
    result = project.mtformer("import", "theirs", "--output", "ours", *arguments)
    assert (result.status, message in result.stderr) == (2, True), result.stderr
    assert not (project.folder / "ours").exists()


def test_languages_of_a_model_of_one_direction_cannot_be_chosen(tmp_path: Path) -> None:
    KINDS["pegasus"](tmp_path, 1)
    with pytest.raises(UserError, match="the model translates en-de: languages can be chosen of one that"):
        trim(read_model(str(tmp_path), LanguagePair("en", "de")), ["en", "de"], None)


def test_the_command_says_what_it_saved(project: Project) -> None:
    (project.folder / "theirs").mkdir()
    KINDS["m2m_100"](project.folder / "theirs", 1)
    for name, texts in (("a.gz", TEXTS[:5]), ("b.gz", TEXTS[5:])):
        (project.folder / name).write_bytes(gzip.compress("\n".join(texts).encode()))
    assert project.mtformer("import", "theirs", "--output", "whole").status == 0
    command = ("import", "theirs", "--languages", "eng,de", "--keep-vocabulary", "a.gz", "--keep-vocabulary", "b.gz")
    result = project.mtformer(*command, "--output", "ours")
    assert (result.status, result.stdout) == (0, "ours\n"), result.stderr
    whole, ours = (project.folder / name / "model.safetensors" for name in ("whole", "ours"))
    sizes = [load_bundle(path).header.architecture.src_vocab_size for path in (whole, ours)]
    assert f"vocabulary {sizes[0]:,} → {sizes[1]:,} tokens, parameters" in result.stderr
    assert ours.stat().st_size < whole.stat().st_size
    translated = project.mtformer("translate", "a dog", "--model", "ours", "--from", "en", "--to", "de", "--raw")
    assert translated.status == 0, translated.stderr
