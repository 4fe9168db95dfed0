"""The page of a run, and of several side by side."""

import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from browser import Opener, needs_browser
from conftest import Project, sentence_pairs, write_pairs
from test_runs import contents

from mtformer.report.page import short
from mtformer.report.writing import write_report
from mtformer.runs.folder import RunFolder

HOSTILE = "</script><img src=x onerror=alert(1)> <b>bold</b> & 'quoted'"


@pytest.fixture
def run(trained: Project, tmp_path: Path) -> Path:
    """A copy of a trained run, without its checkpoints."""
    copy = tmp_path / "runs" / "demo"
    shutil.copytree(trained.folder / "runs" / "config", copy, ignore=shutil.ignore_patterns("checkpoints", "lock"))
    return copy


def page_data(page: Path) -> dict[str, Any]:
    """Return the data that a page contains."""
    [line] = [line for line in page.read_text(encoding="utf-8").splitlines() if "const pageData = " in line]
    return json.loads(line.partition("const pageData = ")[2].partition(";</script>")[0])


def lines_of(run: Path, key: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line for line in lines if key in line]


# One run


def test_the_curves_are_the_numbers_of_metrics_jsonl(trained: Project, run: Path) -> None:
    result = trained.mtformer("report", "--no-test", run)
    assert (result.status, result.stdout) == (0, f"{run / 'report.html'}\n"), result.stderr
    series = {
        (chart["title"], series["name"]): series["points"]
        for chart in page_data(run / "report.html")["charts"]
        for series in chart["series"]
    }
    keys = {
        ("Loss, nats per token", "training"): "train_loss",
        ("Loss, nats per token", "training, with label smoothing"): "train_loss_smoothed",
        ("Loss, nats per token", "validation"): "valid_loss",
        ("BLEU of the validation text", "validation"): "valid_bleu",
        ("Learning rate", "learning rate"): "lr",
        ("Speed, target tokens per second", "speed"): "tokens_per_second",
        ("Gradient norm, before clipping", "gradient norm"): "grad_norm",
        ("Memory in use, GiB", "memory"): "memory_gib",
    }
    assert series.keys() == keys.keys()
    for title, key in keys.items():
        lines = lines_of(run, key)
        assert [(step, value) for step, _, value in series[title]] == [(line["step"], line[key]) for line in lines]
        assert [minutes for _, minutes, _ in series[title]] == pytest.approx(
            [line["seconds"] / 60 for line in lines], abs=1e-4
        )


@needs_browser
def test_charts_are_read_with_keys_and_mouse(trained: Project, run: Path, opener: Opener) -> None:
    assert trained.mtformer("report", "--no-test", run).status == 0
    validations = lines_of(run, "valid_loss")
    with opener(run / "report.html") as page:
        loss, bleu = page.locator("figure.chart").nth(0), page.locator("figure.chart").nth(1)
        assert "BLEU" in bleu.locator("h3").inner_text()
        bleu.locator("svg").first.focus()
        page.keyboard.press("Home")
        assert bleu.locator(".readout b").inner_text() == f"{validations[0]['valid_bleu']:.4g}"
        assert bleu.locator(".readout").inner_text().startswith(f"step {validations[0]['step']},")
        page.keyboard.press("ArrowRight")
        assert bleu.locator(".readout").inner_text().startswith(f"step {validations[1]['step']},")
        [at_cursor] = [line for line in lines_of(run, "train_loss") if line["step"] == validations[1]["step"]]
        assert loss.locator(".readout b").first.inner_text() == f"{at_cursor['train_loss']:.4g}"  # one cursor for all
        page.keyboard.press("Escape")
        assert bleu.locator(".readout").inner_text().startswith("last: ")
        bleu.locator("svg").first.hover(position={"x": 52, "y": 60})
        assert bleu.locator(".readout").inner_text().startswith(f"step {validations[0]['step']},")
        page.get_by_role("button", name="minutes").click()
        page.get_by_role("button", name="logarithmic").click()
        assert "min" in loss.locator(".axis text").all_text_contents()
        assert page.get_by_role("button", name="minutes").get_attribute("aria-pressed") == "true"


