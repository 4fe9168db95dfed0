"""Alignments: from attention to links between words and parts of texts."""

import json
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch
from conftest import BOS_ID, EOS_ID, Project, make_project, sentence_pairs, write_pairs
from engines import align
from phrasebook_measures import concepts

from mtformer.bundle.format import load_bundle, save_bundle
from mtformer.bundle.header import AlignmentHead
from mtformer.config import ModelConfig, TokenizerConfig
from mtformer.engines.torch import TorchEngine
from mtformer.model.attention import record_attention
from mtformer.model.transformer import Transformer
from mtformer.phrasebook.splits import held_out
from mtformer.search.alignment import choose_heads
from mtformer.search.engine import AlignRequest
from mtformer.support.errors import UserError
from mtformer.text.cutting import cut, cut_alike
from mtformer.text.pairs import SentencePair
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.train import train_tokenizer
from mtformer.text.tokenizer.vocabulary import normalize
from mtformer.text.words import word_spans
from mtformer.translate.alignment import Alignment
from mtformer.translate.translator import Translator


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    pairs = [SentencePair(*pair) for pair in sentence_pairs(200)]
    return train_tokenizer(pairs, TokenizerConfig(vocab_size=320), "en", "de")


@pytest.fixture(scope="module")
def translator(trained: Project) -> Translator:
    return Translator.load(trained.folder / "runs/config", device="cpu")


def tokens_in(tokenizer: Tokenizer, text: str) -> list[tuple[str, str]]:
    """Return the tokens of ``text``, each with the part of it that its span covers."""
    ids = tokenizer.encode_src([text])[0][:-1]
    spans = tokenizer.src.spans(text, ids)
    return [(token, text[start:end]) for token, (start, end) in zip(tokenizer.src_tokens(ids), spans, strict=True)]


@pytest.mark.parametrize(
    "text",
    [
        "the red house sees my old friend.",
        "  two \t spaces\u00a0and\u3000wide ones ",
        "▁ marks ▁▁ a space▁",
        "<s> <0x41> </s>",
        "",
    ],
)
def test_tokens_cover_a_text_in_order_and_leave_out_only_spaces(tokenizer: Tokenizer, text: str) -> None:
    for token, part in tokens_in(tokenizer, text):
        if not token.startswith("<0x"):
            assert part == token.replace("▁", "")
    ids = tokenizer.encode_src([text])[0][:-1]
    spans = tokenizer.src.spans(text, ids)
    assert spans == sorted(spans)
    covered = {place for start, end in spans for place in range(start, end)}
    assert covered == {place for place, character in enumerate(text) if not character.isspace() and character != "▁"}


def test_a_character_spelled_in_bytes_is_the_span_of_each_byte(tokenizer: Tokenizer) -> None:
    found = tokens_in(tokenizer, "a 🎉é")
    assert [part for token, part in found if token.startswith("<0x")] == ["🎉"] * 4 + ["é"] * 2


@pytest.mark.parametrize("text", ["Cafe\u0301 u\u0308ber", "각나", "\u09c7\u09be", "x\u0327\u0301 a\u0301\u0327"])
def test_characters_that_normalization_changes_are_found_in_the_text_as_it_was(tokenizer: Tokenizer, text: str) -> None:
    decomposed = unicodedata.normalize("NFD", text)
    parts = [part for _, part in tokens_in(tokenizer, decomposed) if part]
    clusters = list(dict.fromkeys(parts))
    assert "".join(clusters) == "".join(decomposed.split())
    assert all(unicodedata.normalize("NFC", part) in normalize(text) for part in clusters)


def test_words_are_what_spaces_separate_and_characters_in_scripts_without_spaces() -> None:
    def words(text: str) -> list[str]:
        return [text[start:end] for start, end in word_spans(text)]

    german = '  Er sagte: "Ja!" –\u00a0und\tging. '
    assert words(german) == german.split()
    assert words("我是学生。 OK，iPhone15很好") == [*"我是学生。", "OK", "，", "iPhone15", *"很好"]
    assert words(" \u3000") == []


SRC, TGT = "I ate chips, yes.", "Ich habe Chips gegessen , ja."


def aligned(weights: list[list[float]]) -> Alignment:
    """Align SRC (I ate chip s , yes .) and TGT (Ich habe Chips gegessen , ja .) by (7, 7) weights."""
    src_spans = [(0, 1), (2, 5), (6, 10), (10, 11), (11, 12), (13, 16), (16, 17)]
    tgt_spans = [(0, 3), (4, 8), (9, 14), (15, 23), (24, 25), (26, 28), (28, 29)]
    return Alignment(SRC, TGT, src_spans, tgt_spans, [np.array(weights, dtype=np.float32)])


