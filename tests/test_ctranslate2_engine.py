"""CTranslate2 translates and scores as torch does, from exported models and from bundles, without importing torch."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from conftest import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Project, sentence_pairs
from engines import align, candidates, request, score

from mtformer import Translator
from mtformer.bundle.format import Bundle, load_bundle, save_bundle
from mtformer.bundle.header import AlignmentHead
from mtformer.config import SearchOptions
from mtformer.config.search import LengthPenalty
from mtformer.engines.ctranslate2 import unsupported
from mtformer.engines.ctranslate2.cached import converted
from mtformer.engines.ctranslate2.conversion import write_ctranslate2
from mtformer.engines.ctranslate2.engine import CTranslate2Engine
from mtformer.engines.ctranslate2.folder import read_folder
from mtformer.engines.torch import TorchEngine
from mtformer.search.engine import Engine, ScoreRequest, SearchRequest
from mtformer.search.hypothesis import ranked
from mtformer.support.errors import MtformerError, UserError

SENTENCES = [src for src, _ in sentence_pairs(40, seed=9)]
FIXTURE = Path(__file__).parent / "fixtures/bundle-3.safetensors"


@pytest.fixture(scope="module")
def bundle(trained: Project) -> Bundle:
    return load_bundle(trained.folder / "runs/config/model.safetensors")


@pytest.fixture(scope="module")
def folder(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trained model, exported."""
    folder = tmp_path_factory.mktemp("exported")
    write_ctranslate2(folder, bundle, name="model.safetensors", quantization="float32")
    return folder


@pytest.fixture(scope="module")
def engines(bundle: Bundle, folder: Path) -> tuple[Engine, Engine]:
    return TorchEngine(bundle.model), CTranslate2Engine(read_folder(folder))


def exported(bundle: Bundle, folder: Path) -> CTranslate2Engine:
    folder.mkdir()
    write_ctranslate2(folder, bundle, name="model.safetensors", quantization="float32")
    return CTranslate2Engine(read_folder(folder))


def requests_of(bundle: Bundle, *, limit: int = 70) -> list[SearchRequest]:
    return [request(src, limit) for src in bundle.tokenizer.encode_src(SENTENCES)]


