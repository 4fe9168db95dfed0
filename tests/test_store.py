"""The store: text read once, tokens, and what can go wrong with them."""

import gzip
import logging
import os
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Project, make_project, sentence_pairs, varied_corpus, write_pairs
from pydantic import JsonValue
from test_corpus import rows_of

from mtformer.config import LanguagePair, Source, TextFiles, TokenizerConfig, TsvFile, load_config, parse_source
from mtformer.data import store, tokens
from mtformer.data.augment import Augmenter
from mtformer.data.clean.filters import Filters, reason_of
from mtformer.data.sources.parallel import ParallelText
from mtformer.data.store import StoredText, identity_of, pack, stored_text, unpack
from mtformer.data.tokens import Corpus, Encoder, TokenStore, Variation
from mtformer.support.cache import from_cache
from mtformer.support.errors import UserError
from mtformer.support.files import write_folder_atomically
from mtformer.support.processes import workers
from mtformer.support.processes.ranks import Ranks
from mtformer.text.pairs import SentencePair, fingerprint
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.training import run

EN_DE = LanguagePair("en", "de")
PAIRS = [SentencePair(*pair) for pair in sentence_pairs(250)]
NASTY = [
    SentencePair("", ""),
    SentencePair("a\rb\x0b\x0c\x1c\x85\u2028\u2029c", " x "),
    SentencePair("👩‍👩‍👧 e\u0301 \t z", "\ufeff薯片\u0000"[:-1]),
]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for each test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/mtformer"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of a few pairs, so that a small text has many of them; this process does all the work."""
    monkeypatch.setattr(workers, "n_cpus", lambda: 1)
    for module in (store, tokens):
        monkeypatch.setattr(module, "CHUNK", 20)