def test_links_and_words_of_known_weights() -> None:
    rows = [
        [0.9, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.1, 0.5, 0.2, 0.2, 0.0, 0.0, 0.0],
        [0.0, 0.4, 0.3, 0.3, 0.0, 0.0, 0.0],  # chip and s together outweigh ate
        [0.0, 0.3, 0.1, 0.1, 0.5, 0.0, 0.0],  # the comma attached to chips does not count
        [0.0, 0.1, 0.0, 0.0, 0.5, 0.0, 0.2],  # unless it is a comma that looks for it
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.8],
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.9],
    ]
    alignment = aligned(rows)
    assert alignment.pharaoh() == "0-0 1-1 1-3 2-2 2-4 3-5"
    texts = [(SRC[slice(*link.src)], TGT[slice(*link.tgt)]) for link in alignment.links()]
    assert texts == [
        ("I", "Ich"),
        ("ate", "habe"),
        ("ate", "Chips"),
        (",", "gegessen"),
        (",", ","),
        (".", "ja"),
        (".", "."),
    ]
    assert alignment.links()[3].weight == pytest.approx(0.5)


def test_blocks_are_aligned_as_the_whole_matrix_would_be() -> None:
    src, tgt = "one-two three.", "eins-zwei drei."
    spans = [(0, 3), (3, 4), (4, 7), (8, 13), (13, 14)], [(0, 4), (4, 9), (10, 14), (14, 15)]
    blocks = [np.array([[0.7, 0.3]]), np.array([[0.8, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.1, 0.9]])]  # cut in one-two
    cut = Alignment(src, tgt, *spans, [block.astype(np.float32) for block in blocks])
    whole = Alignment(src, tgt, *spans, [cut.weights])
    assert cut.weights.tolist()[0] == pytest.approx([0.7, 0.3, 0, 0, 0])
    assert cut.links() == whole.links()
    assert cut.word_links() == whole.word_links() == [(0, 0), (1, 1)]
    assert cut.word_weights() == whole.word_weights()
    assert cut.word_weights()[0].weight == pytest.approx((0.7 + 0.8) / 2)


def test_a_word_that_attends_to_nothing_has_no_link() -> None:
    assert aligned([[0.0] * 7] * 7).word_links() == []
    empty = Alignment("", "", [], [], [])
    assert (empty.pharaoh(), empty.links()) == ("", [])
    assert Alignment("", "ja", [], [(0, 2)], [np.empty((1, 0), dtype=np.float32)]).pharaoh() == ""


def test_the_weights_are_those_of_the_models_attention(translator: Translator, trained: Project) -> None:
    assert isinstance(translator.engine, TorchEngine)
    src, tgt = translator.tokenizer.encode_src(["my old friend."])[0], [40, 50, 60]
    longer = translator.tokenizer.encode_src(["my old friend sees the red house."])[0]
    _, weights, nothing = align(translator.engine, [longer, src, src], [[70] * 9, tgt, []])
    with record_attention(translator.engine.model) as recorded, torch.inference_mode():
        translator.engine.model(torch.tensor([src]), torch.ones(1, len(src)).bool(), torch.tensor([[BOS_ID, *tgt]]))
    heads = load_bundle(trained.folder / "runs/config/model.safetensors").header.alignment_heads
    [recorded_weights] = recorded["decoder_layers.0.cross_attention"]  # (1, H, T + 1, S) of the one layer
    steps = [slice(1, None) if head.reading else slice(None, -1) for head in heads]
    rows = [recorded_weights[0, head.head, step] for head, step in zip(heads, steps, strict=True)]
    expected = torch.stack(rows).mean(dim=0)
    np.testing.assert_allclose(weights, expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-5)
    assert nothing.shape == (0, len(src))


@pytest.mark.slow
def test_a_model_learns_to_reverse_what_it_has_not_seen_and_aligns_it(tmp_path: Path) -> None:
    project = make_project(tmp_path, max_steps=600, learning_rate=0.005, validate_every=300)
    train = reversed_numbers(1_000, seed=1)
    unseen = [pair for pair in reversed_numbers(60, seed=2) if pair not in train]
    assert len(unseen) > 15
    write_pairs(tmp_path, "train", train)
    write_pairs(tmp_path, "valid", unseen)
    result = project.mtformer("train", project.config, "--set", "tokenizer.vocab_size=290")
    assert result.status == 0, result.stderr
    # About 70, depending on the rounding of the machine that trains the model.
    assert load_bundle(tmp_path / "runs/config/model.safetensors").header.scores["bleu"] > 40
    pairs = reversed_numbers(100, seed=3)
    translator = Translator.load(tmp_path / "runs/config", device="cpu")
    alignments = translator.align([src for src, _ in pairs], [tgt for _, tgt in pairs])
    links = [(pair, src, tgt) for pair, alignment in enumerate(alignments) for src, tgt in alignment.word_links()]
    n_words = [len(tgt.split()) for _, tgt in pairs]
    assert len(links) == sum(n_words)
    # How many are right depends on the rounding of the machine that trains the model: 0.7 to 0.85; by chance 0.3.
    assert np.mean([src == n_words[pair] - 1 - tgt for pair, src, tgt in links]) > 0.6