@needs_browser
def test_the_values_of_a_chart_stay_after_a_tap(trained: Project, run: Path, opener: Opener) -> None:
    assert trained.mtformer("report", "--no-test", run).status == 0
    with opener(run / "report.html", width=360, touch=True) as page:
        bleu = page.locator("figure.chart").nth(1)
        bleu.locator("svg").first.tap(position={"x": 52, "y": 60})
        assert bleu.locator(".readout").inner_text().startswith(f"step {lines_of(run, 'valid_loss')[0]['step']},")


@needs_browser
def test_charts_show_values_of_any_size(trained: Project, run: Path, opener: Opener) -> None:
    last = lines_of(run, "grad_norm")[-1]
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**last, "step": last["step"] + 1, "grad_norm": 1.5e30}) + "\n")
    assert trained.mtformer("report", "--no-test", run).status == 0
    with opener(run / "report.html") as page:
        norms, memory = page.locator("figure.chart").nth(4), page.locator("figure.chart").nth(5)
        assert norms.locator(".readout b").inner_text() == "1.50e+30"
        assert memory.locator("svg path").count() == 1


@needs_browser
def test_close_values_have_an_axis_that_tells_them_apart(trained: Project, run: Path, opener: Opener) -> None:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    for number, line in enumerate(each for each in lines if "valid_bleu" in each):
        line["valid_bleu"] = 91.58 + 0.002 * number
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert trained.mtformer("report", "--no-test", run).status == 0
    with opener(run / "report.html", width=360) as page:
        axis = page.locator("figure.chart").nth(1).locator(".axis").first
        labels = axis.locator("text").all_text_contents()
        assert len(labels) > 2
        assert len(set(labels)) == len(labels)
        lefts = axis.locator("text").evaluate_all("texts => texts.map(text => text.getBBox().x)")
        assert min(lefts) >= 0


@needs_browser
def test_the_page_fits_a_narrow_window(tested: Path, opener: Opener) -> None:
    with opener(tested / "report.html", width=360, dark=True) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == 360
        assert page.locator("figure.chart svg[tabindex]").count() == 9


def test_it_names_data_model_settings_and_commands(trained: Project, run: Path) -> None:
    assert trained.mtformer("report", "--no-test", run, "--output", run / "page.html").status == 0
    text = (run / "page.html").read_text(encoding="utf-8")
    start = json.loads((run / "starts.jsonl").read_text(encoding="utf-8"))
    best = max(lines_of(run, "valid_loss"), key=lambda line: -line["valid_loss"])
    for shown in (
        f"<dd>{best['valid_loss']:.4f}<small>at step {best['step']:,}</small></dd>",
        f'<td>train</td><td>{trained.folder}/train.en, {trained.folder}/train.de</td><td class="number">400</td>',
        f"400 pairs with {start['data']['src_tokens']:,} source and {start['data']['tgt_tokens']:,} target tokens",
        "were trained on. No pair was dropped.",
        "1 encoder, 1 decoder",
        "d_model 32, d_ff 64, 2 heads of 16",
        f"{start['model']['parameters']:,}",
        f"mtformer train {run / 'config.yaml'} --set run.dir={run.parent} --set run.name=demo-again",
        f"mtformer eval --model {run}-again",
    ):
        assert shown in text