@pytest.fixture
def n_reads(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each source has been read."""
    reads = Counter[str]()
    examples = ParallelText.examples

    def counted(text: ParallelText, *args: Any) -> Any:
        reads.update(str(getattr(source, "tsv", "files")) for source in text.sources)
        return examples(text, *args)

    monkeypatch.setattr(ParallelText, "examples", counted)
    return reads


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(PAIRS, TokenizerConfig(vocab_size=320), "en", "de")


def tsv(path: Path, pairs: Sequence[SentencePair]) -> TsvFile:
    path.write_bytes("".join(f"{pair.src}\t{pair.tgt}\n" for pair in pairs).encode())
    return TsvFile(tsv=path)


def text_of(*sources: Source) -> ParallelText:
    return ParallelText(sources, "en", "de")


def corpus_of(text: StoredText, tokenizer: Tokenizer, **limits: Any) -> Corpus:
    return TokenStore(text, Encoder(tokenizer, **{"max_length": 40, "max_ratio": 6.0} | limits)).corpus


# The text


def test_pairs_of_any_text_survive_packing() -> None:
    assert unpack(pack([*NASTY, *PAIRS])) == [*NASTY, *PAIRS]
    assert unpack(pack([])) == []
    with pytest.raises(ValueError, match="line feed"):
        pack([SentencePair("a\nb", "c")])


def test_a_stored_text_is_the_text_with_its_places_and_its_fingerprint(tmp_path: Path) -> None:
    names = write_pairs(tmp_path, "a", [*NASTY])
    files = TextFiles(src=tmp_path / names["src"], tgt=tmp_path / names["tgt"])
    text = text_of(files, tsv(tmp_path / "b.tsv", PAIRS))
    found = stored_text(text)
    expected = [*text]
    assert len(found) == len(expected) == len(NASTY) + 250
    assert [*found] == expected
    assert found[:] == expected and found[30:70:3] == expected[30:70:3] and found[-1] == expected[-1]
    assert [found[i] for i in (0, 1, 2, 100)] == [expected[i] for i in (0, 1, 2, 100)]
    assert found.digest == fingerprint(text).digest
    assert found.n_pairs == [len(NASTY), 250]
    assert found.sources.tolist() == [0] * len(NASTY) + [1] * 250
    assert found.lines.tolist() == [*range(1, len(NASTY) + 1), *range(1, 251)]
    assert found.names == [str(tmp_path / "a.en"), str(tmp_path / "b.tsv")]
    with pytest.raises(IndexError):
        found[len(expected)]


class NoCars(Filters):
    """A filter."""

    def __init__(self, key: str = "no cars") -> None:
        super().__init__([], EN_DE)
        self._key = key

    def pair_rules(self, pairs: Sequence[SentencePair]) -> list[str | None]:
        return ["copy" if "car" in pair.src else None for pair in pairs]


def test_filters_drop_pairs_and_their_reasons_are_counted_with_lines(tmp_path: Path, tokenizer: Tokenizer) -> None:
    text = text_of(tsv(tmp_path / "a.tsv", PAIRS[:100]), tsv(tmp_path / "b.tsv", PAIRS[100:]))
    found = stored_text(text, {EN_DE: NoCars()})
    kept = [index for index, pair in enumerate(PAIRS) if "car" not in pair.src]
    assert [*found] == [PAIRS[index] for index in kept]
    assert found.lines.tolist() == [index + 1 if index < 100 else index - 99 for index in kept]
    assert found.n_pairs == [100, 150]
    assert found.digest == fingerprint(PAIRS).digest
    dropped = [index for index, pair in enumerate(PAIRS) if "car" in pair.src]
    assert sum(drops.total for drops in found.drops) == len(dropped)
    assert found.drops[0].lines == {reason_of("copy"): [index + 1 for index in dropped if index < 100][:5]}
    corpus = corpus_of(found, tokenizer)
    assert corpus.dropped == {reason_of("copy"): len(dropped)}
    assert corpus.lines.tolist() == found.lines.tolist() and corpus.sources.tolist() == found.sources.tolist()
    assert len(stored_text(text)) == 250


def test_what_is_unchanged_is_not_read_again_and_what_has_changed_is(tmp_path: Path, n_reads: Counter[str]) -> None:
    source = tsv(tmp_path / "a.tsv", PAIRS)
    first = stored_text(text_of(source))
    os.utime(source.tsv, (0, 0))
    moved = Path(tmp_path / "moved.tsv")
    source.tsv.rename(moved)
    again = stored_text(text_of(TsvFile(tsv=moved)))
    assert n_reads.total() == 1
    assert again.key == first.key and again.names == [str(moved)]
    tsv(moved, [*PAIRS[:-1], SentencePair("new", "neu")])
    assert stored_text(text_of(TsvFile(tsv=moved)))[-1] == ("new", "neu")
    assert n_reads.total() == 2
    assert len(stored_text(text_of(TsvFile(tsv=moved)), {EN_DE: NoCars()})) < 250
    assert n_reads.total() == 3
    stored_text(ParallelText([TsvFile(tsv=moved)], "en", "zh"))
    assert n_reads.total() == 4


def test_compressed_and_plain_files_are_texts_of_their_own_with_equal_fingerprints(tmp_path: Path) -> None:
    plain = tsv(tmp_path / "a.tsv", PAIRS)
    packed = tmp_path / "a.tsv.gz"
    packed.write_bytes(gzip.compress(plain.tsv.read_bytes()))
    one, other = stored_text(text_of(plain)), stored_text(text_of(TsvFile(tsv=packed)))
    assert one.key != other.key and one.digest == other.digest


def test_built_in_text_is_identified_by_its_settings_and_its_grammar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def identity(size: int, seed: int) -> JsonValue:
        return identity_of(text_of(parse_source(f"builtin:phrasebook,size:{size},seed:{seed}", "en", "de")))[0]

    assert identity(50, 1) == identity(50, 1)
    assert identity(50, 1) != identity(51, 1) != identity(51, 2)
    before = identity(50, 1)
    grammar = shutil.copytree(Path(store.__file__).parents[1] / "phrasebook", tmp_path / "phrasebook")
    monkeypatch.setattr("mtformer.phrasebook.__file__", str(grammar / "__init__.py"))
    store._grammar_digest.cache_clear()
    assert identity(50, 1) == before
    with (grammar / "tables/names.tsv").open("a", encoding="utf-8") as names:
        names.write("Bruno\tBruno\t布鲁诺\tman\n")
    store._grammar_digest.cache_clear()
    assert identity(50, 1) != before
    store._grammar_digest.cache_clear()


def test_a_source_without_pairs_is_stored_as_such(tmp_path: Path, tokenizer: Tokenizer) -> None:
    text = text_of(tsv(tmp_path / "empty.tsv", []), tsv(tmp_path / "a.tsv", PAIRS[:5]))
    assert stored_text(text).n_pairs == [0, 5]
    empty = stored_text(text_of(tsv(tmp_path / "empty.tsv", [])))
    assert (len(empty), [*empty], empty.n_pairs) == (0, [], [0])
    assert len(corpus_of(empty, tokenizer)) == 0


def test_rules_that_remember_pairs_see_all_of_them_in_order(tmp_path: Path) -> None:
    pairs = [SentencePair(f"{i}", f"Nr. {i}") for i in range(45)]
    text = text_of(tsv(tmp_path / "a.tsv", pairs), tsv(tmp_path / "b.tsv", [*pairs[20:], SentencePair("x", "y")]))
    found = stored_text(text, {EN_DE: Filters(["duplicates"], EN_DE)})
    assert [*found] == [*pairs, ("x", "y")]
    assert [drops.counts for drops in found.drops] == [{}, {"duplicate (data.filters: duplicates)": 25}]


def test_the_filters_of_a_config_apply_to_its_training_text(project: Project) -> None:
    result = project.mtformer("train", project.config, "--set", "data.filters=[duplicates]", "--dry-run")
    distinct = len(set(sentence_pairs(400, seed=1)))
    assert f"{distinct} training pairs, {400 - distinct} dropped" in result.stderr
    assert f"{400 - distinct}: duplicate (data.filters: duplicates)" in result.stderr
    assert "400 lines are dropped" in result.stderr


def test_a_pipe_is_read_once_and_its_tokens_are_known_again(
    tmp_path: Path, own_cache: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped() -> StoredText:
        path = tmp_path / "pipe"
        os.mkfifo(path)
        writer = threading.Thread(target=lambda: path.write_bytes((tmp_path / "a.tsv").read_bytes()))
        writer.start()
        found = stored_text(text_of(TsvFile(tsv=path)))
        writer.join()
        path.unlink()
        return found

    tsv(tmp_path / "a.tsv", PAIRS)
    first = piped()
    rows = rows_of(corpus_of(first, tokenizer))
    assert [*first] == PAIRS and [folder.parent.name for folder in folders(own_cache)] == ["tokens"]
    again = piped()
    assert again.key == first.key and rows_of(corpus_of(again, tokenizer)) == rows
    assert len(folders(own_cache)) == 1
    monkeypatch.setattr(store, "__version__", "99")
    assert piped().key != first.key


@pytest.mark.parametrize("name", ["train.en", "valid.en"])
@pytest.mark.parametrize("rank", [0, 1])
def test_several_processes_do_not_wait_for_a_pipe(
    rank: int, name: str, project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "joined_ranks", lambda device: nullcontext(Ranks(rank, 2)))
    monkeypatch.setattr(run, "named_commits", lambda config: config)
    monkeypatch.setattr(run, "local_device", lambda device, ranks: device)
    config = load_config(project.config)
    monkeypatch.setattr(Ranks, "by_first", lambda ranks, work: config)
    (project.folder / name).unlink()
    os.mkfifo(project.folder / name)
    with pytest.raises(UserError, match="several processes cannot read a pipe"):
        run.train(config, fresh=True)


def test_a_sample_has_distinct_pairs_in_order_and_depends_on_the_seed(tmp_path: Path) -> None:
    text = stored_text(text_of(tsv(tmp_path / "a.tsv", [SentencePair(f"{i}", f"Nr. {i}") for i in range(200)])))
    numbers = [int(pair.src) for pair in text.sampled(50, 1)]
    assert len(set(numbers)) == 50 and numbers == sorted(numbers) and numbers[-1] > 100
    assert [pair.src for pair in text.sampled(50, 1)] == [str(number) for number in numbers]
    assert text.sampled(50, 2) != text.sampled(50, 1)
    assert text.sampled(200, 1) is text


# Tokens


def test_stored_tokens_are_those_of_the_text_in_memory(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pairs = [*PAIRS[:30], SentencePair("", "leer"), *PAIRS[30:], SentencePair("dog " * 50, "Hund " * 50), *PAIRS[:7]]
    text = stored_text(text_of(tsv(tmp_path / "a.tsv", pairs)))
    corpus = corpus_of(text, tokenizer)
    expected = Encoder(tokenizer, max_length=40, max_ratio=6.0).corpus(pairs)
    assert rows_of(corpus) == rows_of(expected)
    assert corpus.src.lengths.tolist() == expected.src.lengths.tolist()
    assert corpus.dropped == expected.dropped == {"a side is empty": 1, "longer than 40 tokens (data.max_length)": 1}
    assert corpus.numbers.tolist() == expected.numbers.tolist() == [*range(30), *range(31, 251), *range(252, 259)]
    assert corpus.lines.tolist() == [number + 1 for number in corpus.numbers]
    assert corpus.src[0].dtype == np.uint16


def test_tokens_are_encoded_again_for_other_limits_and_other_tokenizers(
    tmp_path: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = stored_text(text_of(tsv(tmp_path / "a.tsv", PAIRS)))
    other = train_tokenizer(PAIRS, TokenizerConfig(vocab_size=310), "en", "de")
    corpora = [corpus_of(text, tokenizer), corpus_of(text, tokenizer, max_length=14), corpus_of(text, other)]
    assert len(corpora[1]) < len(corpora[0]) and rows_of(corpora[2]) != rows_of(corpora[0])
    monkeypatch.setattr(Tokenizer, "encode_src", None)
    assert rows_of(corpus_of(text, tokenizer)) == rows_of(corpora[0])


class Shouter(Augmenter):
    """Puts every third pair in capitals, and another one in each epoch."""

    def __init__(self) -> None:
        pass

    def vary(self, pairs: Sequence[SentencePair], first: int, epoch: int) -> dict[int, SentencePair]:
        return {
            i: SentencePair(pair.src.upper(), pair.tgt.upper())
            for i, pair in enumerate(pairs)
            if (first + i) % 3 == epoch % 3
        }


def test_an_epoch_varies_pairs_and_never_which_are_used(tmp_path: Path, tokenizer: Tokenizer) -> None:
    pairs = [SentencePair("", "leer"), *PAIRS]
    text = stored_text(text_of(tsv(tmp_path / "a.tsv", pairs)))
    capitals = tokenizer.encode_src([pair.src.upper() for pair in PAIRS])
    capitals += tokenizer.encode_tgt([pair.tgt.upper() for pair in PAIRS])
    limit = max(map(len, capitals)) - 5
    encoder = Encoder(tokenizer, limit, 6.0)
    kept = TokenStore(text, encoder)
    plain = rows_of(kept.corpus)
    epochs = []
    for epoch in range(2):
        variation = Variation(encoder, epoch, Shouter())
        corpus = kept.varied(variation, ["shouted", epoch])
        in_memory = varied_corpus(encoder, pairs, variation)
        assert rows_of(corpus) == rows_of(in_memory)
        assert corpus.numbers.tolist() == kept.corpus.numbers.tolist() == in_memory.numbers.tolist()
        assert max(corpus.src.lengths.max(), corpus.tgt.lengths.max()) <= limit
        texts = [tokenizer.decode_src(src) for src, _ in rows_of(corpus)]
        shouted = [i for i, found in enumerate(texts) if found.isupper()]
        assert 40 < len(shouted) < 84 and all((i + 1) % 3 == epoch % 3 for i in shouted)
        unchanged = [i for i in range(len(plain)) if (i + 1) % 3 != epoch % 3]
        assert [rows_of(corpus)[i] for i in unchanged] == [plain[i] for i in unchanged]
        epochs.append(rows_of(corpus))
    assert epochs[0] != epochs[1]
    assert rows_of(kept.corpus) == plain


def test_the_tokens_of_an_epoch_are_removed_after_it_and_those_of_the_last_one_are_found_again(
    tmp_path: Path, own_cache: Path, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = stored_text(text_of(tsv(tmp_path / "a.tsv", PAIRS)))
    encoder = Encoder(tokenizer, 40, 6.0)
    kept = TokenStore(text, encoder)
    rows = [rows_of(kept.varied(Variation(encoder, epoch, augmenter=Shouter()), epoch)) for epoch in range(3)]
    assert len([path for path in (own_cache / "tokens").iterdir() if path.is_dir()]) == 2
    monkeypatch.setattr(Shouter, "vary", None)
    again = TokenStore(text, encoder).varied(Variation(encoder, 2, augmenter=Shouter()), 2)
    assert rows_of(again) == rows[2]


def test_a_run_that_ends_leaves_no_tokens_of_an_epoch(tmp_path: Path, own_cache: Path) -> None:
    project = make_project(tmp_path / "project", max_steps=2)
    run.train(
        load_config(project.config, [f"run.dir={tmp_path / 'runs'}", "data.augment=true", "tokenizer.vocab_size=380"])
    )
    assert [folder.parent.name for folder in folders(own_cache)] == ["text", "tokenizers", "tokens"]


# Faults


def folders(own_cache: Path) -> list[Path]:
    return sorted(path for path in own_cache.glob("*/*") if path.is_dir())


def damages(folder: Path) -> Iterator[None]:
    """Damage each file of a folder in several ways; undo each before the next."""
    for file in sorted(folder.iterdir()):
        kept = file.read_bytes()
        middle = len(kept) // 2
        for damaged in (None, b"", kept[:middle], kept[:middle] + bytes([kept[middle] ^ 4]) + kept[middle + 1 :]):
            file.unlink()
            if damaged is not None:
                file.write_bytes(damaged)
            yield


def test_a_damaged_store_is_rebuilt(
    tmp_path: Path, own_cache: Path, tokenizer: Tokenizer, n_reads: Counter[str]
) -> None:
    text = text_of(tsv(tmp_path / "a.tsv", PAIRS))
    rows = rows_of(corpus_of(stored_text(text), tokenizer))
    [of_text, of_tokens] = folders(own_cache)
    for n, _ in enumerate(damages(of_text), 2):
        assert [*stored_text(text)] == PAIRS
        assert n_reads.total() == n
    for _ in damages(of_tokens):
        assert rows_of(corpus_of(stored_text(text), tokenizer)) == rows


def test_a_store_of_another_version_is_left_alone(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch, n_reads: Counter[str]
) -> None:
    text = text_of(tsv(tmp_path / "a.tsv", PAIRS))
    stored_text(text)
    monkeypatch.setattr("mtformer.data.store.__version__", "99")
    assert [*stored_text(text)] == PAIRS
    assert n_reads.total() == 2 and len(folders(own_cache)) == 2


def test_a_text_that_is_removed_while_it_is_used_stays_readable(
    tmp_path: Path, own_cache: Path, tokenizer: Tokenizer
) -> None:
    text = stored_text(text_of(tsv(tmp_path / "a.tsv", PAIRS)))
    encoder = Encoder(tokenizer, 40, 6.0)
    kept = TokenStore(text, encoder)
    rows = rows_of(kept.corpus)
    subprocess.run(["rm", "-r", own_cache], check=True)
    assert [*text] == PAIRS and rows_of(kept.corpus) == rows
    assert len(kept.varied(Variation(encoder, 1, augmenter=Shouter()), 1)) == len(rows)


def test_a_source_that_changes_while_it_is_read_is_an_error(tmp_path: Path, own_cache: Path) -> None:
    source = tsv(tmp_path / "a.tsv", PAIRS)

    class Writer(NoCars):
        def pair_rules(self, pairs: Sequence[SentencePair]) -> list[str | None]:
            with source.tsv.open("a") as file:
                file.write("one more\tnoch eins\n")
            return super().pair_rules(pairs)

    with pytest.raises(UserError, match=rf"^{source.tsv} changed while it was being read: rerun when"):
        stored_text(text_of(source), {EN_DE: Writer("writer")})
    assert folders(own_cache) == []


def test_what_is_wrong_with_all_sources_is_reported_at_once(tmp_path: Path, own_cache: Path) -> None:
    broken = [tmp_path / f"{name}.tsv" for name in "ab"]
    for path in broken:
        path.write_text("a\tb\nno tab\n", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        stored_text(text_of(TsvFile(tsv=broken[0]), tsv(tmp_path / "c.tsv", PAIRS), TsvFile(tsv=broken[1])))
    assert all(f"{path}:2: this line has no tab" in str(caught.value) for path in broken)
    assert folders(own_cache) == []
    with pytest.raises(UserError, match="is a folder"):
        stored_text(text_of(TsvFile(tsv=tmp_path)))
    with pytest.raises(UserError, match=r"cannot read .*missing.tsv: No such file"):
        stored_text(text_of(TsvFile(tsv=tmp_path / "missing.tsv")))


@pytest.mark.parametrize("name", ["train", "valid"])
def test_sources_without_any_pair_are_named(tmp_path: Path, name: str) -> None:
    project = make_project(tmp_path)
    for language in ("en", "de"):
        (tmp_path / f"{name}.{language}").write_text("")
    with pytest.raises(UserError, match=rf"^there are no sentence pairs in {tmp_path}/{name}\.en$"):
        run.train(load_config(project.config, [f"run.dir={tmp_path / 'runs'}"]))


def test_a_cache_that_cannot_be_written_or_is_full_is_an_error_that_says_what_to_do(
    project: Project, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_cache.parent.mkdir()
    own_cache.write_text("a file", encoding="utf-8")
    result = project.mtformer("train", project.config)
    assert result.status == 1
    assert f"cannot write the cache {own_cache}" in result.stderr and "$XDG_CACHE_HOME" in result.stderr
    own_cache.unlink()

    def full(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("mtformer.data.arrays.ArrayWriter.append", full)
    result = project.mtformer("train", project.config)
    assert result.status == 1 and "Traceback" not in result.stderr
    assert "No space left on device; name another folder with $XDG_CACHE_HOME" in result.stderr
    assert folders(own_cache) == []
    monkeypatch.undo()


def test_of_two_that_need_the_same_text_one_reads_it(tmp_path: Path, n_reads: Counter[str]) -> None:
    text = text_of(tsv(tmp_path / "a.tsv", PAIRS))

    class Slow(NoCars):
        def pair_rules(self, pairs: Sequence[SentencePair]) -> list[str | None]:
            time.sleep(0.01)
            return super().pair_rules(pairs)

    found: list[StoredText] = []
    threads = [
        threading.Thread(target=lambda: found.append(stored_text(text, {EN_DE: Slow("slow")}))) for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert n_reads.total() == 1
    assert len({text.key for text in found}) == 1 and len(found) == 3
    assert [*found[0]] == [*found[2]]


def test_what_is_written_waits_for_nothing_but_itself(own_cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="mtformer")
    place = own_cache / "kind"

    def read(folder: Path) -> str | None:
        return folder.name if (folder / "file").exists() else None

    def cached(name: str, write: Callable[[Path], object]) -> str:
        return from_cache(place / name, read, write, max_bytes=1_000)

    def write(folder: Path) -> None:
        (folder / "file").write_bytes(b"")

    def write_two(folder: Path) -> None:
        assert cached("same-start-b", write) == "same-start-b"  # would wait for ever
        waiting.start()
        while "waiting for another process" not in caplog.text:
            time.sleep(0.001)
        write(folder)

    waiting = threading.Thread(target=cached, args=["same-start-a", None])  # finds what the other writes
    assert cached("same-start-a", write_two) == "same-start-a"
    waiting.join()
    assert f"waiting for another process, which is writing {place}/same-start-a" in caplog.text
    assert sorted(path.name for path in place.iterdir()) == ["same-start-a", "same-start-b"]  # and no locks


def test_a_folder_that_another_machine_writes_meanwhile_is_used(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some network file systems lock only within a machine."""
    place = own_cache / "kind" / "folder"

    def read(folder: Path) -> str | None:
        return (folder / "file").read_text() if (folder / "file").exists() else None

    def write(folder: Path) -> None:
        with monkeypatch.context() as other:
            other.setattr("mtformer.support.files._PROCESS", "0" * 8)
            write_folder_atomically(place, lambda folder: (folder / "file").write_text("of the other"))
        (folder / "file").write_text("of this one")

    assert from_cache(place, read, write, max_bytes=1_000) == "of the other"
    assert list(place.parent.iterdir()) == [place]


def test_what_was_used_last_stays_as_far_as_it_fits(own_cache: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "file").write_bytes(b"x" * int(folder.name.strip(".").split("-")[0]))

    for age, size in enumerate((100, 900, 300, 200)):
        folder = own_cache / "kind" / f"{size}-bytes"
        from_cache(folder, lambda folder: (folder / "file").exists() or None, write, max_bytes=10_000)
        os.utime(folder, (age, age))
    newest = own_cache / "kind" / "400-bytes"
    from_cache(newest, lambda folder: (folder / "file").exists() or None, write, max_bytes=1_000)
    assert sorted(folder.name for folder in folders(own_cache)) == ["100-bytes", "200-bytes", "300-bytes", "400-bytes"]


def test_a_run_reads_its_text_once_and_resumes_without_reading_it(
    tmp_path: Path, own_cache: Path, n_reads: Counter[str]
) -> None:
    project = make_project(tmp_path / "project", max_steps=2)
    overrides = [f"run.dir={tmp_path / 'runs'}"]
    run.train(load_config(project.config, overrides))
    assert n_reads == {"files": 3}  # training, validation and test
    run.train(load_config(project.config, [*overrides, "training.max_steps=3"]))
    assert n_reads == {"files": 5}
    subprocess.run(["rm", "-r", own_cache], check=True)
    run.train(load_config(project.config, [*overrides, "training.max_steps=4"]))
    assert n_reads == {"files": 8}