def reversed_numbers(n: int, seed: int) -> list[tuple[str, str]]:
    """Draw ``n`` sequences of numbers, with their translations in reverse order."""
    random = np.random.default_rng(seed)
    english = "one two three four five six seven eight nine ten".split()
    german = "eins zwei drei vier fünf sechs sieben acht neun zehn".split()
    drawn = [random.integers(10, size=random.integers(2, 6)) for _ in range(n)]
    return [(" ".join(english[i] for i in row), " ".join(german[i] for i in row[::-1])) for row in drawn]


def test_a_pair_longer_than_the_model_is_aligned_in_parts(translator: Translator) -> None:
    src, tgt = "the red house sees my old friend.", "das rote Haus sieht mein alter Freund."
    small = replace(translator, max_length=len(translator.tokenizer.encode_src([src])[0]) + 2)
    [alone] = translator.align([src], [tgt])
    [alignment] = small.align([" ".join([src] * 5)], [" ".join([tgt] * 5)])
    links = [(s + 7 * part, t + 7 * part) for part in range(5) for s, t in alone.word_links()]
    assert alignment.word_links() == links
    assert [block.shape for block in alignment.blocks] == [alone.weights.shape] * 5
    assert alignment.weights.shape == tuple(5 * size for size in alone.weights.shape)


def test_changed_texts_are_aligned_as_they_are_written(translator: Translator) -> None:
    src, tgt = "the red house sees my old friend.", "das rote Haus sieht mein alter Freund."
    [usual] = translator.align([src], [tgt])
    [capitals, two] = translator.align(
        [src.upper(), f"  {src} 🎉  {src.upper()}"], [tgt.upper(), f"{tgt} 🎉 {tgt.upper()}"]
    )
    assert capitals.word_links() == usual.word_links()
    assert capitals.src_spans == usual.src_spans
    texts = [two.src[start:end] for start, end in dict.fromkeys(two.src_spans)]  # the emoji's four bytes have one span
    assert "".join(texts) == "".join(two.src.split())


def test_threads_that_align_and_translate_do_not_disturb_each_other(translator: Translator) -> None:
    sources, targets = zip(*sentence_pairs(20, seed=5), strict=True)
    expected = [alignment.pharaoh() for alignment in translator.align(sources, targets)]
    translations = translator.translate(sources)
    with ThreadPoolExecutor(3) as pool:
        aligned = [pool.submit(translator.align, sources, targets) for _ in range(6)]
        translated = [pool.submit(translator.translate, sources) for _ in range(3)]
        assert all([found.pharaoh() for found in job.result()] == expected for job in aligned)
        assert all([t[0].text for t in job.result()] == [t[0].text for t in translations] for job in translated)


@pytest.mark.parametrize(("sources", "targets"), [("a", ["b"]), (["a"], "b"), (["a", "b"], ["c"])])
def test_align_refuses_lists_that_do_not_match(translator: Translator, sources: list[str], targets: list[str]) -> None:
    with pytest.raises(UserError, match="a list of as many translations"):
        translator.align(sources, targets)


def test_a_text_is_cut_at_sentences_else_at_words_else_between_characters() -> None:
    tokens = ["▁a", "b", "c", "d.", "▁e", "f", "▁g", "h"]
    assert cut(tokens, 8) == [8]
    assert cut(tokens, 6) == [4, 4]
    assert cut([token.strip(".") for token in tokens], 6) == [6, 2]
    assert cut(["a"] * 10, 4) == [4, 4, 2]
    assert cut(["a", "<0xE4>", "<0xBD>", "<0xA0>", "b"], 3) == [3, 2]
    assert cut([], 5) == [0]
    assert cut(["a"] * 3, 1) == [1, 1, 1]
    with pytest.raises(ValueError, match="at most 0"):
        cut(["a"], 0)