def test_a_page_of_the_current_folder_names_the_folder_in_its_commands(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(run)
    assert write_report([Path()], with_test=False) == Path("report.html")
    text = Path("report.html").read_text(encoding="utf-8")
    assert f"mtformer train {run / 'config.yaml'} --set run.dir={run.parent} --set run.name=demo-again" in text


def test_resumes_and_the_best_step_are_marked(project: Project) -> None:
    train = ("train", project.config, "--quiet", "--set", "training.validate_every=2", "--set", "training.log_every=1")
    for steps in (3, 6):
        assert project.mtformer(*train, "--set", f"training.max_steps={steps}").status == 0
    run = project.folder / "runs" / "config"
    assert project.mtformer("report", "--no-test", run).status == 0
    resumed, best = page_data(run / "report.html")["marks"]
    assert (resumed["kind"], resumed["at"][0]) == ("resume", 3)
    validations = lines_of(run, "valid_loss")
    expected = max(validations, key=lambda line: (line["valid_bleu"], -line["valid_loss"]))
    assert (best["kind"], best["at"][0]) == ("best", expected["step"])
    shown = f"<dd>{expected['valid_bleu']:.2f}<small>at step {expected['step']:,}, by greedy search</small></dd>"
    assert shown in (run / "report.html").read_text(encoding="utf-8")


@needs_browser
def test_samples_change_with_the_slider_and_stay_text(trained: Project, run: Path, opener: Opener) -> None:
    samples = [
        {"step": 300, "samples": [{"src": HOSTILE, "ref": "das rote Haus", "hyp": "das Haus"}]},
        {"step": 600, "samples": [{"src": HOSTILE, "ref": "das rote Haus", "hyp": f"das rote Haus {HOSTILE}"}]},
    ]
    (run / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in samples), encoding="utf-8")
    assert trained.mtformer("report", "--no-test", run).status == 0
    with opener(run / "report.html") as page:
        card, slider = page.locator("#sample-0"), page.locator("#samples input")
        assert page.locator("#samples output").inner_text().startswith("step 600 ")
        assert card.locator("dd").first.inner_text() == HOSTILE
        assert card.locator(".hypothesis").inner_text() == f"das rote Haus {HOSTILE}"
        assert card.locator(".hypothesis mark").all_inner_texts() == [HOSTILE]
        slider.focus()
        page.keyboard.press("ArrowLeft")
        assert page.locator("#samples output").inner_text().startswith("step 300 ")
        assert card.locator(".reference mark").all_inner_texts() == ["rote"]
        assert card.locator(".hypothesis mark").count() == 0
        assert page.locator("img, section b b").count() == 0
    with opener(run / "report.html", scripts=False) as page:
        assert page.locator("#sample-0 .hypothesis mark").all_inner_texts() == [HOSTILE]
        assert page.locator("#sample-0 .reference").inner_text() == "das rote Haus"
        assert page.locator("noscript").first.inner_text() == "Charts are drawn with JavaScript, which is turned off."


# The test set


