"""The server, asked by the official clients of the interfaces that it speaks, and by our own."""

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import deepl
import pytest
import requests
from conftest import Project
from libretranslatepy import LibreTranslateAPI
from servers import PAIRS, Client, until

from mtformer import Translator
from mtformer.serve import deepl as deepl_routes
from mtformer.serve import libretranslate, own, page
from mtformer.serve.protection import Protected

ROOT = Path(__file__).parent.parent
SOURCES = list(PAIRS)


@pytest.fixture(scope="module")
def translator(trained: Project) -> Translator:
    return Translator.load(trained.folder / "runs/config", engine="ctranslate2")


@pytest.fixture
def deepl_client(server: Client) -> Iterator[deepl.DeepLClient]:
    client = deepl.DeepLClient("any key", server_url=server.url)
    yield client
    client.close()  # type: ignore[no-untyped-call]


def test_all_clients_at_once_get_what_the_translator_says(server: Client, translator: Translator) -> None:
    expected = [best.text for best, *_ in translator.translate(SOURCES)]
    api = LibreTranslateAPI(server.url)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(lambda text: api.translate(text, "en", "de"), SOURCES)) == expected
    assert server.post("/translate", {"q": SOURCES, "source": "en", "target": "de"}).json() == {
        "translatedText": expected
    }


def test_libretranslate_client(server: Client) -> None:
    api = LibreTranslateAPI(server.url)
    assert api.translate(SOURCES[0], "en", "de") == PAIRS[SOURCES[0]]
    assert api.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": []},
    ]
    [first, *_] = api.detect("Das Haus ist schon sehr alt, und niemand wohnt darin.")
    assert first["language"] == "de"
    assert 50 < first["confidence"] <= 100


def test_libretranslate_detects_languages_and_offers_alternatives(server: Client) -> None:
    german = "Das ist schon Deutsch, und so bleibt es auch."
    asked = {"q": [SOURCES[0], german], "source": "auto", "target": "de", "alternatives": 2}
    answer = server.post("/translate", asked).json()
    assert answer["translatedText"] == [PAIRS[SOURCES[0]], german]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "de"]
    assert [len(each) for each in answer["alternatives"]] == [2, 0]
    single = server.post("/translate", asked | {"q": SOURCES[0]}).json()
    assert single == {name: value[0] for name, value in answer.items()}


def test_libretranslate_html(server: Client) -> None:
    html = '<p>the red house sees <span translate="no">the red house</span>.</p>'
    answer = server.post("/translate", {"q": html, "source": "en", "target": "de", "format": "html"}).json()
    assert answer["translatedText"].startswith("<p>")
    assert '<span translate="no">the red house</span>' in answer["translatedText"]
    assert "das rote Haus" in answer["translatedText"]


def test_libretranslate_settings_and_health(server: Client) -> None:
    settings = server.get("/frontend/settings").json()
    assert settings["keyRequired"] is False
    assert settings["language"]["source"] == {"code": "en", "name": "English"}
    assert server.get("/health").json() == {"status": "ok"}
    assert server.get("/ready").json() == {"ready": True}


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "", "source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": [], "source": "en", "target": "de"}, "Invalid request: missing q parameter"),
        ({"q": "a", "target": "de"}, "Invalid request: missing source parameter"),
        ({"q": "a", "source": "en"}, "Invalid request: missing target parameter"),
        ({"q": 5, "source": "en", "target": "de"}, "Invalid request: q is neither a text nor a list of texts"),
        ({"q": "a", "source": "fr", "target": "de"}, "this server does not translate from fr to de"),
        ({"q": "a", "source": "en", "target": "de", "format": "pdf"}, "the format is text or html"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": 99}, "not a whole number from 0 to 10"),
        ({"q": "a", "source": "en", "target": "de", "alternatives": "1" * 5_000}, "not a whole number from 0 to 10"),
        (["q"], "the body is not a JSON object"),
    ],
)
def test_libretranslate_errors(server: Client, body: object, error: str) -> None:
    answer = server.post("/translate", body)
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert error in answer.json()["error"]


@pytest.mark.parametrize(
    ("path", "texts", "target"),
    [("/translate", "q", "target"), ("/v2/translate", "text", "target_lang"), ("/v1/translate", "text", "target")],
)
def test_the_number_of_texts_is_limited(server: Client, path: str, texts: str, target: str) -> None:
    assert server.post(path, {texts: [""] * 1_001, "source": "auto", target: "de"}).status_code == 413


