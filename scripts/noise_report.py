"""Inject noise into a parallel text and print how much of it the rules of ``data.filters`` find, and what is repaired.

usage: python scripts/noise_report.py --data src:train.en.gz,tgt:train.de.gz --pair en-de

Nine kinds of noise are added together, each to the same number of pairs, as 10 and as 50 % of the pairs of the text:
untranslated copies, targets in the wrong language, targets of other pairs, words of a side in random order, a side cut
off after 30 to 70 % of its words, UTF-8 read as Windows-1252, a side written in one 8-bit encoding and read in another,
HTML on both sides, and a side without its diacritics. ``--other`` names a text in other languages, whose lines are half
of the wrong-language targets; the rest are sources of other pairs. A pair is repaired if ``data check --fix`` would
keep it, and rightly if it is then the pair that the noise was added to.

``--speed`` prints instead how many pairs one core filters in a second: on the text, with each group of rules, and, for
those that learn, on the text with 25 % of all kinds of noise, learning and judging apart. It counts processor time, not
wall-clock time, so other programs disturb it little.

``--slips`` removes some lines from the targets after a third of the text, and as many from the sources after two
thirds, and prints how much of what lies between them ``data check --fix`` realigns, which pairs of its clean copy are
none of the text, and how many it loses of those that it keeps of the whole text.

``--lost`` prints random pairs of the text itself that the rules drop when noise is added.

``--train config.yaml`` trains models on the clean text, on the text with all kinds of noise, and on what the filters
keep of that, and prints their scores on the config's test set.
"""

import argparse
import html
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from program import run_program

from mtformer.cli.options import parse_pair
from mtformer.config import FILTERS, Config, LanguagePair, load_config, parse_source
from mtformer.data.clean.checkup import check
from mtformer.data.clean.diacritics import without_diacritics
from mtformer.data.clean.filters import LEARNED, Filters
from mtformer.data.clean.learned import CORRUPTIONS, LearnedRules
from mtformer.data.clean.report import write_clean
from mtformer.data.clean.seen import HeldOut
from mtformer.data.sources.parallel import ParallelText
from mtformer.support.terminal import as_markdown
from mtformer.text.languages import is_written_with_spaces
from mtformer.text.lines import read_lines
from mtformer.text.pairs import SentencePair

# These look for no noise.
CORPUS_RULES = ("held_out", "duplicates", "near_duplicates", "many_targets")
CHUNK = 10_000

Noise = Callable[[SentencePair], SentencePair | None]


class Kinds:
    """The kinds of noise: each makes a noisy pair of a good one, or None if the pair is not suited."""

    def __init__(self, pairs: Sequence[SentencePair], other: Sequence[str], languages: LanguagePair, seed: int) -> None:
        """Take the text that targets of other pairs come from, and lines in another language, if there are any."""
        self._pairs = pairs
        self._other = other
        self._is_spaced = list(map(is_written_with_spaces, languages))
        self._random = random.Random(seed)

    def all(self) -> dict[str, Noise]:
        """Return the kinds of noise by name."""
        return {
            "copies": lambda pair: SentencePair(pair.src, pair.src),
            "wrong language": self.wrong_language,
            "misaligned": lambda pair: SentencePair(pair.src, self._random.choice(self._pairs).tgt),
            "misordered": self.misordered,
            "truncated": self.truncated,
            "mojibake": self.mojibake,
            "misread": self.misread,
            "html": self.html,
            "diacritics": self.diacritics,
        }

    def wrong_language(self, pair: SentencePair) -> SentencePair:
        """Take a target in the source language or in another one."""
        if self._other and self._random.random() < 0.5:
            return SentencePair(pair.src, self._random.choice(self._other))
        return SentencePair(pair.src, self._random.choice(self._pairs).src)

    def misordered(self, pair: SentencePair) -> SentencePair | None:
        """Shuffle the words of a side."""
        side, words = self._words(pair)
        shuffled = self._random.sample(words, len(words))
        return self._with_words(pair, side, shuffled) if len(words) > 2 and shuffled != words else None

    def truncated(self, pair: SentencePair) -> SentencePair | None:
        """Keep 30 to 70 % of a side, from its beginning."""
        side, words = self._words(pair)
        n_kept = max(1, int(len(words) * self._random.uniform(0.3, 0.7)))
        return self._with_words(pair, side, words[:n_kept]) if len(words) > 3 else None

    def mojibake(self, pair: SentencePair) -> SentencePair | None:
        """Read both sides in the wrong encoding, if that changes them."""
        broken = SentencePair(*(side.encode().decode("cp1252", errors="replace") for side in pair))
        return broken if broken != pair else None

    def misread(self, pair: SentencePair) -> SentencePair | None:
        """Write both sides as a Macintosh did and read them as Windows does, if that changes them."""
        broken = SentencePair(*(side.encode("mac-roman", "ignore").decode("cp1252", "ignore") for side in pair))
        return broken if broken != pair and all(map(len, broken)) else None

    def html(self, pair: SentencePair) -> SentencePair:
        """Put both sides into HTML, with a tag at one of its words and its letters as entities."""
        name = self._random.choice(["b", "i", "span class='x'", "a href='/'", "strong"])
        sides = []
        for text in pair:
            words = html.escape(text).encode("ascii", "xmlcharrefreplace").decode().split(" ")
            place = self._random.randrange(len(words))
            words[place] = f"<{name}>{words[place]}</{name.split()[0]}>"
            sides.append(" ".join(words))
        return SentencePair(*sides)

    def diacritics(self, pair: SentencePair) -> SentencePair | None:
        """Remove the diacritics of both sides, if there are any."""
        bare = SentencePair(*map(without_diacritics, pair))
        return bare if bare != pair else None

    def _words(self, pair: SentencePair) -> tuple[int, list[str]]:
        """Return a side, by chance, and its words, or characters where no spaces separate words."""
        side = self._random.randrange(2)
        return side, pair[side].split() if self._is_spaced[side] else list(pair[side])

    def _with_words(self, pair: SentencePair, side: int, words: Sequence[str]) -> SentencePair:
        return pair._replace(**{pair._fields[side]: (" " if self._is_spaced[side] else "").join(words)})


