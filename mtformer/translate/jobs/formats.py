"""How translations are printed."""

import json
from collections.abc import Sequence

from mtformer.translate.jobs.documents import Paragraph
from mtformer.translate.jobs.options import Format
from mtformer.translate.translation import Translation


def formatted(source: Paragraph, translations: Sequence[Translation], format: Format, n_best: int) -> str:
    """Return what is printed for a line, or for a paragraph of a document.

    In text form, ``n_best`` translations are a block of as many lines, and an empty one. Where the search found fewer,
    empty lines fill the block, so that a program can count.
    """
    match format:
        case Format.text if n_best == 1:
            return source.laid_out(translations[0].text) + _pharaoh(translations[0], " ||| ") + "\n"
        case Format.text:
            texts = [t.text + _pharaoh(t, " ||| ") for t in translations]
            return "".join(f"{text}\n" for text in [*texts, *[""] * (n_best + 1 - len(texts))])
        case Format.tsv:
            rows = ((rank, f"{t.score:.4f}", t.text + _pharaoh(t, "\t")) for rank, t in enumerate(translations, 1))
            return "".join(f"{source.number}\t{rank}\t{score}\t{text}\n" for rank, score, text in rows)
        case Format.json:
            found = [_json_object(translation) for translation in translations]
            values = {"line": source.number, "src": source.text, "translations": found}
            return json.dumps(values, ensure_ascii=False) + "\n"


def _pharaoh(translation: Translation, before: str) -> str:
    """Return the word alignment, if there is one."""
    return "" if translation.alignment is None else before + translation.alignment.pharaoh()


def _json_object(translation: Translation) -> dict[str, object]:
    aligned = {} if translation.alignment is None else {"alignment": translation.alignment.to_dict()}
    return {
        "text": translation.text,
        "score": round(translation.score, 4),
        "log_prob": round(translation.log_prob, 4),
        "confidence": round(translation.confidence, 4),
        "tokens": translation.tokens,
        "token_log_probs": [round(log_prob, 4) for log_prob in translation.token_log_probs],
        "terms": [term._asdict() for term in translation.terms],
        "notes": translation.notes,
        **aligned,
    }
