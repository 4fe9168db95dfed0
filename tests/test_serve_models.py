"""The models of a server: loaded on demand, within a limit of memory, and replaced while requests go on."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from servers import ASKED, PAIRS, SECONDS, TEXT, running

from mtformer.bundle.format import load_bundle, save_bundle
from mtformer.config import LanguagePair
from mtformer.serve import models as module
from mtformer.serve.errors import ServiceError
from mtformer.serve.models import Models, Requirements
from mtformer.support.errors import UserError

EN_DE, FR_DE = LanguagePair("en", "de"), LanguagePair("fr", "de")


def write_greedy(bundle: Path, path: Path, languages: tuple[str, str] = ("en", "de")) -> None:
    """Write a copy of a model that searches greedily, and whose languages have other names."""
    loaded = load_bundle(bundle)
    search = loaded.header.search.model_copy(update={"beam_size": 1})
    changes = {"search": search, "src_lang": languages[0], "tgt_lang": languages[1]}
    temporary = path.with_suffix(".new")
    save_bundle(temporary, replace(loaded, header=loaded.header.model_copy(update=changes)))
    temporary.replace(path)


def test_a_model_is_replaced_while_requests_go_on(bundle: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    shutil.copy(bundle, path)
    with running(path) as client, ThreadPoolExecutor(8) as threads:
        models = client.service.models
        client.post("/translate", ASKED)
        answers = [threads.submit(client.post, "/translate", ASKED) for _ in range(60)]
        write_greedy(bundle, path)
        assert models.refresh() == [path]
        answers += [threads.submit(client.post, "/translate", ASKED) for _ in range(20)]
        assert {answer.result(SECONDS).json()["translatedText"] for answer in answers} == {PAIRS[TEXT]}
        assert models.translator(models.pairs[0]).options.beam_size == 1
        assert models.refresh() == []


def test_a_model_that_is_damaged_under_load_goes_on(bundle: Path, tmp_path: Path) -> None:
    path, intact = tmp_path / "model.safetensors", bundle.read_bytes()
    shutil.copy(bundle, path)
    with running(path) as client, ThreadPoolExecutor(8) as threads:
        assert client.post("/translate", ASKED).status_code == 200
        answers = []
        for damaged in (intact[: len(intact) // 2], intact[:-100] + bytes(100), b""):
            answers += [threads.submit(client.post, "/translate", ASKED) for _ in range(10)]
            path.write_bytes(damaged)
            assert client.service.models.refresh() == []
        assert {answer.result(SECONDS).json()["translatedText"] for answer in answers} == {PAIRS[TEXT]}
        explained = {"text": TEXT, "target": "de"}
        assert client.post("/v1/explain", explained).status_code == 503  # which reads the file
        write_greedy(bundle, path)
        assert client.service.models.refresh() == [path]
        assert [client.post(*asked).status_code for asked in (("/v1/explain", explained), ("/translate", ASKED))] == [
            200,
            200,
        ]


@pytest.mark.parametrize("damage", [b"", b"not a model", None])
def test_a_damaged_model_is_not_taken(
    bundle: Path, tmp_path: Path, damage: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "model.safetensors"
    shutil.copy(bundle, path)
    models = Models([path], device="cpu")
    models.load_first()
    pair = models.pairs[0]
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    assert models.refresh() == []
    assert models.refresh() == []
    assert caplog.text.count("the new one cannot be used") == 1
    assert models.translator(pair, Requirements((("n_best", 2),))).translate([TEXT])[0][0].text == PAIRS[TEXT]
    write_greedy(bundle, path)
    assert models.refresh() == [path]


def test_models_are_loaded_on_demand_within_a_limit(bundle: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.safetensors"
    write_greedy(bundle, other, ("fr", "de"))
    models = Models([bundle, other], device="cpu", max_bytes=int(1.5 * bundle.stat().st_size))
    assert [str(pair) for pair in models.pairs] == ["en-de", "fr-de"]
    models.load_first()
    one = models.loaded_bytes
    assert one > 0
    first = models.translator(LanguagePair("en", "de"))
    second = models.translator(LanguagePair("fr", "de"))
    assert models.loaded_bytes == pytest.approx(one, rel=0.01)
    assert first.translate([TEXT])[0][0].text == second.translate([TEXT])[0][0].text  # both are still usable
    assert models.ready(LanguagePair("en", "de")) is None
    with pytest.raises(UserError, match="more than --max-memory allows"):
        Models([bundle], device="cpu", max_bytes=1_000)


def test_a_model_without_a_direction_of_its_own_is_reported(
    bundle: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = tmp_path / "other.safetensors"
    write_greedy(bundle, other)
    models = Models([bundle, other, bundle], device="cpu")
    assert caplog.messages == [f"{path} is not used: models before it have its directions" for path in (other, bundle)]
    assert len(list(models.describe())) == len(list(Models([bundle], device="cpu").describe()))


def test_models_compute_in_another_precision(bundle: Path) -> None:
    models = Models([bundle], device="cpu", precision="int8")
    sampled = Requirements(options=(("beam_size", 1), ("sample", True)))
    for wanted, precision in ((Requirements(), "int8"), (sampled, "fp32")):  # torch, which samples, has no int8
        translator = models.translator(models.pairs[0], wanted)
        assert translator.options.precision == precision
        assert translator.translate([TEXT])[0][0].text


def test_torch_is_refused_in_int8_before_the_first_request(bundle: Path) -> None:
    with pytest.raises(UserError, match="int8 needs CTranslate2"):
        Models([bundle], engine="torch", precision="int8")


def test_languages_may_be_written_in_any_way(bundle: Path) -> None:
    models = Models([bundle], device="cpu")
    for src, tgt in (("en", "de"), ("EN-GB", "DE"), ("eng", "deu"), ("eng_Latn", "de-AT")):
        assert models.direction(src, tgt) == ("en", "de")
    for src, tgt in (("de", "en"), ("en", "fr"), ("", ""), ("../..", "de")):
        assert models.direction(src, tgt) is None


@pytest.fixture
def path(bundle: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(bundle, tmp_path / "model.safetensors"))


def while_loading(monkeypatch: pytest.MonkeyPatch, name: str, *actions: Callable[[], object]) -> None:
    """Do something each time that a function of the module has returned, as another thread might."""
    function, left = getattr(module, name), list(actions)

    def wrapped(*args: Any, **given: Any) -> Any:
        result = function(*args, **given)
        if left:
            left.pop(0)()
        return result

    monkeypatch.setattr(module, name, wrapped)


def test_a_model_that_is_unloaded_while_a_request_takes_it(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_greedy(bundle, tmp_path / "other.safetensors", FR_DE)
    models = Models([bundle, tmp_path / "other.safetensors"], device="cpu", max_bytes=int(1.5 * bundle.stat().st_size))
    while_loading(monkeypatch, "_make_translator", lambda: models.translator(FR_DE))
    assert models.translator(EN_DE).translate([TEXT])[0][0].text == PAIRS[TEXT]
    assert models.ready(EN_DE) is None  # the other one has taken its memory
    assert models.ready(FR_DE) is not None
    assert models.translator(EN_DE) is models.ready(EN_DE)


def test_a_model_that_is_replaced_while_it_is_loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models([path], device="cpu")

    def replace_it() -> None:
        write_greedy(path, path)
        assert models.refresh() == [path]

    while_loading(monkeypatch, "load_model", replace_it)
    translator = models.translator(EN_DE)
    assert translator.options.beam_size == 1
    assert models.ready(EN_DE) is translator
    assert models.loaded_bytes == path.stat().st_size  # of one model
    assert models.refresh() == []


def test_a_model_that_is_replaced_while_the_server_starts(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models([path], device="cpu")
    while_loading(monkeypatch, "load_model", lambda: write_greedy(path, path))
    models.load_first()
    assert models.translator(EN_DE).options.beam_size == 1
    assert models.loaded_bytes == path.stat().st_size  # of one model
    assert models.refresh() == []


def test_a_model_that_is_replaced_while_a_request_takes_it_is_not_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    models = Models([path], device="cpu")

    def replace_it() -> None:
        write_greedy(path, path)
        models.refresh()

    while_loading(monkeypatch, "_make_translator", replace_it)
    assert models.translator(EN_DE).options.beam_size > 1
    assert models.ready(EN_DE) is None
    assert models.translator(EN_DE).options.beam_size == 1


def test_a_model_whose_file_has_changed_before_it_is_loaded(path: Path) -> None:
    models = Models([path], device="cpu")
    write_greedy(path, path)
    assert models.translator(EN_DE).options.beam_size == 1
    write_greedy(path, path, FR_DE)
    for load in (models.bundle, lambda pair: models.translator(pair, Requirements((("sample", True),)))):
        with pytest.raises(ServiceError, match="from en to de has just been replaced; try again"):
            load(EN_DE)
    assert models.pairs == [FR_DE]
    assert models.bundle(FR_DE).header.src_lang == "fr"


def test_a_model_that_goes_on_changing_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = Models([path], device="cpu")
    while_loading(monkeypatch, "load_model", *3 * [lambda: write_greedy(path, path)])
    with pytest.raises(ServiceError, match="has just been replaced; try again"):
        models.translator(EN_DE)
    assert models.translator(EN_DE).options.beam_size == 1


def test_torch_needs_more_memory(bundle: Path) -> None:
    size = bundle.stat().st_size
    with pytest.raises(UserError, match="more than --max-memory allows"):
        Models([bundle], engine="torch", device="cpu", max_bytes=int(1.5 * size))
    models = Models([bundle], engine="torch", device="cpu", max_bytes=int(2.5 * size))
    models.load_first()
    assert models.loaded_bytes == 2 * size
