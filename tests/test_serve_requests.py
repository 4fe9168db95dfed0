"""Requests to the server: they are admitted before anything is computed, in time, and charged for what they get."""

import asyncio
import io
import json
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import current_thread
from typing import Any
from urllib.parse import parse_qs

import docx
import pytest
import requests
from servers import PAIRS, SECONDS, TEXT, Client, held, running, until

from mtformer.data.clean.language import Identifier
from mtformer.serve import store
from mtformer.serve.admission import RequestLimits
from mtformer.serve.keys import add_key
from mtformer.serve.scheduler import Job
from mtformer.text.glossary import Glossary

ASKED = {"text": TEXT, "source": "en", "target": "de"}
GERMAN = "Das ist schon Deutsch, und so bleibt es auch."


@pytest.fixture(scope="module")
def server(bundle: Path) -> Iterator[Client]:
    with running(bundle, settings=RequestLimits(max_characters=1_000)) as client:
        yield client


@pytest.fixture
def detected(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, str]]:
    """How many texts were identified at a time, and in which thread."""
    calls: list[tuple[int, str]] = []
    scores: Callable[..., Any] = Identifier.scores

    def spy(self: Identifier, texts: Sequence[str]) -> Any:
        calls.append((len(texts), current_thread().name))
        return scores(self, texts)

    monkeypatch.setattr(Identifier, "scores", spy)
    return calls


def limited(path: Path, **limits: int) -> dict[str, str]:
    """Write a file of keys with one that has limits, and return the header that has it."""
    key = add_key(path, "ada")
    stored = json.loads(path.read_text(encoding="utf-8"))
    stored["ada"] |= limits
    path.write_text(json.dumps(stored), encoding="utf-8")
    return {"Authorization": f"Bearer {key}"}


def used(client: Client, headers: dict[str, str]) -> int:
    return int(client.get("/v2/usage", headers=headers).json()["character_count"])


# Languages


def asked(path: str, texts: Sequence[str], source: str | None = None) -> dict[str, Any]:
    """Return what a request to one of the interfaces says."""
    names = {"/translate": ("q", "source", "target"), "/v2/translate": ("text", "source_lang", "target_lang")}
    text, src, tgt = names.get(path, ("text", "source", "target"))
    return {text: texts, tgt: "de"} | ({src: source or "auto"} if source or path == "/translate" else {})


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/v1/translate"])
def test_languages_are_detected_at_once_in_another_thread_and_after_admission(
    server: Client, detected: list[tuple[int, str]], path: str
) -> None:
    assert server.post(path, asked(path, ["a" * 2_000])).status_code == 413
    assert detected == []
    assert server.post(path, asked(path, [TEXT, GERMAN, TEXT])).status_code == 200
    [(n_texts, thread)] = detected
    assert n_texts == (1 if path == "/v1/translate" else 3)
    assert "(run)" not in thread  # that of the event loop