def test_long_codes_of_languages_are_not_kept(server: Client) -> None:
    answer = server.post("/translate", {"q": "a", "source": "x" * 1_000_000, "target": "de"})
    assert (answer.status_code, len(answer.content) < 1_000) == (400, True)
    assert all(len(code) < 100 for key in server.service.models._directions for code in key)


@pytest.mark.parametrize("place", ["data", "params"])
def test_repeated_fields_of_forms_and_of_query_strings_are_several_texts(server: Client, place: str) -> None:
    asked = {"q": [*SOURCES[:2], ""], "source": "en", "target": "de"}
    answer = server.post("/translate", **{place: asked}).json()
    assert answer == server.post("/translate", asked).json()


def test_a_text_without_its_half_of_a_surrogate_is_translated(server: Client) -> None:
    body = b'{"q": "the red house \\ud83d sees a small dog.", "source": "en", "target": "de"}'
    answer = server.post("/translate", data=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200


def test_deepl_client(server: Client, deepl_client: deepl.DeepLClient) -> None:
    both = deepl_client.translate_text(SOURCES[:2], target_lang="DE", source_lang="EN", context="A story.")
    assert isinstance(both, list)
    first, second = both
    assert [first.text, second.text] == [PAIRS[src] for src in SOURCES[:2]]
    assert (first.detected_source_lang, first.billed_characters) == ("EN", len(SOURCES[0]))
    single = deepl_client.translate_text(SOURCES[0], target_lang="DE")
    assert isinstance(single, deepl.TextResult)
    assert single.text == first.text
    assert [each.code for each in deepl_client.get_source_languages()] == ["EN"]
    [german] = deepl_client.get_target_languages()
    assert (german.code, german.name, german.supports_formality) == ("DE", "German", False)
    usage = deepl_client.get_usage()
    assert usage.character.valid
    assert usage.character.count is not None
    assert usage.character.count >= 2 * len(SOURCES[0])


@pytest.mark.parametrize("ignored", [["x"], ["y, x", "z"]])
def test_deepl_keeps_tags_and_ignores_those_that_it_is_told_to(
    deepl_client: deepl.DeepLClient, ignored: list[str]
) -> None:
    text = 'the red house <x id="1">{count} times</x> likes <b>a small dog</b>.'
    result = deepl_client.translate_text(text, target_lang="DE", tag_handling="xml", ignore_tags=ignored)
    assert isinstance(result, deepl.TextResult)
    assert '<x id="1">{count} times</x>' in result.text
    assert "<b>" in result.text


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"formality": "more"}, "formality: more is not supported"),
        ({"tag_handling": "docx"}, "tag_handling: docx is not supported"),
        ({"glossary": "none", "source_lang": "EN"}, "there is no glossary none"),
        ({"target_lang": "FR"}, "does not translate from"),
    ],
)
def test_deepl_errors(deepl_client: deepl.DeepLClient, options: dict[str, str], error: str) -> None:
    with pytest.raises(deepl.DeepLException, match=error):
        deepl_client.translate_text("the red house", **{"target_lang": "DE", **options})  # type: ignore[arg-type]


def test_deepl_glossaries(deepl_client: deepl.DeepLClient) -> None:
    assert [vars(pair) for pair in deepl_client.get_glossary_languages()] == [
        {"_source_lang": "en", "_target_lang": "de"}
    ]
    made = deepl_client.create_glossary("animals", "EN", "DE", entries={"dog": "Freund"})
    assert (made.name, made.source_lang, made.target_lang, made.entry_count) == ("animals", "EN", "DE", 1)
    assert [each.glossary_id for each in deepl_client.list_glossaries()] == [made.glossary_id]
    assert deepl_client.get_glossary(made.glossary_id).name == "animals"
    assert deepl_client.get_glossary_entries(made) == {"dog": "Freund"}
    text = "the red house sees a small dog."
    result = deepl_client.translate_text(text, source_lang="EN", target_lang="DE", glossary=made)
    assert isinstance(result, deepl.TextResult)
    assert "Freund" in result.text
    deepl_client.delete_glossary(made)
    with pytest.raises(deepl.GlossaryNotFoundException):
        deepl_client.get_glossary(made.glossary_id)


