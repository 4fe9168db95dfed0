"""A lesson: the page of an explanation that contains the model, so that the reader can type and experiment."""

from typing import Any

from mtformer.browser.pack import ENGINE_ASSETS, pack, weights_element
from mtformer.bundle.format import Bundle
from mtformer.explain.page import ALL_KINDS, ASSETS, Contents, Focus, Language, assemble_page
from mtformer.model.architecture import ACTIVATIONS
from mtformer.model.weights import count_parameters
from mtformer.support.errors import UserError
from mtformer.support.page import BASE64

MAX_LESSON_BYTES = 20_000_000  # what one can send to a class

# The worker runs the scripts up to the engine, which is the last of its own.
WORKER_ASSETS = [
    *ENGINE_ASSETS[:-1],
    *(("mtformer.explain", f"live_{name}.js") for name in ("model", "blocks", "trace")),
    ENGINE_ASSETS[-1],
]
_ASSETS = [
    *WORKER_ASSETS,
    ("mtformer.explain", "lesson.css"),
    *ASSETS[:-1],
    *(("mtformer.explain", f"{name}.js") for name in ("controls", "link", "lesson")),
    ASSETS[-1],
]


def require_small(bundle: Bundle) -> None:
    """Make sure that a lesson with this model is small enough to be sent around.

    Raises:
        UserError: it is not.
    """
    n_parameters = count_parameters(bundle.model)
    if n_parameters * BASE64 > MAX_LESSON_BYTES:
        raise UserError(
            f"the model has {n_parameters / 1e6:,.0f} million parameters: a page with it would take "
            f"{n_parameters * BASE64 / 1e6:,.0f} MB, more than the {MAX_LESSON_BYTES / 1e6:g} MB of a lesson"
        )


def render_lesson(
    bundle: Bundle, explanation: dict[str, Any], focus: Focus = ALL_KINDS, language: Language = "en"
) -> str:
    """Return a self-contained HTML page with a model that explains the reader's own sentences.

    Args:
        bundle: the model.
        explanation: what :meth:`mtformer.explain.explanation.Explanation.to_dict` returns: the sentences, the prefix
            and the search with which the page opens.
        focus: the attention that the page shows first.
        language: of the page.

    Raises:
        UserError: the model is too large, or a page cannot run it.
    """
    require_small(bundle)
    packed = pack(bundle)
    first, *others = explanation["traces"]
    text = first["source"]["text"]
    chosen = [step["candidates"][step["chosen"]] for step in first["steps"]]
    live = {
        "engine": packed.header,
        "lesson": describe_lesson(bundle),
        "text": text,
        "other": others[0]["source"]["text"] if others else "",
        "prefix": [candidate["token"]["id"] for candidate in chosen if candidate["forced"]],
        "why_not": first["why_not"],
    }
    contents = Contents(explanation | {"traces": [], "live": live}, focus, language)
    return assemble_page(text, language, contents.at(), _ASSETS, weights=weights_element(packed))


def describe_lesson(bundle: Bundle) -> dict[str, Any]:
    """Return the argument of ``new LiveExplainer(…)`` in JavaScript: the prefix ids, and the activation's formula."""
    prefixes = bundle.tokenizer.prefixes
    return {
        "prefixes": {"src": list(prefixes.src), "tgt": list(prefixes.tgt)},
        "formula": ACTIVATIONS[bundle.header.architecture.activation].formula,
    }
