"""Self-contained pages."""

from pathlib import Path

import pytest
from browser import Opener, needs_browser

from mtformer.support.page import assemble, to_script

HOSTILE = "</script><script>alert(1)</script> \u2028 & <!-- é 它"


def test_a_number_that_json_lacks_is_refused() -> None:
    with pytest.raises(ValueError, match="Out of range float"):
        to_script([float("nan")])


def test_the_title_is_text() -> None:
    assert "<title>a &lt;b&gt; &amp; c</title>" in assemble("a <b> & c", "")


@needs_browser
def test_data_reaches_scripts_unchanged_whatever_text_it_contains(tmp_path: Path, opener: Opener) -> None:
    path = tmp_path / "page.html"
    path.write_text(assemble("title", "<h1>Hello</h1>", data={"text": HOSTILE}), encoding="utf-8")
    with opener(path) as page:
        assert page.evaluate("pageData.text") == HOSTILE
        assert page.locator("h1").inner_text() == "Hello"


@needs_browser
def test_a_request_or_an_error_of_a_page_is_noticed(tmp_path: Path, opener: Opener) -> None:
    path = tmp_path / "page.html"
    path.write_text(assemble("title", '<img src="http://127.0.0.1:9/x.png"><script>throw Error("x")</script>'))
    with pytest.raises(AssertionError, match="error: x"), opener(path):
        pass


@needs_browser
@pytest.mark.parametrize("dark", [False, True])
def test_pages_follow_the_color_scheme(tmp_path: Path, dark: bool, opener: Opener) -> None:
    path = tmp_path / "page.html"
    path.write_text(assemble("title", ""))
    with opener(path, dark=dark) as page:
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(23, 24, 27)" if dark else "rgb(253, 253, 252)")


_COMPUTE = """
  const script = "WebAssembly.compile(new Uint8Array([0, 97, 115, 109, 1, 0, 0, 0])).then(() => postMessage('done'))";
  const worker = new Worker(URL.createObjectURL(new Blob([script])));
  worker.onmessage = ({ data }) => { document.querySelector('p').textContent = data; };
"""


@needs_browser
def test_a_page_that_computes_starts_workers_and_webassembly(tmp_path: Path, opener: Opener) -> None:
    path = tmp_path / "page.html"
    path.write_text(assemble("title", f"<p></p><script>{_COMPUTE}</script>", computes=True))
    with opener(path) as page:
        page.wait_for_selector("p:text('done')", timeout=5_000)