@pytest.fixture(scope="module")
def tested(trained: Project, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose page has a test set that the model does not know all of."""
    folder = tmp_path_factory.mktemp("tested")
    shutil.copytree(trained.folder / "runs" / "config", folder / "demo", ignore=shutil.ignore_patterns("checkpoints"))
    pairs = [
        (src, tgt.replace("Haus", f"Gebäude {HOSTILE}") if i < 4 else tgt)
        for i, (src, tgt) in enumerate(sorted(sentence_pairs(30, seed=3), key=lambda pair: "Haus" not in pair[1]))
    ]
    write_pairs(folder, "hard", pairs)
    config = yaml.safe_load((folder / "demo" / "config.yaml").read_text(encoding="utf-8"))
    config["data"]["test"] = [{"src": str(folder / "hard.en"), "tgt": str(folder / "hard.de")}]
    (folder / "demo" / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    result = trained.mtformer("report", folder / "demo")
    assert (result.status, result.stdout) == (0, f"{folder / 'demo' / 'report.html'}\n"), result.stderr
    return folder / "demo"


def test_scores_are_those_of_eval_with_intervals_of_sacrebleu(trained: Project, tested: Path) -> None:
    hypotheses, references = tested.parent / "hyp.de", tested.parent / "hard.de"
    result = trained.mtformer("eval", "--model", tested, "--output", hypotheses)
    assert result.status == 0, result.stderr
    command = [sys.executable, "-m", "sacrebleu", str(references), "-i", str(hypotheses), "--confidence"]
    options = ["-m", "bleu", "ter", "-w", "2"]
    printed = subprocess.run([*command, *options], capture_output=True, text=True, check=True).stdout
    text = (tested / "report.html").read_text(encoding="utf-8")
    for score in json.loads(printed):
        low, high = (score["confidence_mean"] + sign * score["confidence_var"] for sign in (-1, 1))
        shown = f'<td>{score["name"]}</td><td class="number">{score["score"]:.2f}</td><td class="number">'
        assert shown in text
        found_low, found_high = re.findall(r"[\d.]+", text.partition(shown)[2])[:2]
        assert (float(found_low), float(found_high)) == pytest.approx((low, high), abs=0.011)
        assert score["score"] not in (0.0, 100.0)
    assert "nrefs:1|bs:1000|seed:12345|case:mixed|eff:no|tok:13a" in text
    assert "Validation in training searches greedily, which usually scores a little lower." in text


@needs_browser
def test_the_worst_sentences_come_first_and_are_text(tested: Path, opener: Opener) -> None:
    with opener(tested / "report.html") as page:
        cards = page.locator("#sentences .sentence")
        for number in range(4):
            assert HOSTILE in cards.nth(number).locator("mark.missing").first.inner_text()
            assert "Haus" in cards.nth(number).locator("mark.extra").first.inner_text()
        assert "chrF2 100.0" in cards.last.inner_text()
        assert page.locator("#sentences code").inner_text().startswith("mtformer explain ")
        assert page.locator("img").count() == 0


@needs_browser
def test_charts_of_the_test_set_count_every_sentence(tested: Path, opener: Opener) -> None:
    charts = [chart for chart in page_data(tested / "report.html")["charts"] if "bars" in chart]
    assert [chart["caption"] for chart in charts] == ["30 sentences.", charts[1]["caption"], "30 sentences."]
    assert sum(bar["value"] for bar in charts[2]["bars"]) == 30
    with opener(tested / "report.html") as page:
        chart = page.locator("#test figure.chart").first
        chart.locator("svg").focus()
        page.keyboard.press("Home")
        [first, *_] = charts[0]["bars"]
        assert chart.locator(".readout").inner_text().startswith(f"{first['label']} words, ")


@pytest.mark.parametrize("missing", ["model.safetensors", "test"])
def test_a_page_without_the_test_set_is_written_with_a_warning(trained: Project, run: Path, missing: str) -> None:
    if missing == "test":
        config = (run / "config.yaml").read_text(encoding="utf-8")
        (run / "config.yaml").write_text(config.replace("test.en", "gone.en"), encoding="utf-8")
    else:
        (run / missing).unlink()
    result = trained.mtformer("report", run)
    assert result.status == 0, result.stderr
    assert "the report has no test scores" in result.stderr
    text = (run / "report.html").read_text(encoding="utf-8")
    assert '<section id="test">' not in text
    assert '<section id="curves">' in text


# A run that is not complete


def test_a_file_cut_in_the_middle_of_a_line_loses_that_line_only(trained: Project, run: Path) -> None:
    assert trained.mtformer("report", "--no-test", run).status == 0
    whole = page_data(run / "report.html")["charts"]
    with (run / "metrics.jsonl").open("ab") as file:
        file.write(b'{"step": 1600, "epoch": 3, "train_lo')
    assert trained.mtformer("report", "--no-test", run).status == 0
    assert page_data(run / "report.html")["charts"] == whole


def test_it_says_that_the_run_is_training(trained: Project, run: Path) -> None:
    with RunFolder(run).lock():
        result = trained.mtformer("report", "--no-test", run)
        assert result.status == 0, result.stderr
        assert f"{run} is still training: the page shows what there is" in result.stderr
        assert "still training: step 1,500 of 1,500" in (run / "report.html").read_text(encoding="utf-8")
    assert trained.mtformer("report", "--no-test", run).status == 0
    assert "finished: step 1,500 of 1,500" in (run / "report.html").read_text(encoding="utf-8")


def test_a_run_without_metrics_has_a_page(trained: Project, run: Path) -> None:
    for path in run.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != "config.yaml":
            path.unlink()
    assert trained.mtformer("report", "--no-test", run).status == 0
    text = (run / "report.html").read_text(encoding="utf-8")
    assert "nothing was trained" in text
    assert "metrics.jsonl has no line yet" in text


def test_a_start_that_does_not_count_the_pairs_of_each_source_is_enough(trained: Project, run: Path) -> None:
    start = json.loads((run / "starts.jsonl").read_text(encoding="utf-8"))
    del start["data"]["pairs_by_source"], start["data"]["valid_pairs"]
    (run / "starts.jsonl").write_text(json.dumps(start) + "\n", encoding="utf-8")
    assert trained.mtformer("report", "--no-test", run).status == 0
    assert "400 pairs with " in (run / "report.html").read_text(encoding="utf-8")


def test_of_a_file_of_a_run_the_run_is_named(trained: Project, run: Path) -> None:
    bundle = run / "model.safetensors"
    result = trained.mtformer("report", bundle)
    message = f"Error: {bundle} is not the folder of a run: it has no config.yaml; did you mean {run}?\n"
    assert (result.status, result.stderr) == (2, message)


@pytest.mark.parametrize("damage", ["none", "text", "open", "metrics"])
def test_a_folder_that_is_no_run_is_refused(trained: Project, run: Path, damage: str) -> None:
    no_config = (
        f"{run / 'config.yaml'} is not the config of a run of this version of mtformer; if it is damaged, resuming the "
        "training writes it again"
    )
    expected = {
        "none": f"{run} is not the folder of a run: it has no config.yaml; did you mean {run.parent / 'dema'}?",
        "text": no_config,
        "open": no_config,
        "metrics": f"cannot read {run / 'metrics.jsonl'}: Is a directory",
    }
    if damage == "none":
        shutil.copytree(run, run.parent / "dema")
        (run / "config.yaml").unlink()
    elif damage == "text":
        (run / "config.yaml").write_text("data: [", encoding="utf-8")
    elif damage == "open":  # a config that has not been trained
        shutil.copy(trained.config, run / "config.yaml")
    else:
        (run / "metrics.jsonl").unlink()
        (run / "metrics.jsonl").mkdir()
    before = contents(run)
    result = trained.mtformer("report", "--no-test", run)
    assert (result.status, result.stdout, result.stderr) == (2, "", f"Error: {expected[damage]}\n")
    assert contents(run) == before


def test_large_numbers_are_short() -> None:
    numbers = (999_499, 999_500, 4_248_000, 999_499_999, 999_600_000, 1_500_000_000)
    assert [*map(short, numbers)] == ["999,499", "1 M", "4.25 M", "999 M", "1 G", "1.5 G"]


@pytest.mark.parametrize("name", ["config.yaml", "metrics.jsonl", "model.safetensors", "../../test.de"])
def test_what_the_page_is_made_of_is_no_output(trained: Project, run: Path, name: str) -> None:
    config = (run / "config.yaml").read_text(encoding="utf-8")
    shutil.copy(trained.folder / "test.de", run.parent.parent)
    (run / "config.yaml").write_text(
        config.replace(f"{trained.folder}/test.de", f"{run.parent.parent}/test.de"), encoding="utf-8"
    )
    before = contents(run.parent.parent)
    result = trained.mtformer("report", run, "--output", run / name)
    assert (result.status, result.stdout) == (2, "")
    assert f"--output {run / name}: name a page" in result.stderr
    assert contents(run.parent.parent) == before


def test_the_page_is_by_default_that_of_the_newest_run(trained: Project, run: Path) -> None:
    project = Project(run.parent.parent, trained.config)
    assert project.mtformer("report", "--no-test").stdout == f"{Path('runs/demo/report.html')}\n"
    (run / "model.safetensors").unlink()
    result = project.mtformer("report", "--no-test")
    assert (result.status, result.stdout, "the run runs/demo has no model" in result.stderr) == (2, "", True)


def test_a_run_given_twice_is_refused(trained: Project, run: Path) -> None:
    result = trained.mtformer("report", run, f"{run}/../demo")
    assert (result.status, result.stderr) == (2, f"Error: {run}/../demo is given twice\n")
    assert not (run.parent / "report.html").exists()


@pytest.mark.parametrize(
    ("name", "line", "key"),
    [
        ("samples.jsonl", {"step": 5}, "samples"),
        ("starts.jsonl", {"step": 5, "seconds": 2.0, "data": {"pairs": 3}}, "time"),
        ("metrics.jsonl", {"step": 5}, "epoch"),
        ("metrics.jsonl", {"step": 5, "epoch": 1, "seconds": "soon"}, "seconds"),
    ],
)
def test_lines_that_lack_a_key_or_have_another_type_are_an_error_in_one_sentence(
    trained: Project, run: Path, name: str, line: dict[str, Any], key: str
) -> None:
    with (run / name).open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    result = trained.mtformer("report", "--no-test", run)
    assert (result.status, result.stdout) == (2, "")
    expected = f"Error: {run / name}: the line of step 5 is not one that mtformer writes (see its {key}): delete it\n"
    assert result.stderr == expected
    [listed] = json.loads(trained.mtformer("runs", run, "--json").stdout)
    assert (listed["state"], f"Error: {listed['problem']}\n") == ("damaged", expected)


# Long runs


@pytest.mark.slow
def test_a_long_run_has_a_page_of_two_megabytes_that_says_what_it_leaves_out(trained: Project, run: Path) -> None:
    metrics = []
    for step in range(1, 2_001):
        shared = {"step": step, "epoch": 0, "seconds": float(step)}
        noise = step * 0.123456789 % 1
        metrics.append(shared | dict.fromkeys(("train_loss", "lr", "tokens_per_second", "grad_norm"), noise))
        metrics.append(shared | {"valid_loss": 3 - step / 1_000, "valid_bleu": noise, "valid_perplexity": noise})
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in metrics))
    sample = {"src": "the red house " * 8, "ref": "das rote Haus " * 8, "hyp": "das grüne Haus " * 8}
    lines = (json.dumps({"step": step, "samples": [sample] * 20}) + "\n" for step in range(1, 2_001))
    (run / "samples.jsonl").write_text("".join(lines), encoding="utf-8")
    (run / "starts.jsonl").unlink()
    page = run / "report.html"
    assert trained.mtformer("report", "--no-test", run).status == 0
    assert 400_000 < page.stat().st_size <= 2_000_000
    text, data = page.read_text(encoding="utf-8"), page_data(page)
    n_steps, n_points = len(data["samples"]["steps"]), len(data["charts"][0]["series"][0]["points"])
    assert 20 < n_steps < 200
    assert data["samples"]["steps"][-1].startswith("step 2,000 ")
    assert f"Shown are {n_steps} of 2,000 validations and 20 of 20 sentences; samples.jsonl has all." in text
    assert re.search(
        rf"Of long curves, about ({n_points}|{n_points - 1}) points are drawn; metrics.jsonl has all", text
    )
    n_rows = text.partition("<tbody>")[2].partition("</tbody>")[0].count("<tr>")
    assert f"{n_rows:,} of 2,000 validations as a table; metrics.jsonl has all" in text
    best = max(metrics, key=lambda line: -line.get("valid_loss", 9))
    assert f'<td class="number">{best["step"]:,} ★</td>' in text


def test_a_page_of_several_runs_is_thinned_too(trained: Project, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(run, run.parent / "other")
    page = run.parent / "report.html"
    assert trained.mtformer("report", "--no-test", run, run.parent / "other").status == 0
    whole, n_bytes = page_data(page)["charts"][0]["series"][0]["points"], page.stat().st_size
    assert "Of long curves" not in page.read_text(encoding="utf-8")
    monkeypatch.setattr("mtformer.report.elements.MAX_PAGE_BYTES", n_bytes - 1_000)
    assert trained.mtformer("report", "--no-test", run, run.parent / "other").status == 0
    points = page_data(page)["charts"][0]["series"][0]["points"]
    assert page.stat().st_size <= n_bytes - 1_000
    assert 2 < len(points) < len(whole)
    assert (points[0], points[-1]) == (whole[0], whole[-1])
    assert "Of long curves, about " in page.read_text(encoding="utf-8")


def test_a_page_may_be_compressed(trained: Project, run: Path) -> None:
    page = run.parent / "page.html.gz"
    result = trained.mtformer("report", "--no-test", run, "--output", page)
    assert (result.status, result.stdout) == (0, f"{page}\n"), result.stderr
    assert gzip.decompress(page.read_bytes()).startswith(b"<!doctype html>")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, "on the same machine give the same weights."),
        ({"max_minutes": 5}, "Not so here: the time limit (training.max_minutes) ends another run at another step"),
        ({"changes": True}, "Not so here: settings were changed when the run was resumed"),
    ],
)
def test_it_promises_the_same_weights_only_where_it_can(
    trained: Project, run: Path, change: dict[str, Any], told: str
) -> None:
    config = yaml.safe_load((run / "config.yaml").read_text(encoding="utf-8"))
    config["training"] |= {key: value for key, value in change.items() if key == "max_minutes"}
    if "changes" in change:
        config["provenance"]["changes"] = [{"step": 9, "key": "training.max_steps", "old": 9, "new": 1_500}]
    (run / "config.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    assert trained.mtformer("report", "--no-test", run).status == 0
    text = (run / "report.html").read_text(encoding="utf-8")
    assert told in text
    assert ("Expect similar scores" in text) == bool(change)
    versions = config["provenance"]["versions"]
    assert f"# with mtformer {versions['mtformer']}, python {versions['python']}\npip install " in text


# While training


def test_training_rewrites_the_page_after_each_validation(project: Project) -> None:
    settings = ("training.report=true", "training.validate_every=10", "training.log_every=5")
    result = project.mtformer("train", project.config, *(word for one in settings for word in ("--set", one)))
    assert result.status == 0, result.stderr
    page = project.folder / "runs" / "config" / "report.html"
    assert "finished: step 20 of 20" in page.read_text(encoding="utf-8")
    written = page_data(page)
    assert project.mtformer("report", "--no-test", page.parent).status == 0
    assert page_data(page)["charts"] == written["charts"]


def test_training_goes_on_where_the_page_cannot_be_written(project: Project) -> None:
    page = project.folder / "runs" / "config" / "report.html"
    page.mkdir(parents=True)
    result = project.mtformer("train", project.config, "--set", "training.report=true")
    assert result.status == 0, result.stderr
    assert (
        "the report was not written: cannot write runs/config/report.html: it is a folder, not a file" in result.stderr
    )
    assert (page.parent / "model.safetensors").is_file()


# Several runs


def test_runs_side_by_side_show_what_differs(trained: Project, run: Path) -> None:
    other = run.parent / "other"
    shutil.copytree(run, other)
    config = (other / "config.yaml").read_text(encoding="utf-8")
    (other / "config.yaml").write_text(config.replace("seed: 1", "seed: 2"), encoding="utf-8")
    lines = (other / "metrics.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (other / "metrics.jsonl").write_text("".join(lines[: len(lines) // 2]), encoding="utf-8")
    result = trained.mtformer("report", "--no-test", run, other)
    page = run.parent / "report.html"
    assert (result.status, result.stdout) == (0, f"{page}\n"), result.stderr
    by_title = {chart["title"]: chart["series"] for chart in page_data(page)["charts"]}
    for title, key in (("BLEU of the validation text", "valid_bleu"), ("Training loss, nats per token", "train_loss")):
        assert [series["name"] for series in by_title[title]] == ["demo", "other"]
        for series, folder in zip(by_title[title], (run, other), strict=True):
            assert [point[2] for point in series["points"]] == [line[key] for line in lines_of(folder, key)]
    text = page.read_text(encoding="utf-8")
    assert "<td><code>training.seed</code></td><td>1</td><td>2</td>" in text
    assert text.count("<code>training.") == 1
    assert f"<code>mtformer compare {run} {other}</code>" in text


@needs_browser
def test_a_page_of_the_current_folder_and_another_is_beside_both(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(run, run.parent / "other")
    monkeypatch.chdir(run)
    assert write_report([Path(), Path("../other")], with_test=False) == Path("../report.html")
    assert not (run / "report.html").exists()
    assert write_report([run, run.parent / "other"], with_test=False) == run.parent / "report.html"


def test_lines_of_several_runs_are_named(trained: Project, run: Path, opener: Opener) -> None:
    shutil.copytree(run, run.parent / "other")
    assert (
        trained.mtformer("report", "--no-test", run, run.parent / "other", "--output", run.parent / "both.html").status
        == 0
    )
    with opener(run.parent / "both.html") as page:
        assert page.locator("figure.chart").first.locator(".legend li").all_inner_texts() == ["demo", "other"]
        assert page.get_by_text("None: the runs have the same settings").count() == 1