def test_documents_are_translated_for_both_interfaces(
    server: Client, deepl_client: deepl.DeepLClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subtitles = f"1\n00:00:01,000 --> 00:00:02,000\n{SOURCES[0]}\n"
    expected = subtitles.replace(SOURCES[0], PAIRS[SOURCES[0]])
    asked = {"source": "en", "target": "de"}
    answer = server.post("/translate_file", data=asked, files={"file": ("../film.srt", subtitles)}).json()
    assert answer["translatedFileUrl"].endswith(".film.de.srt")
    for _ in range(2):
        file = requests.get(answer["translatedFileUrl"], timeout=60)
        assert file.text == expected
    assert "film.de.srt" in file.headers["content-disposition"]
    (tmp_path / "film.srt").write_text(subtitles)
    quick = SimpleNamespace(time=time.time, sleep=lambda _: time.sleep(0.1))  # instead of five seconds
    monkeypatch.setattr("deepl.translator.time", quick)
    deepl_client.translate_document_from_filepath(
        tmp_path / "film.srt", tmp_path / "film.de.srt", target_lang="DE", source_lang="EN"
    )
    assert (tmp_path / "film.de.srt").read_text() == expected
    assert ".docx" in server.get("/frontend/settings").json()["supportedFilesFormat"]


@pytest.mark.parametrize(
    ("path", "language", "name"), [("/translate_file", "source", "error"), ("/v2/document", "source_lang", "message")]
)
@pytest.mark.parametrize("file", [("a.exe", b"MZ"), ("", b"x"), None, ("a.docx", b"PK no archive")])
def test_documents_that_cannot_be_translated(
    server: Client, path: str, language: str, name: str, file: tuple[str, bytes] | None
) -> None:
    asked = {language: "en", language.replace("source", "target"): "de"}
    answer = server.post(path, data=asked, files={"other": b"x"} if file is None else {"file": file})
    if path == "/v2/document" and file == ("a.docx", b"PK no archive"):  # which is read in the background
        sent = answer.json()
        place, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
        until(lambda: server.post(place, key).json()["status"] == "error")
        assert "a.docx" in server.post(place, key).json()["error_message"]
        answer = server.post(f"{place}/result", key)
    assert (answer.status_code, list(answer.json())) == (400, [name])


@pytest.mark.parametrize(("format", "status"), [("", 200), ("SRT", 200), ("docx", 400), ("rt", 400)])
def test_a_document_keeps_its_format(server: Client, format: str, status: int) -> None:
    asked = {"target_lang": "DE", "output_format": format}
    assert server.post("/v2/document", data=asked, files={"file": ("film.SRT", b"x")}).status_code == status


def test_a_document_that_is_not_there(server: Client) -> None:
    for path in ("/download_file/0.film.srt", "/download_file/%2e%2e", "/v2/document/0", "/v2/document/0/result"):
        assert server.get(f"{path}?document_key=0").status_code == 404


def test_own_interface_says_all_about_a_translation(server: Client, translator: Translator) -> None:
    asked = {"text": SOURCES[:2], "source": "en", "target": "de", "alignments": True, "options": {"n_best": 2}}
    answer = server.post("/v1/translate", asked).json()
    assert (answer["source"], answer["target"]) == ("en", "de")
    [[first, second], _] = answer["translations"]
    assert first["text"] == PAIRS[SOURCES[0]]
    assert first["score"] > second["score"]
    assert 0.5 < first["confidence"] <= 1
    assert first["alignment"]["links"]
    [[expected, *_]] = translator.translate([SOURCES[0]])
    assert first["tokens"] == list(expected.tokens)


def test_own_interface_takes_terms(server: Client) -> None:
    asked = {"text": "the red house sees a small dog.", "target": "de", "glossary": {"dog": "Freund"}}
    [[best]] = server.post("/v1/translate", asked).json()["translations"]
    assert "Freund" in best["text"]
    assert best["terms"] == [{"src": "dog", "tgt": "Freund"}]


def test_own_interface_streams_in_order(server: Client) -> None:
    asked = {"text": SOURCES, "source": "en", "target": "de", "stream": True}
    answer = server.post("/v1/translate", asked, stream=True)
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in answer.iter_lines()]
    assert [line["index"] for line in lines] == list(range(len(SOURCES)))
    assert [line["translations"][0]["text"] for line in lines] == list(PAIRS.values())


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"targett": "de"}, "there is no field targett"),
        ({"options": {"beam_sise": 4}}, "there is no option beam_sise"),
        ({"options": {"batch_tokens": 4}}, "there is no option batch_tokens"),
        ({"options": {"beam_size": 17}}, "beam_size = 17: a request may ask for 16 at most"),
        ({"options": {"beam_size": 99}}, "beam_size = 99: a request may ask for 16 at most"),
        ({"options": {"n_best": "99"}}, "n_best = 99: a request may ask for 16 at most"),
        ({"options": {"mbr": 99.0}}, "mbr = 99.0: a request may ask for 16 at most"),
        ({"options": {"beam_size": "wide"}}, "allowed: a whole number"),
        ({"options": {"beam_size": 0}}, "beam_size = 0"),
        ({"options": {"top_k": 4}}, "needs sample"),
        ({"glossary": {"dog": ""}}, "the translation of 'dog' is empty"),
        ({"glossary": 5}, "neither an id nor an object"),
        ({"stream": "yes"}, "true or false"),
    ],
)
def test_own_errors(server: Client, changes: dict[str, object], error: str) -> None:
    answer = server.post("/v1/translate", {"text": "a dog", "source": "en", "target": "de"} | changes)
    assert answer.status_code == 400
    assert error in answer.json()["error"]