class Noisy(NamedTuple):
    """A pair of a mixture, the kind of noise in it, if any, and the pair that this was added to."""

    pair: SentencePair
    kind: str | None
    original: SentencePair


def mixture(pairs: Sequence[SentencePair], kinds: dict[str, Noise], added: float, seed: int) -> list[Noisy]:
    """Add noisy pairs, as many as ``added`` says, in equal parts of each kind, in random order."""
    generator = random.Random(seed)
    mixed = [Noisy(pair, None, pair) for pair in pairs]
    for name, kind in kinds.items():
        wanted = round(added * len(pairs) / len(kinds))
        found: list[Noisy] = []
        for _ in range(20 * wanted):
            if len(found) == wanted:
                break
            original = generator.choice(pairs)
            noisy = kind(original)
            found += [] if noisy is None else [Noisy(noisy, name, original)]
        mixed += found
    generator.shuffle(mixed)
    return mixed


def seconds_of(work: Callable[[], object], turns: int = 3) -> float:
    """Return the median processor time of a piece of work."""
    times = []
    for _ in range(turns):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return sorted(times)[turns // 2]


def apply(filters: Filters, pairs: Sequence[SentencePair]) -> list[str | None]:
    """Apply filters in chunks, as training does, and return the rule that drops each pair."""
    chunks = (pairs[first : first + CHUNK] for first in range(0, len(pairs), CHUNK))
    return [reason for chunk in chunks for reason in filters.rules(chunk)]


def quoted(names: Sequence[str]) -> str:
    """Return the names of rules as the documentation shows them."""
    return ", ".join(f"`{name}`" for name in names)


def report_speed(pairs: Sequence[SentencePair], kinds: dict[str, Noise], languages: LanguagePair) -> None:
    """Print the pairs that one core filters in a second with each group of rules."""
    noisy = [one.pair for one in mixture(pairs, kinds, 0.25, seed=1)]
    single = [name for name in FILTERS if name not in (*LEARNED, *CORPUS_RULES)]
    held_out = HeldOut()
    held_out.add(pairs[:1_000], languages)

    def rate(names: Sequence[str], text: Sequence[SentencePair], sample: Sequence[SentencePair] = ()) -> float:
        return len(text) / seconds_of(lambda: apply(Filters(names, languages, held_out, sample), text))

    rates = {
        "about single pairs, without `language`": rate([name for name in single if name != "language"], pairs),
        "`language`": rate(["language"], pairs),
        "about single pairs, all": rate(single, pairs),
        quoted(CORPUS_RULES): rate(CORPUS_RULES, pairs),
        "all that learn nothing": rate([*single, *CORPUS_RULES], pairs),
    }
    learned = LearnedRules.learn(noisy, languages)
    if learned:
        seconds = seconds_of(lambda: LearnedRules.learn(noisy, languages))
        rates[f"{quoted(CORRUPTIONS)}: learning"] = len(noisy) / seconds
        chunks = [noisy[first : first + CHUNK] for first in range(0, len(noisy), CHUNK)]
        seconds = seconds_of(lambda: [learned.scores(chunk) for chunk in chunks])
        rates["the same: judging"] = len(noisy) / seconds
    rates["all, learning included"] = rate(["all"], noisy, noisy)
    print(as_markdown(["rules", "pairs/s"], [[group, f"{found:,.0f}"] for group, found in rates.items()]))


def filters_for(mixed: Sequence[Noisy], languages: LanguagePair) -> Filters:
    """Return all rules that look for noise."""
    names = [name for name in FILTERS if name not in CORPUS_RULES]
    return Filters(names, languages, sample=[noisy.pair for noisy in mixed])


def percent(n: int, of: int, digits: int = 1) -> str:
    """Format a share."""
    return f"{100 * n / of:.{digits}f}" if of else "—"


def report(
    pairs: Sequence[SentencePair], kinds: dict[str, Noise], languages: LanguagePair, shares: Sequence[float]
) -> None:
    """Print the table."""
    header = ["noise", "added", "caught %", "by rule, % of the noise", "repaired %", "of these right %"]
    rows = []
    for added in [0.0, *shares]:
        mixed = mixture(pairs, kinds, added, seed=1)
        filters = filters_for(mixed, languages)
        rules = apply(filters, [noisy.pair for noisy in mixed])
        n_lost = sum(rule is not None and not noisy.kind for rule, noisy in zip(rules, mixed, strict=True))
        n_dropped = len(rules) - rules.count(None)
        for kind in kinds if added else ():
            of_kind = [(noisy, rule) for noisy, rule in zip(mixed, rules, strict=True) if noisy.kind == kind]
            found = [(noisy, rule) for noisy, rule in of_kind if rule]
            by_rule = Counter(rule for _, rule in found).most_common(3)
            named = ", ".join(f"`{rule}` {percent(n, len(of_kind))}" for rule, n in by_rule)
            changed = [(noisy, filters.repaired(noisy.pair)) for noisy, _ in found]
            changed = [(noisy, fixed) for noisy, fixed in changed if fixed[1]]
            passed = apply(filters, [fixed for _, (fixed, _) in changed])
            kept = [(noisy, fixed) for (noisy, (fixed, _)), why in zip(changed, passed, strict=True) if not why]
            n_right = sum(fixed == noisy.original for noisy, fixed in kept)
            caught, repaired = percent(len(found), len(of_kind)), percent(len(kept), len(of_kind))
            rows.append([kind, f"{100 * added:.0f} %", caught, named, repaired, percent(n_right, len(kept))])
        lost = f"{100 * n_lost / len(pairs):.2f} % of the clean pairs lost"
        precise = percent(n_dropped - n_lost, n_dropped)
        rows.append(
            ["all" if added else "none", f"{100 * added:.0f} %", percent(n_dropped - n_lost, len(mixed) - len(pairs))]
        )
        rows[-1] += [f"{lost}, precision {precise} %", "—", "—"]
    print(as_markdown(header, rows))


def fixed(sides: Sequence[Sequence[str]], languages: LanguagePair) -> set[tuple[str, str]]:
    """Return the pairs that ``data check --fix`` keeps of a text, of which ``sides`` are the sources and targets."""
    with TemporaryDirectory() as name:
        folder, files = Path(name), {}
        for side, lines in zip(("src", "tgt"), sides, strict=True):
            files[side] = folder / side
            files[side].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        data = {"src_lang": languages.src_lang, "tgt_lang": languages.tgt_lang, "train": [files]}
        [clean] = write_clean(check(Config.model_validate({"data": data})), folder / "clean")
        return set(zip(read_lines(clean.src), read_lines(clean.tgt), strict=True))


def report_lost(
    pairs: Sequence[SentencePair], kinds: dict[str, Noise], languages: LanguagePair, added: float, n: int
) -> None:
    """Print random pairs of the text itself that the rules drop from the mixture, to see which are translations."""
    mixed = mixture(pairs, kinds, added, seed=1)
    reasons = apply(filters_for(mixed, languages), [noisy.pair for noisy in mixed])
    lost = [(why, *noisy.pair) for noisy, why in zip(mixed, reasons, strict=True) if why and not noisy.kind]
    for row in random.Random(1).sample(lost, min(n, len(lost))):
        print(*row, sep="\t")


def report_slips(pairs: Sequence[SentencePair], languages: LanguagePair, sizes: Sequence[int]) -> None:
    """Print how many pairs ``--fix`` realigns where lines are missing, joins wrongly, and loses of the whole text."""
    first, second = len(pairs) // 3, 2 * len(pairs) // 3
    whole = fixed(list(zip(*pairs, strict=True)), languages)
    rows = []
    for size in sizes:
        slipped = set(pairs[first + size : second]) & whole
        left = {*pairs[:first], *slipped, *pairs[second + size :]} & whole
        sources = [pair.src for pair in [*pairs[:second], *pairs[second + size :]]]
        targets = [pair.tgt for pair in [*pairs[:first], *pairs[first + size :]]]
        kept = fixed([sources, targets], languages)
        n_realigned, n_wrong, n_lost = len(slipped & kept), len(kept - whole - set(pairs)), len(left - kept)
        precision = percent(len(kept) - n_wrong, len(kept), 2)
        counts = [f"{len(slipped):,}", percent(n_realigned, len(slipped), 2), str(n_wrong), precision, str(n_lost)]
        rows.append([str(size), *counts, percent(n_lost, len(left), 2)])
    header = ["lines missing", "pairs between", "realigned %", "wrong", "right %", "lost", "lost %"]
    print(as_markdown(header, rows))


def train(
    config_path: Path,
    pairs: Sequence[SentencePair],
    kinds: dict[str, Noise],
    languages: LanguagePair,
    added: float,
    arguments: Sequence[str],
) -> None:
    """Train on clean, noisy and filtered text, and print the scores."""
    folder = (load_config(config_path).run.dir / "noise").absolute()
    mixed = mixture(pairs, kinds, added, seed=1)
    reasons = apply(filters_for(mixed, languages), [noisy.pair for noisy in mixed])
    texts = {
        "clean": list(pairs),
        "noisy": [noisy.pair for noisy in mixed],
        "filtered": [noisy.pair for noisy, reason in zip(mixed, reasons, strict=True) if reason is None],
    }
    header, rows = ("text", "pairs", "BLEU", "chrF2", "length of the translations"), []
    command = [sys.executable, "-m", "mtformer"]
    for name, text in texts.items():
        run = folder / name
        run.mkdir(parents=True, exist_ok=True)
        files = dict(zip(("src", "tgt"), (str(run / f"train.{language}") for language in languages), strict=True))
        for file, lines in zip(files.values(), zip(*text, strict=True), strict=True):
            Path(file).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        settings = [f"--set=data.train={json.dumps([files])}", f"--set=run.dir={folder}", f"--set=run.name={name}"]
        subprocess.run([*command, "train", str(config_path), *settings, *arguments], check=True)
        evaluated = subprocess.run(
            [*command, "eval", "--json", "--engine", "torch", "--model", str(run)], check=True, capture_output=True
        )
        found = json.loads(evaluated.stdout)
        bleu, chrf = (score["score"] for score in found["scores"][:2])
        rows.append([name, f"{len(text):,}", f"{bleu:.1f}", f"{chrf:.1f}", f"{100 * found['length_ratio']:.0f} %"])
    print(as_markdown(header, rows))


def main() -> None:
    """Read the text, inject noise, and print what is found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="a source, as in src:train.en.gz,tgt:train.de.gz")
    parser.add_argument("--pair", required=True, help="the languages, as in en-de")
    parser.add_argument("--pairs", type=int, help="take a random sample of this size")
    parser.add_argument("--added", type=float, action="append", help="the share of noise to add (0.1 and 0.5)")
    parser.add_argument("--seed", type=int, default=2, help="of the noise, and of the sample")
    parser.add_argument("--other", type=Path, help="a text in a third language")
    parser.add_argument("--speed", action="store_true", help="print how fast the rules are")
    parser.add_argument("--slips", type=int, nargs="+", metavar="LINES", help="how many lines are missing")
    parser.add_argument("--lost", type=int, metavar="PAIRS", help="print so many pairs that the rules lose")
    parser.add_argument("--train", type=Path, help="a config: train on clean, noisy and filtered text")
    parser.add_argument("--set", action="append", default=[], help="settings of those runs")
    arguments = parser.parse_args()
    languages = parse_pair(arguments.pair)
    pairs = list(ParallelText([parse_source(arguments.data, *languages)], *languages))
    if arguments.pairs and arguments.pairs < len(pairs):
        pairs = random.Random(arguments.seed).sample(pairs, arguments.pairs)
    other = list(read_lines(arguments.other)) if arguments.other else []
    kinds = Kinds(pairs, other, languages, seed=arguments.seed).all()
    shares = arguments.added or [0.1, 0.5]
    if arguments.speed:
        report_speed(pairs, kinds, languages)
    elif arguments.slips:
        report_slips(pairs, languages, arguments.slips)
    elif arguments.lost:
        report_lost(pairs, kinds, languages, shares[0], arguments.lost)
    elif arguments.train:
        train(arguments.train, pairs, kinds, languages, shares[-1], [f"--set={one}" for one in arguments.set])
    else:
        report(pairs, kinds, languages, shares)


if __name__ == "__main__":
    run_program(main)