def test_a_translation_is_cut_where_its_source_is() -> None:
    sentences = ["▁a", "b", "c."] * 8
    assert cut_alike(sentences, [6, 6]) == [12, 12]
    assert cut_alike(sentences, [5, 7]) == [9, 15]
    assert cut_alike(sentences, [24]) == [24]
    assert sum(cut_alike(["▁a"], [3, 3, 3])) == 1
    assert cut_alike([], [3, 3]) == [0, 0]


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", "We-Wir playing-spielen piano-Klavier now-jetzt thief-Dieb wearing-trägt shirt-Hemd"),
        ("zh", "We-我们 playing-弹 piano-钢琴 now-现在 thief-小偷 wearing-穿 shirt-衬衫"),
    ],
)
def test_the_phrasebook_knows_which_of_its_words_mean_the_same(language: str, expected: str) -> None:
    saying = held_out("test")[0]
    assert saying.en == "We are playing the piano now, but the thief is not wearing a shirt."
    found = [
        f"{saying.en[slice(*concept.src)]}-{saying.text(language)[slice(*concept.tgt)]}"
        for concept in concepts(saying, "en", language)
    ]
    assert found == expected.split()


@pytest.mark.parametrize("language", ["de", "zh"])
def test_the_parts_of_a_meaning_do_not_share_words(language: str) -> None:
    n_words = n_found = 0
    for saying in held_out("test"):
        found = concepts(saying, "en", language)
        for spans in (sorted(concept.src for concept in found), sorted(concept.tgt for concept in found)):
            assert all(before[1] <= after[0] for before, after in pairwise(spans))
        n_words += len(saying.en.split())
        n_found += sum(len(saying.en[slice(*concept.src)].split()) for concept in found)
    assert n_found > 0.5 * n_words  # the others are articles, auxiliaries and prepositions


def test_translate_prints_alignments_in_every_format(trained: Project) -> None:
    text = "the red house sees my old friend."
    command = ("translate", "--model", "runs/config", "--alignments", "--device", "cpu", "--n-best", "2")
    [first, second, _blank] = trained.mtformer(*command, text).stdout.splitlines()
    translation, pharaoh = first.split(" ||| ")
    assert translation == "das rote Haus sieht mein alter Freund."
    links = [tuple(map(int, link.split("-"))) for link in pharaoh.split()]
    assert [tgt for _, tgt in sorted(links, key=lambda link: link[1])] == list(range(7))
    rows = [line.split("\t") for line in trained.mtformer(*command, "--format", "tsv", text).stdout.splitlines()]
    assert [row[4] for row in rows] == [pharaoh, second.split(" ||| ")[1]]
    found = json.loads(trained.mtformer(*command, "--format", "json", text).stdout)["translations"][0]["alignment"]
    assert found == {
        "src_words": text.split(),
        "tgt_words": translation.split(),
        "links": [list(link) for link in links],
    }
    plain = trained.mtformer(*(option for option in command if option != "--alignments"), text).stdout
    assert plain.splitlines()[0] == translation


def test_an_empty_line_and_an_empty_translation_have_no_links(trained: Project, translator: Translator) -> None:
    result = trained.mtformer("translate", "--model", "runs/config", "--alignments", stdin="\n")
    assert result.stdout == " ||| \n"
    assert [found.pharaoh() for found in translator.align(["", "a", ""], ["", "", "b"])] == ["", "", ""]


def test_training_chooses_heads_and_the_bundle_keeps_them(trained: Project, tmp_path: Path) -> None:
    path = trained.folder / "runs/config/model.safetensors"
    bundle = load_bundle(path)
    heads = bundle.header.alignment_heads
    assert heads
    save_bundle(tmp_path / "again.safetensors", bundle)
    assert load_bundle(tmp_path / "again.safetensors").header.alignment_heads == heads
    missing = AlignmentHead(layer=1, head=0, reading=False)
    header = bundle.header.model_copy(update={"alignment_heads": (missing,)})
    save_bundle(tmp_path / "spoiled.safetensors", replace(bundle, header=header))
    with pytest.raises(UserError, match="alignment_heads names a head that the model does not have"):
        load_bundle(tmp_path / "spoiled.safetensors")


@pytest.mark.parametrize("n_same", [0, 400])
def test_a_head_that_links_words_consistently_is_chosen_among_others(n_same: int) -> None:
    """Attention is written by hand: head (1, 0) of the step that reads a token looks at the same word, others not.

    Text may begin with thousands of tokens that say nothing.
    """
    rng = np.random.default_rng(1)
    sources = [[10] * 8 + [EOS_ID]] * n_same + [[*rng.integers(10, 40, 8).tolist(), EOS_ID] for _ in range(60)]
    targets = [[token + 100 for token in src[:-1]] for src in sources]

    def weights() -> torch.Tensor:
        drawn = torch.from_numpy(rng.random((2, 2, 9, 9), dtype=np.float32))
        drawn[1, 0, 1:] = torch.eye(9)[:8]
        return drawn / drawn.sum(dim=-1, keepdim=True)

    assert chosen_by(weights, sources, targets) == [AlignmentHead(layer=1, head=0, reading=True)]