def test_texts_in_several_languages_are_one_request(server: Client) -> None:
    answer = server.post("/v2/translate", asked("/v2/translate", [GERMAN, "  ", TEXT])).json()["translations"]
    assert [each["text"] for each in answer] == [GERMAN, "  ", PAIRS[TEXT]]
    assert [each["detected_source_language"] for each in answer[::2]] == ["DE", "EN"]
    too_long = server.post("/v2/translate", asked("/v2/translate", [GERMAN * 12, (TEXT + " ") * 20]))
    assert too_long.status_code == 413  # though neither language has so many


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/v1/translate"])
def test_blank_texts_need_no_model(server: Client, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setattr(server.service.scheduler, "submit", lambda job: 1 / 0)
    answer = server.post(path, asked(path, [" ", "\n"], "en"))
    assert answer.status_code == 200
    assert server.post(path, asked(path, [" "], "fr")).status_code == 400


@pytest.mark.parametrize(("source", "target"), [("xx", "xx"), ("fr", "fr"), ("", "de"), ("x" * 100, "x" * 100)])
def test_texts_in_the_target_language_are_copied_if_a_model_knows_it(server: Client, source: str, target: str) -> None:
    given = {"q": GERMAN, "target": target, "source": source}
    assert server.post("/translate", given).status_code == 400
    assert server.post("/translate", given | {"source": "de-AT", "target": "DE"}).json() == {"translatedText": GERMAN}


FRENCH = "Bonjour, comment allez-vous aujourd'hui?"


@pytest.mark.parametrize("path", ["/translate", "/v2/translate", "/v1/translate"])
@pytest.mark.parametrize(
    ("text", "language", "code"),
    [
        (FRENCH, "French", "fr"),
        ("Cześć, jak się masz?", "Polish", "pl"),
        ("Привет, как дела?", "Russian", "ru"),
        ("今天天气很好", "Chinese", "zh"),
    ],
)
def test_a_text_in_a_language_that_no_model_reads_is_refused(
    server: Client, path: str, text: str, language: str, code: str
) -> None:
    answer = server.post(path, asked(path, [text, " "]))
    assert answer.status_code == 400
    [message] = answer.json().values()
    reason = f"{code} is not supported: the text seems to be in {language}, and this server translates en-de"
    assert message.startswith(f"{reason}; if it is in another language, name that as its source")
    assert server.post(path, asked(path, [text], "en")).status_code == 200


def test_among_others_a_text_that_no_model_reads_is_copied(server: Client) -> None:
    texts = [TEXT, FRENCH, GERMAN]
    answer = server.post("/translate", asked("/translate", texts)).json()
    assert answer["translatedText"] == [PAIRS[TEXT], FRENCH, GERMAN]
    assert [each["language"] for each in answer["detectedLanguage"]] == ["en", "fr", "de"]
    assert min(each["confidence"] for each in answer["detectedLanguage"]) > 70


@pytest.mark.parametrize("text", ["Salut", "Haus", "A dog.", "12", "Tom", "Hola mundo", "x = xkcd + qqxz * zzyx"])
def test_a_language_is_not_refused_by_a_word_or_two(server: Client, text: str) -> None:
    answer = server.post("/v1/translate", asked("/v1/translate", [text]))
    assert (answer.status_code, answer.json()["source"] in ("en", "de")) == (200, True)


def test_a_short_text_in_letters_of_no_model_is_not_taken_for_the_target_language(server: Client) -> None:
    [[best]] = server.post("/v1/translate", asked("/v1/translate", ["你好，世界"])).json()["translations"]
    assert best["text"] == "你好，世界"
    assert best["notes"] == ["check: not translated: the model knows none of its letters"]


def test_a_copy_of_a_text_that_may_be_in_another_language_is_noted(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.serve.service._DOUBTFUL", 1.1)
    [[best]] = server.post("/v1/translate", asked("/v1/translate", [GERMAN])).json()["translations"]
    assert (best["text"], best["notes"]) == (GERMAN, ["check: not translated: source may not be in de"])


def test_a_blank_text_beside_a_doubtful_one_has_no_note(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.serve.service._DOUBTFUL", 1.1)
    [[blank], _] = server.post("/v1/translate", asked("/v1/translate", [" ", GERMAN])).json()["translations"]
    assert (blank["text"], blank["notes"]) == (" ", [])


def test_a_text_that_no_model_translates_to_the_target_is_refused_and_not_copied(server: Client) -> None:
    given = {"q": GERMAN, "target": "en", "source": "auto"}
    answer = server.post("/translate", given)
    assert answer.status_code == 400
    assert answer.json()["error"].startswith("this server does not translate from de to en")
    foreign = server.post("/translate", given | {"q": FRENCH})
    assert (foreign.status_code, foreign.json()["error"][:19]) == (400, "fr is not supported")
    assert server.post("/translate", given | {"q": TEXT}).json()["translatedText"] == TEXT


def test_all_languages_are_detected(server: Client) -> None:
    [french] = server.post("/detect", {"q": FRENCH}).json()
    assert french["language"] == "fr"
    assert french["confidence"] > 99
    [english, *_] = server.post("/detect", {"q": TEXT}).json()
    assert english["language"] == "en"
    [unclear] = server.post("/detect", {"q": "Salut"}).json()
    assert unclear["language"] in ("en", "de")
    assert unclear["confidence"] < 1


def test_translations_of_text_in_another_language_are_noted(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.translate.guard._CONFIDENT", 1.0)  # this small model is always sure
    note, texts = "check: source not in en", [FRENCH, TEXT]
    given = {"text": texts, "source": "EN-GB", "target": "de"}
    answer = server.post("/v1/translate", given).json()["translations"]
    lines = map(json.loads, server.post("/v1/translate", {**given, "stream": True}).text.splitlines())
    for translations in (answer, [line["translations"] for line in lines]):
        assert [note in best["notes"] for best, *_ in translations] == [True, False]
    for text, is_noted in zip(texts, (True, False), strict=True):
        shown = server.post("/page/translate", {"text": text, "source": "en", "target": "de"}).json()
        assert (note in shown["notes"], note in shown["segments"][0]["notes"]) == (is_noted, is_noted)


def packed(text: str) -> bytes:
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph(text)
    document.save(file)
    return file.getvalue()


def test_the_language_of_a_document_is_that_of_its_text(server: Client) -> None:
    """A German document is in the target language already; its bytes, which are packed, look like English."""
    for text, expected in ((GERMAN, GERMAN), (TEXT, PAIRS[TEXT])):
        files = {"file": ("a.docx", packed(text))}
        file = server.post("/translate_file", data={"source": "auto", "target": "de"}, files=files).json()
        sent = server.post("/v2/document", data={"target_lang": "DE"}, files=files).json()
        path, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
        until(lambda path=path, key=key: server.post(path, key).json()["status"] == "done")  # type: ignore[misc]
        for answer in (server.get(file["translatedFileUrl"][len(server.url) :]), server.post(f"{path}/result", key)):
            [paragraph] = docx.Document(io.BytesIO(answer.content)).paragraphs
            assert paragraph.text == expected


def test_not_too_many_documents_are_translated_at_a_time(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.serve.results._MOST_PENDING", 1)
    given, files = {"target_lang": "DE"}, {"file": ("a.txt", TEXT)}
    with held(server) as gate:
        assert server.post("/v2/document", data=given, files=files).status_code == 200
        assert gate.reached.wait(SECONDS)
        refused = server.post("/v2/document", data=given, files=files)
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")


def test_a_document_beyond_the_limits_of_a_key_is_refused_at_once(bundle: Path, tmp_path: Path) -> None:
    """Clients send it again later; a document that is accepted and fails they do not."""
    ada = limited(tmp_path / "keys.json", concurrent=1, characters_per_month=len(TEXT))
    given: dict[str, Any] = {"data": {"target_lang": "DE"}, "files": {"file": ("a.txt", TEXT)}, "headers": ada}
    with running(bundle, keys=tmp_path / "keys.json") as client:
        with held(client) as gate:
            sent = client.post("/v2/document", **given).json()
            assert gate.reached.wait(SECONDS)
            refused = client.post("/v2/document", **given)
            assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        path, key = f"/v2/document/{sent['document_id']}", {"document_key": sent["document_key"]}
        until(lambda: client.post(path, key, headers=ada).json()["status"] == "done")
        assert client.post("/v2/document", **given).status_code == 456


def test_a_document_that_another_request_fetches_meanwhile_is_gone(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = server.post("/translate_file", data={"source": "en", "target": "de"}, files={"file": ("a.txt", TEXT)})
    path = answer.json()["translatedFileUrl"][len(server.url) :]
    assert server.get(path).text == PAIRS[TEXT]
    monkeypatch.setattr(server.service.results, "content", lambda id: None)
    assert server.get(path).status_code == 404


def test_forms_stay_in_memory_and_ids_of_documents_out_of_the_log(
    server: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tempfile.SpooledTemporaryFile.rollover", lambda file: 1 / 0)
    given = {"source": "en", "target": "de"}
    assert server.post("/translate_file", data=given, files={"file": ("a.exe", bytes(2**21))}).status_code == 400
    answer = server.post("/translate_file", data=given, files={"file": ("a.txt", TEXT)})
    assert answer.status_code == 200
    monkeypatch.setattr(server.service.results, "find", lambda id: 1 / 0)
    with caplog.at_level(logging.DEBUG, "mtformer"):
        path = answer.json()["translatedFileUrl"][len(server.url) :]
        assert server.get(path).status_code == 500
        assert path.split("/")[-1].split(".")[0] not in "".join(map(str, (vars(each) for each in caplog.records)))


def test_encodings_of_forms_that_are_none_of_texts(server: Client) -> None:
    form = '--x\r\nContent-Disposition: form-data; name="{}"{}\r\n\r\n{}\r\n'
    fields = form.format("source", "", "en") + form.format("target", "", "de")
    fields += form.format("api_key", "", r"\ud800") + form.format("file", r'; filename="\ud800.txt"', TEXT)
    for encoding, status in [("undefined", 400), ("punycode", 400), ("unicode_escape", 200)]:
        headers = {"Content-Type": f"multipart/form-data; boundary=x; charset={encoding}"}
        assert server.post("/translate_file", data=f"{fields}--x--", headers=headers).status_code == status


@pytest.mark.parametrize("kind", ["json", "x-www-form-urlencoded"])
def test_large_bodies_are_read_in_another_thread(server: Client, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    threads, read = list[str](), json.loads if kind == "json" else parse_qs

    def spy(*given: Any, **settings: Any) -> Any:
        threads.append(current_thread().name)
        return read(*given, **settings)

    monkeypatch.setattr("mtformer.serve.http.parse_qs", spy)
    monkeypatch.setattr("mtformer.serve.http.json.loads", spy)
    body = json.dumps({"q": "a" * 70_000}) if kind == "json" else "q=" + "%41" * 70_000
    assert server.post("/translate", data=body, headers={"Content-Type": f"application/{kind}"}).status_code == 400
    [thread] = threads
    assert "(run)" not in thread


def test_json_of_too_many_parts_is_refused_unread(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtformer.serve.http.json.loads", lambda body: 1 / 0)
    for part in ("[]", "{}"):
        body = '{"q": [' + ",".join([part] * 300_000) + "]}"
        assert server.post("/translate", data=body, headers={"Content-Type": "application/json"}).status_code == 413


# Markup


def translated(server: Client, text: str, **given: str) -> str:
    answer = server.post("/v2/translate", {"text": [text], "source_lang": "en", "target_lang": "de", **given})
    [translation] = answer.json()["translations"]
    return str(translation["text"])


def test_lines_are_joined_where_a_request_or_html_says_so(server: Client) -> None:
    text = "the red house sees\na small dog."
    assert "\n" not in translated(server, text, tag_handling="html")
    assert "\n" not in translated(server, text, split_sentences="nonewlines")
    assert "\n" in translated(server, text, tag_handling="html", split_sentences="1")
    assert "\n" in translated(server, text, tag_handling="xml")
    kept = '<i translate="no">one\ntwo</i>'
    assert kept in translated(server, f"the red house sees {kept}.", tag_handling="html")


def test_lines_of_html_are_joined_in_sentences_and_stay_elsewhere(server: Client) -> None:
    html = "<script>// x\nlet a = 1;</script>\n<pre>a dog\n  a cat</pre>\n\n<ul>\n  <li>{}</li>\n</ul>\n"
    source = html.format("the red house sees\n  a <b>small dog</b>.")
    given = {"q": source, "source": "en", "target": "de", "format": "html"}
    answers = [
        translated(server, source, tag_handling="html"),
        server.post("/translate", given).json()["translatedText"],
    ]
    sentence = translated(server, "the red house sees a <b>small dog</b>.")
    assert answers == [html.format(sentence)] * 2


def test_elements_are_sought_only_if_a_request_says_so_and_after_admission(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtformer.serve.protection.Protected", lambda *given: 1 / 0)
    assert translated(server, TEXT) == PAIRS[TEXT]
    given = {"text": ["<" * 2_000], "target_lang": "de", "tag_handling": "html"}
    assert server.post("/v2/translate", given).status_code == 413


# Glossaries


def stored(server: Client, entries: str, **given: str) -> requests.Response:
    terms = {"name": "n", "source_lang": "en", "target_lang": "de", "entries": entries, **given}
    return server.post("/v2/glossaries", terms)


def test_glossaries_are_small_enough_to_be_read_and_used_in_no_time(
    server: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = {f"word{i}": "Wort" for i in range(10_001)}
    for terms in (many, {"a" * 201: "b"}, {"b": "a" * 201}):
        assert server.post("/v1/translate", ASKED | {"glossary": terms}).status_code == 413
        assert stored(server, "\n".join(map("\t".join, terms.items()))).status_code == 413
    threads: list[str] = []
    init = Glossary.__init__

    def spy(glossary: Glossary, terms: Any) -> None:
        threads.append(current_thread().name)
        init(glossary, terms)

    monkeypatch.setattr(Glossary, "__init__", spy)
    made = stored(server, "dog\tHund").json()
    for glossary in ({"dog": "Hund"}, made["glossary_id"]):
        assert server.post("/v1/translate", ASKED | {"glossary": glossary}).status_code == 200
    assert len(threads) >= 3
    assert "(run)" not in "".join(threads)
    monkeypatch.setattr(store, "_MOST_GLOSSARIES", 1)
    assert "there are 1 glossaries already" in stored(server, "dog\tHund").json()["message"]
    [listed] = server.get("/v2/glossaries").json()["glossaries"]
    assert listed == made


@pytest.mark.parametrize("entries", ['"' + "a" * 200_000, "dog", "", " \n,"])
def test_entries_that_cannot_be_read(server: Client, entries: str) -> None:
    assert stored(server, entries or " ", entries_format="csv").status_code == 400


def test_what_is_no_unicode_is_replaced_in_glossaries_and_questions_too(server: Client) -> None:
    assert server.post("/v1/translate", ASKED | {"glossary": {"dog\ud800": "Hund\ud800"}}).status_code == 200
    assert server.post("/v1/explain", ASKED | {"prefix": "ein\ud800", "why_not": ["Hund\ud800"]}).status_code == 200
    made = stored(server, "dog\ud800\tHund\ud800").json()
    path = f"/v2/glossaries/{made['glossary_id']}"
    assert server.get(f"{path}/entries").text == "dog\ufffd\tHund\ufffd\n"
    assert requests.delete(server.url + path, timeout=SECONDS).status_code == 204


def test_quoted_entries_may_go_on_in_the_next_line(server: Client) -> None:
    made = stored(server, '"red\nhouse",Haus\r\ndog,"Hund, ""Dackel"""', entries_format="csv").json()
    path = f"/v2/glossaries/{made['glossary_id']}"
    assert server.get(f"{path}/entries").text == 'red house\tHaus\ndog\tHund, "Dackel"\n'
    assert requests.delete(server.url + path, timeout=SECONDS).status_code == 204


# Options


@pytest.mark.parametrize("options", [{"beam_size": "2"}, {"n_best": 2.0}, {"top_p": "1"}])
def test_options_may_be_numbers_in_other_types(server: Client, options: dict[str, object]) -> None:
    assert server.post("/v1/translate", ASKED | {"options": options}).status_code == 200


def test_what_the_models_cannot_do_is_an_error_of_the_request(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastchrf", None)
    answer = server.post("/v1/translate", ASKED | {"options": {"mbr": 4, "sample": True}})
    assert (answer.status_code, "mbr" in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize("value", ["\ud800", "x" * 100_000])
@pytest.mark.parametrize("name", ["source", "target", "glossary"])
def test_errors_have_no_more_of_a_request_than_can_be_read(server: Client, name: str, value: str) -> None:
    answer = server.post("/v1/translate", ASKED | {name: value})
    assert (answer.status_code, len(answer.content) < 2_000) == (404 if name == "glossary" else 400, True)


def test_a_prefix_that_the_model_does_not_end_can_be_explained(server: Client) -> None:
    asked = {"text": "a dog", "source": "en", "target": "de", "prefix": "en", "why_not": ["Auto"]}
    assert server.post("/v1/explain", asked).status_code == 200


# Streams


def test_what_is_refused_has_its_status_in_streams_too(bundle: Path, tmp_path: Path) -> None:
    ada = limited(tmp_path / "keys.json", concurrent=1, characters_per_month=3 * len(TEXT))
    stream = ASKED | {"stream": True}
    with running(bundle, keys=tmp_path / "keys.json", settings=RequestLimits(max_characters=100)) as client:
        assert client.post("/v1/translate", stream | {"text": "a" * 101}, headers=ada).status_code == 413
        with held(client) as gate, ThreadPoolExecutor(1) as thread:
            first = thread.submit(client.post, "/v1/translate", stream, headers=ada)
            assert gate.reached.wait(SECONDS)
            assert client.post("/v1/translate", stream, headers=ada).status_code == 429
            gate.opened.set()
            assert first.result(SECONDS).status_code == 200
        statuses = [client.post("/v1/translate", stream, headers=ada).status_code for _ in range(3)]
        assert statuses == [200, 200, 456]


def test_a_stream_has_one_deadline(server: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    deadlines: list[float | None] = []
    timeout_at = asyncio.timeout_at

    def spy(when: float | None) -> asyncio.Timeout:
        deadlines.append(when)
        return timeout_at(when)

    monkeypatch.setattr(asyncio, "timeout_at", spy)
    answer = server.post("/v1/translate", ASKED | {"text": list(PAIRS), "stream": True})
    assert len(answer.text.splitlines()) == len(PAIRS)
    assert len(deadlines) > 1
    assert len(set(deadlines)) == 1


def test_a_stream_is_charged_for_what_was_translated(
    bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = limited(tmp_path / "keys.json", characters_per_month=10_000)
    texts = list(PAIRS)[:3]
    asked = ASKED | {"text": texts, "stream": True}
    with running(bundle, keys=tmp_path / "keys.json") as client:
        with held(client), client.post("/v1/translate", asked, headers=ada, stream=True) as answer:
            assert answer.status_code == 200
            assert used(client, ada) == sum(map(len, texts))  # in advance
            answer.close()  # before anything is translated
            until(lambda: used(client, ada) == 0)
        with client.post("/v1/translate", asked, headers=ada, stream=True) as answer:
            lines = answer.iter_lines()
            assert [json.loads(next(lines))["index"] for _ in texts] == [0, 1, 2]
        assert used(client, ada) == sum(map(len, texts))
        make_plan = Job.make_plan
        monkeypatch.setattr(Job, "make_plan", lambda job, index: make_plan(job, index) if index else 1 / 0)
        answer = client.post("/v1/translate", asked, headers=ada)
        assert ["error" in json.loads(line) for line in answer.text.splitlines()] == [True, False, False]
        assert used(client, ada) == sum(map(len, texts)) + sum(map(len, texts[1:]))


def test_streams_cost_as_much_as_other_requests(bundle: Path, tmp_path: Path) -> None:
    ada = limited(tmp_path / "keys.json", characters_per_month=10_000)
    asked = ASKED | {"text": [TEXT, " \t ", ""]}
    with running(bundle, keys=tmp_path / "keys.json") as client:
        costs = [0]
        for changes in ({}, {"stream": True}, {"stream": True, "source": "de"}):
            assert client.post("/v1/translate", asked | changes, headers=ada).status_code == 200
            costs.append(used(client, ada))
    assert costs == [n * (len(TEXT) + 3) for n in range(4)]
