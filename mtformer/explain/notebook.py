"""A trace that shows itself in a notebook."""

import html
from dataclasses import dataclass, field

from mtformer.explain.explanation import Explanation, describe_architecture
from mtformer.explain.page import render_page
from mtformer.explain.record import Explainer
from mtformer.explain.trace import Trace

_PIXELS = 760  # the height of the page in a notebook


@dataclass(frozen=True, repr=False, kw_only=True)
class NotebookTrace(Trace):
    """A trace that a notebook shows as the page of ``mtformer explain``."""

    explanation: Explanation = field(metadata={"key": None})

    @classmethod
    def of(cls, trace: Trace, explainer: Explainer, *, src_lang: str | None, prefix: str | None) -> "NotebookTrace":
        """Add the facts about the model and the search that the page shows to a trace."""
        architecture = explainer.engine.model.architecture
        model = {"name": None, "step": None, **describe_architecture(architecture, src_lang, explainer.tgt_lang)}
        explanation = Explanation(model, explainer.options, prefix, (trace,))
        return cls(**vars(trace), explanation=explanation)

    def __repr__(self) -> str:
        """Return the text form of a plain trace."""
        return repr(self.explanation.traces[0])

    def _repr_html_(self) -> str:
        """Return the page in a frame, where its styles and scripts meet nothing else of the notebook."""
        page = html.escape(render_page(self.explanation.to_dict()))
        return (
            f'<iframe srcdoc="{page}" title="{html.escape(repr(self))}" sandbox="allow-scripts" '
            f'style="width: 100%; height: {_PIXELS}px; border: 0"></iframe>'
        )