def test_all_heads_of_a_layer_are_chosen_if_they_align_better_together() -> None:
    """Each of the two heads sees every other token of the source; attention of the other layer is arbitrary."""
    rng = np.random.default_rng(1)
    sources = [[*rng.permutation(np.arange(10, 40))[:8].tolist(), EOS_ID] for _ in range(60)]
    targets = [[token + 100 for token in src[:-1]] for src in sources]

    def weights() -> torch.Tensor:
        drawn = torch.from_numpy(rng.random((2, 2, 9, 9), dtype=np.float32))
        drawn[1] = torch.full((2, 9, 9), 0.1)
        for i in range(8):
            drawn[1, i % 2, i + 1, i] = 1
        return drawn / drawn.sum(dim=-1, keepdim=True)

    expected = [AlignmentHead(layer=1, head=head, reading=True) for head in range(2)]
    assert chosen_by(weights, sources, targets) == expected


def test_a_head_is_not_joined_by_one_that_hardly_helps_it() -> None:
    """One head is right in all places but the last, which the other head knows; alone, that one is arbitrary."""
    rng = np.random.default_rng(1)
    sources = [[*rng.permutation(np.arange(10, 20))[:8].tolist(), EOS_ID] for _ in range(60)]
    targets = [[token + 100 for token in src[:-1]] for src in sources]

    def weights() -> torch.Tensor:
        drawn = torch.from_numpy(rng.random((2, 2, 9, 9), dtype=np.float32))
        drawn[0, 1, :8] = 100 * torch.eye(9)[:8]
        drawn[0, 1, 0] = 1 / 9 if rng.random() < 0.05 else drawn[0, 1, 0]
        return drawn / drawn.sum(dim=-1, keepdim=True)

    assert chosen_by(weights, sources, targets) == [AlignmentHead(layer=0, head=1, reading=False)]


def test_an_older_choice_from_several_layers_is_narrowed_to_the_heads_that_every_engine_can_read(
    trained: Project,
) -> None:
    header = load_bundle(trained.folder / "runs/config/model.safetensors").header
    predicting, reading = (AlignmentHead(layer=0, head=head, reading=bool(head)) for head in (0, 1))
    another = AlignmentHead(layer=0, head=2, reading=False)

    def group(*heads: AlignmentHead) -> tuple[AlignmentHead, ...]:
        return header.model_copy(update={"alignment_heads": heads}).alignment_group

    assert group(predicting, reading) == (reading,)
    assert group(predicting, another, reading) == (predicting, another)


def test_a_head_is_chosen_even_if_no_word_says_anything_about_its_translation() -> None:
    pairs = list(product((10, 11), range(20, 26)))
    sources, targets = [[src, EOS_ID] for src, _ in pairs], [[tgt] for _, tgt in pairs]
    assert len(chosen_by(lambda: torch.ones(2, 2, 2, 2), sources, targets)) == 1


def test_no_head_is_chosen_by_long_pairs_alone() -> None:
    assert chosen_by(lambda: torch.ones(2, 2, 101, 101), [[10] * 100 + [EOS_ID]], [[20] * 100]) == []


def chosen_by(
    weights: Callable[[], torch.Tensor], sources: list[list[int]], targets: list[list[int]]
) -> list[AlignmentHead]:
    """Return the heads chosen of a model with 2 layers and 2 heads whose attention in each pair is ``weights``."""
    sizes = ModelConfig(d_model=8, n_heads=2, d_ff=8, n_encoder_layers=1, n_decoder_layers=2)
    model = Transformer(sizes.architecture(src_vocab_size=300, tgt_vocab_size=300, joint=True, max_length=16))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mtformer.search.alignment.cross_attention",
            lambda model, requests: (weights() for _ in requests),
        )
        return choose_heads(model, list(map(AlignRequest, sources, targets)))


def test_alignments_do_not_go_with_the_text_of_documents(trained: Project) -> None:
    result = trained.mtformer(
        "translate", "--model", "runs/config", "--alignments", "--document", stdin="a small dog\n"
    )
    assert (result.status, result.stdout) == (2, "")
    assert "--alignments cannot be shown in the text of --document: use --format tsv or json" in result.stderr
