"""Compare models and files of translations on one test set."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os.path import commonprefix
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Unpack

from mtformer.config import Config, LanguagePair
from mtformer.config.sources import MULTIPLE
from mtformer.evaluate.comparison import Comparison, SentenceDifference, compare_systems, largest_differences
from mtformer.evaluate.evaluation import best_translations
from mtformer.evaluate.metrics import sacrebleu_command
from mtformer.evaluate.testsets import EvalSet, TextOptions, combined, from_files, read_eval_sets, require_read_once
from mtformer.runs.finding import find_model
from mtformer.runs.folder import BUNDLE, RunFolder, hint
from mtformer.support.errors import UserError
from mtformer.support.files import require_distinct, short_names
from mtformer.support.terminal import counted
from mtformer.text.languages import UNDETERMINED, base_language, language_of_script
from mtformer.text.lines import input_name, read_lines
from mtformer.translate.translator import Translator

if TYPE_CHECKING:
    from mtformer.bundle.format import Bundle


@dataclass(frozen=True)
class System:
    """A system to compare.

    Attributes:
        name: short, and different from that of every other system.
        path: a file of translations, or a bundle.
        bundle: the model, if it is a bundle.
    """

    name: str
    path: Path
    bundle: "Bundle | None"


@dataclass(frozen=True)
class SeedGroup:
    """Runs of one config that differ in nothing but the seed.

    Attributes:
        name: the names of the runs, as in ``base-{1,2,3}``.
        systems: their names.
        scores: by metric, the ``mean`` over the runs and their standard deviation ``sd`` (of a sample, with n - 1).
    """

    name: str
    systems: list[str]
    scores: dict[str, dict[str, float]]


@dataclass(frozen=True)
class SystemsComparison:
    """The result of :func:`compare_paths`.

    Attributes:
        test_set: what the systems were compared on.
        tgt_lang: its target language.
        comparison: the scores and tests.
        groups: several runs of one config with different seeds.
        differences: by system, the sentences that it translates most differently from the baseline.
        commands: how sacreBLEU computes the numbers, by bootstrap and, of several systems, by randomization; none where
            a model has translated, or no files have the texts.
    """

    test_set: EvalSet
    tgt_lang: str
    comparison: Comparison
    groups: list[SeedGroup]
    differences: dict[str, list[SentenceDifference]]
    commands: list[str]


def compare_paths(
    paths: Sequence[Path],
    *,
    pair: LanguagePair | None = None,
    search: Mapping[str, float | str | None] | None = None,
    n_resamples: int,
    n_trials: int,
    seed: int,
    n_sentences: int,
    output: Path | None = None,
    device: str = "auto",
    raw: bool = False,
    **texts: Unpack[TextOptions],
) -> SystemsComparison:
    """Translate a test set with each model, score the systems, and test whether they differ from the first one.

    Args:
        paths: of each system: a bundle, the folder of a run, or a file with a translation on each line.
        pair: the languages, where no system is a model, or a model has several directions.
        search: search options that replace those of the bundles.
        n_resamples: resampled test sets of the paired bootstrap.
        n_trials: trials of approximate randomization.
        seed: of both tests.
        n_sentences: how many of the most different sentences to return for each system.
        output: the file that the result will be written to, which must not be one of those read.
        device: where to compute.
        raw: whether the models translate alone, without changes to texts before and checks of translations after.
        **texts: the test set, as for :func:`mtformer.evaluate.testsets.read_eval_sets`; by default that of the run
            of the first bundle.

    Raises:
        UserError: a system or the test set cannot be used, or they do not belong together.
    """
    require_read_once([*paths, texts.get("src"), *(texts.get("ref") or ())])
    systems = _read_systems(paths, pair)
    test_set, languages = _test_set(systems, pair, texts)
    require_distinct(output, [*test_set.files, *(system.path for system in systems)])
    hypotheses = {system.name: [] if system.bundle else _read_hypotheses(system, test_set) for system in systems}
    bundles = {system.name: system.bundle for system in systems if system.bundle}
    for name, bundle in bundles.items():  # after the files, which may be wrong
        translator = Translator.load(bundle, device, raw=raw).with_options(**(search or {}))
        hypotheses[name] = [best.text for best in best_translations(translator, test_set.sources)]
    tokenize = next((bundle.header.bleu_tokenize for bundle in bundles.values()), "auto")
    comparison = compare_systems(
        hypotheses,
        test_set.references,
        tgt_lang=languages.tgt_lang,
        tokenize=tokenize,
        n_resamples=n_resamples,
        n_trials=n_trials,
        seed=seed,
    )
    baseline, *others = hypotheses
    differences = {
        name: largest_differences(hypotheses[baseline], hypotheses[name], test_set.references, n_sentences)
        for name in others
    }
    commands = []
    if not bundles and test_set.sacrebleu_arguments and Path("-") not in paths:
        of_one, of_several = (("confidence", n_resamples),), (("paired-bs", n_resamples), ("paired-ar", n_trials))
        for test, n in of_several if others else of_one:
            # The format: sacreBLEU fails to write the bootstrap's numbers as JSON, its default.
            options = f"--{test}", f"--{test}-n", str(n), "--format", "text"
            command = sacrebleu_command(paths, test_set.sacrebleu_arguments, languages.tgt_lang, tokenize, *options)
            commands.append(f"SACREBLEU_SEED={seed} {command}")
    groups = _seed_groups(systems, comparison)
    return SystemsComparison(test_set, languages.tgt_lang, comparison, groups, differences, commands)


def _read_systems(paths: Sequence[Path], pair: LanguagePair | None) -> list[System]:
    """Read the systems: load bundles, and keep the paths of files of translations."""
    files = [_file_of(path) for path in paths]
    for path, file in zip(paths, files, strict=True):
        if files.count(file) > 1:
            raise UserError(f"{path} is given twice: a system cannot be compared with itself")
    systems = []
    names = short_names([file.parent if RunFolder(file.parent).bundle == file else file for file in files])
    for name, path, file in zip(names, paths, files, strict=True):
        bundle = None
        if file.suffix == ".safetensors" or file.is_dir():
            from mtformer.bundle.format import load_bundle  # which imports torch

            bundle = load_bundle(file)
        elif file.is_file() and _is_object(next(read_lines(file), "")):
            raise UserError(
                f"{path} contains JSON: give a file with a translation on each line, such as eval --output writes"
            )
        if bundle and MULTIPLE in (bundle.header.src_lang, bundle.header.tgt_lang):
            if pair is None:
                raise UserError(f"{name} translates {bundle.header.title}: choose one direction with --pair")
            bundle = bundle.toward(*pair)
        systems.append(System(name, file, bundle))
    return systems


def _is_object(line: str) -> bool:
    """Tell whether a line is an object of JSON, such as those of ``eval --save``."""
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _file_of(path: Path) -> Path:
    """Return the file of a system: the bundle of a run, or the path itself."""
    if path.is_dir():
        return find_model(path)
    if str(path) != "-" and not path.exists():
        raise UserError(f"there is no run or file {path}{hint(path, BUNDLE)}")
    return path


def _test_set(systems: Sequence[System], pair: LanguagePair | None, texts: TextOptions) -> tuple[EvalSet, LanguagePair]:
    """Read the test set, and determine its languages."""
    models = [(system, system.bundle) for system in systems if system.bundle]
    if not models:
        return _test_set_of_files(pair, texts)
    if pair is not None and not any(len(bundle.header.language_pairs) > 1 for _, bundle in models):
        raise UserError("--pair is for files of translations alone, or a model of several directions")
    (first, bundle), *others = models
    languages = LanguagePair(bundle.header.src_lang, bundle.header.tgt_lang)
    for system, its_bundle in others:
        own = LanguagePair(its_bundle.header.src_lang, its_bundle.header.tgt_lang)
        if list(map(base_language, own)) != list(map(base_language, languages)):
            names = " to ".join(languages), " to ".join(own)
            raise UserError(f"{first.name} translates {names[0]}, {system.name} {names[1]}: they cannot be compared")
    test_set = combined(read_eval_sets(first.path, bundle.header, **texts))
    for system, its_bundle in [] if any(texts.values()) else others:
        try:
            its_set = combined(read_eval_sets(system.path, its_bundle.header))
        except UserError:  # a bundle away from its run, or a run without a test set, has none of its own
            continue
        if its_set.fingerprint != test_set.fingerprint:
            raise UserError(
                f"the runs of {first.name} and {system.name} have different test sets: give --data, or --src and --ref"
            )
    return test_set, languages


def _test_set_of_files(pair: LanguagePair | None, texts: TextOptions) -> tuple[EvalSet, LanguagePair]:
    """Read the test set where no system is a model: references alone are enough."""
    references = texts.get("ref") or ()
    if not any(texts.values()):
        raise UserError("files of translations need references: give --ref, --data or --testset")
    if references and not texts.get("src"):
        if texts.get("data") or texts.get("testset"):
            raise UserError("give --ref, or --data, or --testset, not several of them")
        test_set = from_files(None, references)
        if not test_set.sources:
            raise UserError(f"the reference {input_name(references[0])} is empty")
    elif pair is None and not texts.get("src"):
        raise UserError("the files do not tell their languages: give --pair, as in --pair en-de")
    else:
        test_set = combined(read_eval_sets(Path(), pair or LanguagePair(UNDETERMINED, UNDETERMINED), **texts))
    language = language_of_script("\n".join(test_set.references[0]))
    return test_set, pair or LanguagePair(UNDETERMINED, language)


def _read_hypotheses(system: System, test_set: EvalSet) -> list[str]:
    name, lines = input_name(system.path), list(read_lines(system.path))
    n_sentences = len(test_set.references[0])
    if not lines:
        raise UserError(f"{name} is empty: it should have {counted(n_sentences, 'translation')}, one a line")
    if len(lines) != n_sentences:
        raise UserError(f"{name} has {counted(len(lines), 'line')}, the test set {test_set.name} has {n_sentences:,}")
    return lines


def _seed_groups(systems: Sequence[System], comparison: Comparison) -> list[SeedGroup]:
    """Find the runs that differ in their seeds only, by the ``config.yaml`` beside their bundles."""
    runs_by_seed: dict[str, dict[int, str]] = defaultdict(dict)
    for system in systems:
        if system.bundle and (config := _read_config(system.path.parent)):
            unseeded = config.model_dump(mode="json", exclude={"run": True, "provenance": True, "training": {"seed"}})
            key = json.dumps([unseeded, config.provenance.fingerprints])
            runs_by_seed[key].setdefault(config.training.seed, system.name)
    scores = {
        metric.metric: {estimate.system: estimate.score for estimate in metric.estimates}
        for metric in comparison.metrics
    }
    groups = []
    for names in (list(by_seed.values()) for by_seed in runs_by_seed.values() if len(by_seed) > 1):
        of_group = {metric: [values[name] for name in names] for metric, values in scores.items()}
        summary = {metric: {"mean": fmean(values), "sd": stdev(values)} for metric, values in of_group.items()}
        groups.append(SeedGroup(_common_name(names), names, summary))
    return groups


def _read_config(run: Path) -> Config | None:
    """Read the config of a run; None if there is none of this version."""
    try:
        return RunFolder(run).read_config(Config)
    except UserError:
        return None


def _common_name(names: Sequence[str]) -> str:
    """Abbreviate names by brace expansion: ``base-1`` and ``base-2`` to ``base-{1,2}``."""
    prefix = commonprefix(names).rstrip("0123456789")  # noqa: RUF071  # by characters
    return f"{prefix}{{{','.join(name.removeprefix(prefix) for name in names)}}}"