def test_own_interface_explains(server: Client) -> None:
    asked = {"text": "the red house sees a small dog.", "target": "de", "why_not": ["Auto"]}
    answer = server.post("/v1/explain", asked).json()
    [trace] = answer["traces"]
    assert trace["target"]["text"].startswith("das rote Haus")


def test_own_interface_samples(server: Client) -> None:
    asked = {"text": SOURCES[0], "target": "de", "options": {"sample": True, "seed": 3, "n_best": 4}}
    [samples] = server.post("/v1/translate", asked).json()["translations"]
    assert 1 <= len(samples) <= 4


def test_the_description_has_all_routes_and_refers_to_what_there_is(server: Client) -> None:
    description = server.get("/openapi.json").json()
    described = {
        (path, method.upper())
        for path, methods in description["paths"].items()
        for method in methods
        if len(method) < 7
    }
    routes = {
        (route.path, method)
        for route in (*libretranslate.ROUTES, *deepl_routes.ROUTES, *own.ROUTES, *page.ROUTES)
        for method in (route.methods or ())
        if method != "HEAD"
    }
    assert described == routes
    references = re.findall(r'"\$ref": "#/components/(\w+)/(\w+)"', json.dumps(description))
    assert references
    assert [name for kind, name in references if name not in description["components"][kind]] == []


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("GET", "/translate", 405)])
def test_what_there_is_not(server: Client, method: str, path: str, status: int) -> None:
    answer = requests.request(method, server.url + path, timeout=60)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


EXAMPLES = re.findall(r"^    (curl .*\n(?:      .*\n)*)", (ROOT / "docs/serve.md").read_text("utf-8"), re.MULTILINE)


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is missing")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split()[1].removeprefix("http://"))
def test_examples_of_the_documentation(server: Client, example: str) -> None:
    words = shlex.split(example.replace("\\\n", " ").replace("http://127.0.0.1:8000", server.url))
    done = subprocess.run([*words, "--silent", "--fail-with-body"], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout
    assert all(json.loads(line) for line in done.stdout.splitlines())


@pytest.mark.parametrize(
    ("text", "tags", "without"),
    [
        ('a <x id="1">b <b>c</b></x> d <x/> e', ["x"], "a <code>0</code> d <x/> e"),
        ('a <span translate="no">b</span> <i class="big notranslate">c</i>', [], "a <code>0</code> <code>1</code>"),
        ("<xy>not ours</xy>", ["x"], "<xy>not ours</xy>"),
        ("<code>0</code> <x>b</x>", ["x"], "<code>0</code> <code>1</code>"),
        ('<i translate="no">a <i>b</i> SECRET</i> c', [], "<code>0</code> c"),
        ('<X>a <b class="notranslate">c</b></x> <x>open', ["x"], "<code>0</code> <x>open"),
        ('<b translate="no">a</i>', [], '<b translate="no">a</i>'),
        ("a < b > c", [], "a < b > c"),
    ],
)
def test_elements_are_taken_out_and_put_back(text: str, tags: list[str], without: str) -> None:
    protected = Protected(text, tags)
    assert protected.text == without
    assert protected.restore(protected.text) == text


@pytest.mark.slow
@pytest.mark.parametrize("part", ["<", "<a", "a", "<a translate=no>", "<x>", "</x>", " class='", "<code>1</code>", '"'])
def test_the_time_to_take_out_elements_grows_with_the_length_of_a_text(part: str) -> None:
    """Even texts that are made to take long: with a time that grows with the square, one would take minutes."""
    for text in (part * 30_000, "<" + part * 30_000, "<a" + part * 30_000 + ">"):
        assert Protected(text, ["x"]).restore(text) == text


def test_a_request_cannot_name_a_file(server: Client) -> None:
    """Whatever a request names, it is looked up among languages and glossaries, never among files."""
    for path in ("/v2/glossaries/..%2f..%2fetc%2fpasswd", "/..%2f..%2fetc/passwd", "//etc/passwd"):
        assert server.get(path).status_code == 404