def assert_same(engines: tuple[Engine, Engine], requests: list[SearchRequest], **options: Any) -> None:
    """Compare both engines' hypotheses, ranked."""
    chosen = SearchOptions.model_validate(options)
    ours, theirs = (candidates(engine, requests, chosen) for engine in engines)
    for expected, found in zip(ours, theirs, strict=True):
        expected, found = ranked(expected, chosen.penalty), ranked(found, chosen.penalty)
        assert [one.ids for one in found] == [one.ids for one in expected]
        for one, other in zip(found, expected, strict=True):
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4},
        {"beam_size": 4, "length_penalty": 0.0},
        {"beam_size": 5, "length_penalty": 2.0},
        {"beam_size": 1, "batch_tokens": 16},
        {"beam_size": 1, "min_length": 12},
        {"beam_size": 1, "no_repeat_ngram_size": 1},
    ],
    ids=str,
)
def test_translations_are_those_of_torch(
    engines: tuple[Engine, Engine], bundle: Bundle, options: dict[str, Any]
) -> None:
    assert_same(engines, requests_of(bundle), **options)


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"beam_size": 4}, {"beam_size": 4, "n_best": 2}], ids=str)
def test_a_lone_hypothesis_is_scored_only_where_its_tokens_need_it(
    engines: tuple[Engine, Engine], bundle: Bundle, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    scored: list[int] = []
    score_batch = CTranslate2Engine._score

    def score_and_count(engine: CTranslate2Engine, requests: Sequence[ScoreRequest]) -> list[list[float]]:
        scored.append(len(requests))
        return score_batch(engine, requests)

    monkeypatch.setattr(CTranslate2Engine, "_score", score_and_count)
    chosen, requests = SearchOptions.model_validate(options), requests_of(bundle)
    expected = candidates(engines[1], requests, chosen)
    scored.clear()
    without = candidates(engines[1], [replace(each, token_log_probs=False) for each in requests], chosen)
    # Several are ranked by the model's own log probabilities. Of one, few are searched again without special tokens.
    assert (sum(scored) < len(requests)) is (chosen.n_best == 1)
    for ours, theirs in zip(without, expected, strict=True):
        assert [each.ids for each in ours] == [each.ids for each in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert one.log_prob == pytest.approx(other.log_prob, abs=1e-3)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize(
    "rule", [{"repetition_penalty": 1.5}, {"no_repeat_ngram_size": 1}, {"min_length": 30}], ids=str
)
def test_a_lone_hypothesis_has_the_models_log_probability_whatever_rules_have_changed(
    engines: tuple[Engine, Engine], bundle: Bundle, beam_size: int, rule: dict[str, Any]
) -> None:
    requests, options = requests_of(bundle)[:5], SearchOptions.model_validate({"beam_size": beam_size, **rule})
    found = candidates(engines[1], [replace(each, token_log_probs=False) for each in requests], options)
    ids = [one.ids for [one] in found]
    log_probs = map(sum, score(engines[0], [each.src for each in requests], ids))
    assert [one.log_prob for [one] in found] == pytest.approx(list(log_probs), abs=1e-3)


def test_the_best_two_of_eight_beams_are_those_of_torch(engines: tuple[Engine, Engine], bundle: Bundle) -> None:
    requests = requests_of(bundle)
    options = SearchOptions(beam_size=8, n_best=2)
    ours, theirs = (candidates(engine, requests, options) for engine in engines)
    same = [
        ranked(one, LengthPenalty(1.0))[0].ids == ranked(other, LengthPenalty(1.0))[0].ids
        for one, other in zip(ours, theirs, strict=True)
    ]
    assert all(same)
    assert all(len(found) == 2 and found[0].ids != found[1].ids for found in theirs)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_begin_with_the_prefixes(engines: tuple[Engine, Engine], bundle: Bundle, beam_size: int) -> None:
    prefixes = [ids[:-1] for ids in bundle.tokenizer.encode_tgt(["", "mein", "das rote Haus", "ein kleiner"])]
    requests = [replace(one, prefix=prefixes[i % 4]) for i, one in enumerate(requests_of(bundle))]
    assert_same(engines, requests, beam_size=beam_size)


def with_limits(bundle: Bundle) -> list[SearchRequest]:
    """Sentences whose translations are cut off, one of them by the end of its prefix."""
    requests = [replace(one, limit=i % 9) for i, one in enumerate(requests_of(bundle))]
    return [*requests, request(requests[0].src, 2, requests[0].src[:3])]


def test_each_sentence_keeps_to_its_own_limit(engines: tuple[Engine, Engine], bundle: Bundle) -> None:
    assert_same(engines, with_limits(bundle), beam_size=1)


def test_each_sentence_keeps_to_its_own_limit_in_beam_search(engines: tuple[Engine, Engine], bundle: Bundle) -> None:
    """What the limit cuts off depends on finished hypotheses that only torch's search collects."""
    requests, options = with_limits(bundle), SearchOptions(beam_size=3, n_best=3)
    found = candidates(engines[1], requests, options)
    for asked, hypotheses in zip(requests, found, strict=True):
        assert all(len(one.ids) <= max(asked.limit, len(asked.prefix)) for one in hypotheses)
        assert all(len(one.token_log_probs) == len(one.ids) + 1 for one in hypotheses)
    assert [[one.ids for one in candidates(engines[1], [each], options)[0]] for each in requests] == [
        [one.ids for one in hypotheses] for hypotheses in found
    ]


def test_scores_are_those_of_torch(engines: tuple[Engine, Engine], bundle: Bundle) -> None:
    sources = bundle.tokenizer.encode_src(SENTENCES)
    targets = [ids[:-1] for ids in bundle.tokenizer.encode_tgt([tgt for _, tgt in sentence_pairs(40, seed=10)])]
    targets[0] = []
    ours, theirs = (score(engine, sources, targets) for engine in engines)
    for expected, found in zip(ours, theirs, strict=True):
        assert found == pytest.approx(expected, abs=1e-3)
    assert score(engines[1], [], []) == []
    assert candidates(engines[1], [], SearchOptions()) == []


@pytest.mark.parametrize("beam_size", [1, 3])
def test_special_tokens_are_never_chosen(tmp_path: Path, beam_size: int) -> None:
    """Even a model that predicts nothing else: its logits for them are the highest."""
    bundle = load_bundle(FIXTURE)
    with torch.no_grad():
        weight = bundle.model.output.weight
        for special in (PAD_ID, UNK_ID, BOS_ID):
            weight[special] = 3 * weight[EOS_ID]
    engines = TorchEngine(bundle.model), exported(bundle, tmp_path / "exported")
    requests = [request([*range(10, 10 + n), EOS_ID], 6) for n in range(1, 8)]
    found = candidates(engines[1], requests, SearchOptions(beam_size=beam_size))
    assert all({PAD_ID, UNK_ID, BOS_ID}.isdisjoint(one.ids) for hypotheses in found for one in hypotheses)


@pytest.mark.parametrize("reading", [False, True])
@pytest.mark.parametrize("head", [0, 1])
def test_alignments_are_those_of_torch(bundle: Bundle, tmp_path: Path, head: int, reading: bool) -> None:
    chosen = (AlignmentHead(layer=0, head=head, reading=reading),)
    bundle = replace(bundle, header=bundle.header.model_copy(update={"alignment_heads": chosen}))
    save_bundle(tmp_path / "model.safetensors", bundle)
    engines = [Translator.load(tmp_path / "model.safetensors", engine=name).engine for name in ("torch", "ctranslate2")]
    sources = bundle.tokenizer.encode_src(SENTENCES)
    targets = [ids[:-1] for ids in bundle.tokenizer.encode_tgt([tgt for _, tgt in sentence_pairs(40, seed=10)])]
    targets[3], sources[4] = [], [EOS_ID]
    for expected, found in zip(*(align(engine, sources, targets) for engine in engines), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_model_that_predicts_nan_is_an_error(tmp_path: Path) -> None:
    bundle = load_bundle(FIXTURE)
    with torch.no_grad():
        next(bundle.model.decoder_norm.parameters()).fill_(float("nan"))
    engine = exported(bundle, tmp_path / "exported")
    for call in (
        lambda: score(engine, [[10, EOS_ID]], [[11]]),
        lambda: candidates(engine, [request([10, EOS_ID], 4)], SearchOptions(beam_size=1)),
    ):
        with pytest.raises(MtformerError, match="predicts NaN"):
            call()


def test_texts_longer_than_the_tables_of_positions_are_an_error(bundle: Bundle, folder: Path) -> None:
    engine = CTranslate2Engine(replace(read_folder(folder), n_positions=64))
    with pytest.raises(UserError, match="65 tokens, but the exported model has 64 positions"):
        score(engine, [[EOS_ID]], [[5] * 64])
    with pytest.raises(UserError, match="71 tokens, but the exported model has 64 positions"):
        candidates(engine, [request([10, EOS_ID], 70)], SearchOptions())


def test_an_option_that_ctranslate2_lacks_is_named(folder: Path, trained: Project) -> None:
    with pytest.raises(UserError, match="with weights as float32, and does not support sample = True: use the bundle"):
        Translator.load(folder, sample=True)
    model = trained.folder / "runs/config"
    with pytest.raises(UserError, match="does not support sample = True, seed = 7"):
        Translator.load(model, engine="ctranslate2", sample=True, seed=7)
    assert isinstance(Translator.load(model, engine="auto", sample=True).engine, TorchEngine)
    assert isinstance(Translator.load(model, "cpu", engine="auto").engine, CTranslate2Engine)
    assert isinstance(Translator.load(model).engine, TorchEngine)


def test_of_every_search_option_it_is_known_whether_ctranslate2_has_it() -> None:
    others: dict[str, Any] = {"sample": True, "temperature": 0.5, "top_k": 3, "top_p": 0.5, "seed": 9}
    options = SearchOptions(**others, beam_size=1)
    assert unsupported(options) == ["sample = True", "temperature = 0.5", "top_k = 3", "top_p = 0.5", "seed = 9"]
    assert unsupported(SearchOptions(precision="bf16")) == ["precision = bf16"]
    assert unsupported(SearchOptions(precision="int8")) == []
    supported = "beam_size length_penalty max_length_factor max_length_offset batch_tokens precision n_best mbr"
    rules = "length_penalty_offset min_length max_length repetition_penalty no_repeat_ngram_size"
    assert {*supported.split(), *rules.split(), *others} == set(SearchOptions.model_fields)


def test_an_exported_model_translates_as_its_bundle(trained: Project, folder: Path) -> None:
    def rows(*model: str | Path) -> list[tuple[str, float]]:
        arguments = ("--format", "tsv", "--beam-size", "3", "--model", *model)
        result = trained.mtformer("translate", *arguments, stdin="\n".join(SENTENCES))
        assert result.status == 0, result.stderr
        cells = [line.split("\t") for line in result.stdout.splitlines()]
        return [(text, float(score)) for _, _, score, text in cells]

    expected = rows("runs", "--engine", "torch")
    for found in (rows(folder), rows("runs", "--engine", "ctranslate2")):
        assert [text for text, _ in found] == [text for text, _ in expected]
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], abs=2e-4)


def test_translating_imports_neither_torch_nor_numpy(trained: Project, folder: Path) -> None:
    """Neither an exported model nor a bundle that has been converted before."""
    model = trained.folder / "runs/config/model.safetensors"
    converted(model, "float32")
    code = """
import atexit, sys
from mtformer.cli import main
heavy = {"torch", "numpy", "datasets", "sacrebleu", "pandas", "transformers", "matplotlib"}
atexit.register(lambda: print(heavy & set(sys.modules)))
sys.argv = ["mtformer", "translate", "the red house sees my old friend.", "--device", "cpu", "--model", PATH]
main()
"""
    for path in (folder, model):
        command = [sys.executable, "-c", code.replace("PATH", repr(str(path)))]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.stdout == "das rote Haus sieht mein alter Freund.\nset()\n", done.stderr


def test_auto_falls_back_to_torch_when_ctranslate2_cannot_run_a_model(
    trained: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = trained.folder / "runs/config"
    assert isinstance(Translator.load(model, "cpu", engine="auto").engine, CTranslate2Engine)
    assert isinstance(Translator.load(model, "cpu", engine="auto", max_length_factor=100.0).engine, TorchEngine)

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError("no such instructions")

    monkeypatch.setattr("ctranslate2.Translator", refuse)
    assert isinstance(Translator.load(model, "cpu", engine="auto").engine, TorchEngine)
    with pytest.raises(UserError, match=r"CTranslate2 cannot load .*: no such instructions"):
        Translator.load(model, "cpu", engine="ctranslate2")


def test_a_quantized_export_does_not_pretend_to_compute_in_fp32(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for quantization in ("int8", "bfloat16"):
        (tmp_path / quantization).mkdir()
        write_ctranslate2(
            tmp_path / quantization, load_bundle(FIXTURE), name="model.safetensors", quantization=quantization
        )
    with pytest.raises(UserError, match="with weights as int8, and does not support precision = fp32: use the bundle"):
        Translator.load(tmp_path / "int8", precision="fp32")
    Translator.load(tmp_path / "int8")
    Translator.load(tmp_path / "bfloat16", "cpu", precision="fp32")
    assert capfd.readouterr().err == ""  # of CTranslate2, which warns that it converts weights


def test_a_program_that_keeps_its_translator_exits_normally(folder: Path) -> None:
    """CTranslate2's threads hold callbacks of greedy search, which they cannot release once Python has shut down."""
    code = """
import sys
from mtformer import Translator
translator = Translator.load(sys.argv[1], "cpu", beam_size=1, raw=True)
print(translator.translate(["the red house sees my old friend."])[0][0].text)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
def test_a_second_interrupt_does_not_make_python_forget_a_running_thread() -> None:
    """Python would shut down while the thread translates, which aborts the process."""
    code = """
import signal, sys, threading, time
from mtformer.engines.ctranslate2.engine import CTranslate2Engine

signal.signal(signal.SIGINT, signal.default_int_handler)
threads, started, released = [], threading.Event(), threading.Event()

class Interrupted(CTranslate2Engine):
    def __init__(self):
        self._n_workers = 2

    def _run(self, batch):
        if batch == [1]:
            started.wait()
            raise ValueError
        threads.append(threading.current_thread())
        started.set()
        time.sleep(0.5)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        released.wait(5)

try:
    list(Interrupted()._map([[1], [2]]))
except KeyboardInterrupt:
    [thread] = threads
    print(thread.is_alive() or thread.ident not in sys._current_frames())
released.set()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_a_bundle_is_converted_once_and_again_when_the_cache_is_damaged(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    caplog.set_level("INFO", logger="mtformer")
    model = trained.folder / "runs/config/model.safetensors"

    def n_conversions() -> int:
        converted(model, "float32")
        return sum("converting" in record.message for record in caplog.records)

    assert [n_conversions(), n_conversions()] == [1, 1]
    [folder] = (path for path in (tmp_path / "mtformer/ctranslate2").iterdir() if path.is_dir())
    assert folder.name == f"{load_bundle(model).digest}-float32-3"
    assert caplog.records[-1].message.endswith(f"once: {folder}")
    weights = bytearray((folder / "model.bin").read_bytes())
    weights[len(weights) // 2] ^= 1
    (folder / "model.bin").write_bytes(weights)
    assert [n_conversions(), n_conversions()] == [2, 2]
    shutil.rmtree(folder)
    (folder.with_name("other")).mkdir()
    assert [n_conversions(), n_conversions()] == [3, 3]
    converted(model, "int8")
    assert n_conversions() == 4


def test_a_cache_that_cannot_be_written_is_named_and_auto_does_without(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    result = trained.mtformer("translate", SENTENCES[0], "--model", "runs", "--engine", "ctranslate2")
    assert (result.status, result.stdout) == (1, "")
    assert "cannot write the cache" in result.stderr
    assert "$XDG_CACHE_HOME" in result.stderr
    result = trained.mtformer("translate", SENTENCES[0], "--model", "runs")
    assert result.status == 0
    assert "cache" not in result.stderr


def test_the_readme_of_an_exported_model_may_be_edited(trained: Project, folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    (model / "README.md").write_text("Ours.", encoding="utf-8")
    assert trained.mtformer("translate", SENTENCES[0], "--model", model).status == 0
    (model / "README.md").unlink()
    assert trained.mtformer("translate", SENTENCES[0], "--model", model).status == 0


def test_a_damaged_exported_model_is_an_error(trained: Project, folder: Path, tmp_path: Path) -> None:
    def message(name: str, text: str | None) -> str:
        damaged = tmp_path / name.replace(".", "-") / str(len(text or ""))
        shutil.copytree(folder, damaged)
        if text is None:
            (damaged / name).unlink()
        else:
            (damaged / name).write_text(text, encoding="utf-8")
        result = trained.mtformer("translate", SENTENCES[0], "--model", damaged)
        assert (result.status, result.stdout, result.stderr.count("\n")) == (2, "", 1)
        return result.stderr

    settings = json.loads((folder / "mtformer.json").read_text(encoding="utf-8"))
    assert "tokenizer.model is not the file that was written; export the bundle again" in message("tokenizer.model", "")
    assert "damaged: cannot read shared_vocabulary.json: No such" in message("shared_vocabulary.json", None)
    assert "there is no model at" in message("model.bin", None)
    assert "mtformer.json is damaged" in message("mtformer.json", json.dumps(settings | {"src_lang": 1}))
    for changed in ({"n_positions": "many"}, {"files": ["model.bin"]}, {"files": {"model.bin": "/dev/zero"}}):
        assert "mtformer.json is damaged" in message("mtformer.json", json.dumps(settings | changed))
    for text in ("[", "[]", "[" * 200_000):
        assert "this exported model is damaged: mtformer.json is damaged" in message("mtformer.json", text)
    newer = json.dumps(settings | {"format": "mtformer-ctranslate2-9"})
    assert "has format mtformer-ctranslate2-9, this version of mtformer reads" in message("mtformer.json", newer)


def test_what_takes_a_bundle_says_so_when_it_gets_an_exported_model(trained: Project, folder: Path) -> None:
    for command in (("explain", SENTENCES[0], "--model", folder), ("export", folder, "--to", "ctranslate2")):
        output = ("--output", "new") if command[0] == "export" else ()
        result = trained.mtformer(*command, *output)
        assert result.status == 2
        assert "is a model exported for CTranslate2; this takes the bundle that it was made from" in result.stderr
    result = trained.mtformer("translate", SENTENCES[0], "--model", folder, "--engine", "torch")
    assert (result.status, "--engine torch needs the bundle" in result.stderr) == (2, True)


def test_a_missing_package_is_named_and_auto_does_without(
    trained: Project, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for arguments in (("--model", "runs", "--engine", "ctranslate2"), ("--model", folder)):
        result = trained.mtformer("translate", SENTENCES[0], *arguments)
        assert result.status == 2
        assert "ctranslate2, which is not installed; pip install ctranslate2" in result.stderr.lower()
    assert trained.mtformer("translate", SENTENCES[0], "--model", "runs").status == 0


@pytest.mark.parametrize("problem", ["ImportError", "OSError"])
def test_a_package_that_cannot_be_imported_is_named_and_auto_does_without(
    trained: Project, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: str
) -> None:
    (tmp_path / "ctranslate2.py").write_text(f"raise {problem}('libctranslate2.so: cannot enable executable stack')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    result = trained.mtformer("translate", SENTENCES[0], "--model", "runs")
    assert (result.status, result.stdout.count("\n")) == (0, 1)
    assert "torch translates with this model: the package ctranslate2 cannot be imported: libctr" in result.stderr
    for arguments in (("--model", "runs", "--engine", "ctranslate2"), ("--model", folder)):
        result = trained.mtformer("translate", SENTENCES[0], *arguments)
        assert (result.status, result.stdout) == (2, "")
        assert "cannot be imported: libctranslate2.so: cannot enable executable stack; install it" in result.stderr


def test_an_interrupted_import_is_no_missing_package(
    trained: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ctranslate2.py").write_text("raise ImportError('initialization failed') from KeyboardInterrupt()")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "ctranslate2", raising=False)
    result = trained.mtformer("translate", SENTENCES[0], "--model", "runs")
    assert (result.status, result.stdout) == (130, "")


def test_precision_int8_quantizes_bundles_and_exported_models(trained: Project, folder: Path, cache: Path) -> None:
    model = trained.folder / "runs/config"
    expected = [best.text for best, *_ in Translator.load(model, raw=True).translate(SENTENCES)]
    for path in (model, folder):
        translator = Translator.load(path, "cpu", engine="ctranslate2", raw=True, precision="int8")
        found = [best.text for best, *_ in translator.translate(SENTENCES)]
        assert sum(one == other for one, other in zip(found, expected, strict=True)) > 30
    assert list((cache / "mtformer/ctranslate2").glob("*-int8-3/model.bin"))
    with pytest.raises(UserError, match="does not support precision = bf16: use the bundle"):
        Translator.load(folder, precision="bf16")
    with pytest.raises(UserError, match="was loaded with precision = int8"):
        translator.with_options(precision="fp32")
    with pytest.raises(UserError, match="does not support sample = True; use --engine torch"):
        translator.with_options(sample=True)


def test_eval_says_which_engine_it_has_scored(copied: Project, cache: Path) -> None:
    def evaluate(*options: str) -> dict[str, Any]:
        result = copied.mtformer("eval", "--json", *options)
        assert result.status == 0, result.stderr
        return json.loads(result.stdout)

    found = {engine: evaluate("--engine", engine) for engine in ("torch", "ctranslate2")}
    assert [one["engine"] for one in found.values()] == ["torch", "ctranslate2"]
    assert [one["precision"] for one in found.values()] == ["fp32", "float32"]
    versions = [one["versions"].get("ctranslate2") for one in found.values()]
    assert versions == [None, version("ctranslate2")]
    assert found["ctranslate2"]["loss"] == pytest.approx(found["torch"]["loss"], abs=2e-4)
    assert evaluate("--engine", "ctranslate2", "--precision", "int8")["precision"].startswith("int8")
    assert evaluate()["engine"] == "ctranslate2"  # as translate does


def test_an_exported_model_is_evaluated_on_test_sets_that_are_named(copied: Project, folder: Path) -> None:
    beside = copied.config.parent / "exported"  # in the folder of the run, which it is not of
    shutil.copytree(folder, beside)
    result = copied.mtformer("eval", "--model", beside)
    assert (result.status, "exported is not in the folder of a run" in result.stderr) == (2, True), result.stderr
    named = ("--src", "test.en", "--ref", "test.de", "--json")
    expected, found = (
        json.loads(copied.mtformer("eval", *named, "--beam-size", "1", "--model", model).stdout)
        for model in ("runs", beside)
    )
    assert (found["engine"], found["digest"]) == ("ctranslate2", expected["digest"])
    assert found["scores"] == expected["scores"]
    result = copied.mtformer("eval", *named, "--engine", "torch", "--model", beside)
    assert (result.status, "--engine torch needs the bundle" in result.stderr) == (2, True)


def test_score_gives_the_same_with_both_engines(trained: Project, folder: Path) -> None:
    def scores(*options: str | Path) -> list[float]:
        result = trained.mtformer("score", "--src", "test.en", "--tgt", "test.de", *options)
        assert result.status == 0, result.stderr
        return [float(line) for line in result.stdout.splitlines()]

    expected = scores("--model", "runs")
    assert len(expected) == 20
    for found in (scores("--model", "runs", "--engine", "ctranslate2"), scores("--model", folder)):
        assert found == pytest.approx(expected, abs=2e-3)


def test_nothing_is_written_into_the_folder_of_a_model(copied: Project, folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    (tmp_path / "link").hardlink_to(model / "README.md")
    before = {file: file.read_bytes() for file in model.iterdir()}
    for output, message in (
        (model / "hyp.txt", f"is in {model}, which is an input"),
        (model / "config.json", f"is in {model}, which is an input"),
        (tmp_path / "link", "is both input and output"),
    ):
        for command in (
            ("translate", "--input", "test.en"),
            ("score", "--src", "test.en", "--tgt", "test.de"),
            ("eval", "--src", "test.en", "--ref", "test.de"),
        ):
            result = copied.mtformer(*command, "--model", model, "--output", output)
            assert (result.status, message in result.stderr) == (2, True), (command, result.stderr)
    assert {file: file.read_bytes() for file in model.iterdir()} == before


def test_a_damaged_bundle_is_an_error_of_the_bundle(trained: Project, tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    save_bundle(model, load_bundle(FIXTURE))
    data = bytearray(model.read_bytes())
    data[-100] ^= 1
    model.write_bytes(data)
    for engine in ("auto", "ctranslate2", "torch"):
        result = trained.mtformer("translate", SENTENCES[0], "--model", model, "--engine", engine)
        assert result.status == 2
        assert "this bundle is damaged" in result.stderr


def test_a_bundle_that_was_damaged_after_it_was_converted_is_an_error(tmp_path: Path) -> None:
    model = tmp_path / "model.safetensors"
    save_bundle(model, load_bundle(FIXTURE))
    converted(model, "float32")
    intact, times = model.read_bytes(), (model.stat().st_atime_ns, model.stat().st_mtime_ns)
    damaged = bytearray(intact)
    damaged[-100] ^= 1
    model.write_bytes(damaged)
    os.utime(model, ns=times)
    with pytest.raises(UserError, match="this bundle is damaged"):
        converted(model, "float32")
    model.write_bytes(intact[:-4])
    with pytest.raises(UserError, match="not an intact safetensors file"):
        converted(model, "float32")
    model.write_bytes(intact)
    assert converted(model, "float32").digest == load_bundle(model).digest


@pytest.fixture
def two_models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Two bundles with other weights, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    paths = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    bundle = load_bundle(FIXTURE)
    for path in paths:
        save_bundle(path, bundle)
        with torch.no_grad():
            bundle.model.output.weight.mul_(0.5)
    return paths


@pytest.mark.parametrize("moment", ["mtformer.engines.ctranslate2.cached.peek", "mtformer.bundle.format.load_bundle"])
def test_a_bundle_that_is_replaced_while_it_is_converted_is_stored_under_its_own_digest(
    two_models: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    first, second = two_models
    digests = [load_bundle(path).digest for path in two_models]
    path = tmp_path / "model.safetensors"
    shutil.copy(first, path)
    shutil.rmtree(converted(path, "float32").path)  # it is known to be intact
    module, _, name = moment.rpartition(".")
    function = getattr(sys.modules[module], name)

    def replacing(given: Path) -> Any:
        found = function(given) if name == "peek" else None  # the header of the first one, or all of the second one
        if second.exists():
            second.replace(path)
        return found or function(given)

    with monkeypatch.context() as patch:
        patch.setattr(moment, replacing)
        model = converted(path, "float32")
    assert model.digest == digests[1]
    weights = [(converted(file, "float32").path / "model.bin").read_bytes() for file in (path, first)]
    assert [converted(file, "float32").digest for file in (path, first)] == digests[::-1]
    assert weights[0] != weights[1]


def test_a_model_in_the_cache_under_the_digest_of_another_is_converted_again(two_models: tuple[Path, Path]) -> None:
    first, second = (converted(path, "float32") for path in two_models)
    shutil.rmtree(first.path)
    shutil.copytree(second.path, first.path)
    assert converted(two_models[0], "float32").digest == first.digest != second.digest


def test_the_cache_keeps_the_models_that_were_used_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folders = [converted(FIXTURE, quantization).path for quantization in ("float32", "int8")]
    for seconds, folder in enumerate(folders):
        os.utime(folder, (seconds, seconds))
    assert converted(FIXTURE, "float32").path == folders[0]  # used again
    size = sum(file.stat().st_size for file in folders[0].iterdir())
    monkeypatch.setattr("mtformer.engines.ctranslate2.cached._MAX_BYTES", int(1.9 * size))
    newest = converted(FIXTURE, "float16").path
    assert [path.is_dir() for path in (*folders, newest)] == [True, False, True]


def test_a_relative_cache_folder_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert converted(FIXTURE, "float32").path.is_relative_to(tmp_path / "home/.cache/mtformer")
    assert not (tmp_path / "cache").exists()
