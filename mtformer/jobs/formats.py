"""How translations are printed."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtformer.pipeline import Translation  # imports numpy, which --help must not wait for


class Format(StrEnum):
    """How ``translate`` prints."""

    text = "text"
    tsv = "tsv"
    json = "json"


def formatted(number: int, text: str, translations: Sequence["Translation"], format: Format) -> str:
    """Return the output lines for line ``number``, which reads ``text``."""
    match format:
        case Format.text:
            return "".join(f"{t.text}\n" for t in translations)
        case Format.tsv:
            return "".join(f"{number}\t{rank}\t{t.score:.4f}\t{t.text}\n" for rank, t in enumerate(translations, 1))
        case Format.json:
            found = [_json_object(translation) for translation in translations]
            return json.dumps({"line": number, "src": text, "translations": found}, ensure_ascii=False) + "\n"


def _json_object(translation: "Translation") -> dict[str, object]:
    return {
        "text": translation.text,
        "score": round(translation.score, 4),
        "log_prob": round(translation.log_prob, 4),
        "tokens": translation.tokens,
        "token_log_probs": [round(log_prob, 4) for log_prob in translation.token_log_probs],
        "notes": translation.notes,
    }
