"""Explanations of translations, one at a time: each takes as much memory as a large batch."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import Any

from mtformer.config import LanguagePair
from mtformer.serve.errors import ServiceError
from mtformer.serve.models import Models
from mtformer.translate.translator import Translator

_MOST = 8  # at a time: one is computed, the others wait
_RETRY_AFTER = 5  # seconds, when so many wait


class Explanations:
    """A thread that explains translations, and a short queue."""

    def __init__(self, models: Models) -> None:
        """Explain translations of these models."""
        self._models = models
        self._thread = ThreadPoolExecutor(1, "explain")
        self._places = BoundedSemaphore(_MOST)

    async def explain(
        self, pair: LanguagePair, text: str, *, prefix: str | None = None, why_not: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Return how a sentence is translated, as ``mtformer explain --format json`` prints it.

        Raises:
            UserError: the sentence cannot be explained.
            ServiceError: too many others wait, or the model cannot be loaded.
        """
        if not self._places.acquire(blocking=False):
            raise ServiceError(503, "too many explanations wait; try again later", retry_after=_RETRY_AFTER)
        future = self._thread.submit(self._explain, pair, text, prefix=prefix, why_not=why_not)
        future.add_done_callback(lambda _: self._places.release())
        return await asyncio.wrap_future(future)

    def _explain(self, pair: LanguagePair, text: str, *, prefix: str | None, why_not: Sequence[str]) -> dict[str, Any]:
        from mtformer.explain import explanation

        bundle = self._models.bundle(pair)
        explainer = Translator.load(bundle).explainer()
        model = explanation.describe(bundle, bundle.header.title)
        return explanation.explain(explainer, text, model=model, prefix=prefix, why_not=why_not).to_dict()

    def close(self) -> None:
        """Wait for the explanation that is being computed; the others are given up."""
        self._thread.shutdown(cancel_futures=True)
