"""What all interfaces of a server are adapters of: texts to translations, for a caller, within limits."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Any, TypeVar

from starlette.requests import Request

from mtformer.config import LanguagePair, SearchConfig
from mtformer.serve.database import Database
from mtformer.serve.errors import ClientGoneError, ServiceError
from mtformer.serve.keys import ANYONE, Caller, Keys, Meter
from mtformer.serve.metrics import Metrics
from mtformer.serve.models import LONGEST_CODE, Models, Wanted
from mtformer.serve.results import Results
from mtformer.serve.scheduler import Job, Scheduler
from mtformer.serve.store import Store
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.glossary import Glossary
from mtformer.text.languages import matches_language
from mtformer.text.lines import without_surrogates
from mtformer.translate.plan import Plan
from mtformer.translate.translation import Translation
from mtformer.translate.translator import Translator

log = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_WAITING = 500_000  # tokens: what waits behind more would only time out
_MOST_EXPLANATIONS = 8  # at a time: one is computed, the others wait
_RETRY_AFTER = 5  # seconds, when so much waits
_LARGEST_BEAM = 16  # that a request may ask for: the time that a text takes grows with it
_WIDE = ("beam_size", "n_best", "mbr")  # options that widen the beam
# What requests may set; the others are for whoever runs the server.
OPTIONS = (
    *_WIDE,
    *("length_penalty", "min_length", "max_length", "repetition_penalty", "no_repeat_ngram_size"),
    *("sample", "temperature", "top_k", "top_p", "seed"),
)
_MOST_DETECTED = 1_000  # characters of a text that its language is detected by
_MOST_READ = 2  # documents at a time: a large one takes a gigabyte
_BULK_CHARACTERS = 10  # times as many as other requests files may have
_BULK = 0.25  # the weight of files beside other requests


@dataclass(frozen=True)
class Settings:
    """What a server allows.

    Attributes:
        max_characters: of the texts of one request.
        timeout: seconds that a request may take.
    """

    max_characters: int = 100_000
    timeout: float = 60.0


class Service:
    """Models, a scheduler, and who may use them."""

    def __init__(self, models: Models, database: Database, keys: Keys | None, settings: Settings) -> None:
        """Start the threads of the scheduler.

        Args:
            models: the models.
            database: for glossaries, usage and documents that wait; it is closed with the service.
            keys: who may send requests; None for anyone.
            settings: limits of all.

        Raises:
            UserError: the database cannot be used.
        """
        self.models, self.database, self.keys, self.settings = models, database, keys, settings
        self.store, self.results = Store(database), Results(database)
        self.metrics, self.meter = Metrics(), Meter()
        self._places_to_read = asyncio.Semaphore(_MOST_READ)
        self.scheduler = Scheduler(models.n_threads, observe=self.metrics.observe_batch)
        self.is_ready = False
        self._explainer = ThreadPoolExecutor(1, "explain")  # which takes as much memory as a large batch
        self._explaining = BoundedSemaphore(_MOST_EXPLANATIONS)
        for name, text, read in (
            ("waiting_texts", "Texts and searches that wait for a thread.", lambda: self.scheduler.n_waiting),
            ("waiting_tokens", "Their tokens, about.", lambda: self.scheduler.waiting_tokens),
            ("model_bytes", "Bytes of the weights of loaded models, about.", lambda: self.models.loaded_bytes),
        ):
            self.metrics.add_gauge(name, text, read)

    def remember(self) -> None:
        """Write what is to be written now and then.

        Raises:
            ServiceError: the database does not answer.
        """
        self.store.flush()
        self.results.beat()

    def close(self) -> None:
        """Finish what was accepted."""
        self.is_ready = False
        self._explainer.shutdown(cancel_futures=True)
        self.scheduler.close()
        with suppress(ServiceError):  # which is logged
            self.remember()
        self.database.close()

    def caller(self, key: str | None) -> Caller:
        """Return who sends a request with a key.

        Raises:
            ServiceError: the server has keys, and this is none of them.
        """
        if self.keys is None:
            return ANYONE
        found = None if key is None else self.keys.find(key)
        if found is None:
            problem = "this server needs a key" if not key else "this key is not one of this server's"
            raise ServiceError(403, f"{problem}: ask whoever runs the server for one")
        return found

    def pair(self, src_lang: str, tgt_lang: str) -> LanguagePair:
        """Return the direction that a request means.

        Raises:
            ServiceError: no model has it.
        """
        pair = self.models.direction(src_lang, tgt_lang)
        if pair is None:
            known = ", ".join(map(str, self.models.pairs[:10])) + ", …" * (len(self.models.pairs) > 10)
            asked = f"from {src_lang:.{LONGEST_CODE}} to {tgt_lang:.{LONGEST_CODE}}"
            message = f"this server does not translate {asked}; it translates {known}"
            raise ServiceError(400, message)
        return pair

    def detect(self, text: str) -> list[tuple[str, float]]:
        """Return the languages that a text may be in, of those of the models, with their probabilities, best first."""
        from mtformer.data.clean.language import probabilities  # which imports numpy

        [found] = probabilities([text[:_MOST_DETECTED]], self.models.languages)
        return sorted(found.items(), key=lambda each: -each[1])

    def source_of(self, text: str, tgt_lang: str) -> tuple[str, float]:
        """Return the language of a text that is to be translated, and how probable it is.

        It is one that can be translated to the target language, or that itself.
        """
        sources = [code for code in self.models.languages if self.models.direction(code, tgt_lang)]
        possible = [each for each in self.detect(text) if each[0] in sources or matches_language(each[0], tgt_lang)]
        return possible[0] if sources else self.detect(text)[0]

    @asynccontextmanager
    async def admitted(self, caller: Caller, texts: Sequence[str], *, is_bulk: bool = False) -> AsyncIterator[None]:
        """Count a request while the block runs; documents may have more characters than others.

        Raises:
            ServiceError: it exceeds a limit, too many others wait, or the database is needed and does not answer.
        """
        n_characters = sum(map(len, texts))
        most = self.settings.max_characters * (_BULK_CHARACTERS if is_bulk else 1)
        if n_characters > most:
            raise ServiceError(413, f"the texts have {n_characters:,} characters; a request may have {most:,}")
        async with self._counted(caller, n_characters):
            yield
        if caller.limits.characters_per_month is None:
            self.store.count(caller.name, n_characters)
        self.metrics.characters.add(n_characters)

    @asynccontextmanager
    async def reading(self, caller: Caller) -> AsyncIterator[None]:
        """Count a request while the block reads its document, of which nobody knows yet how many characters it has.

        Raises:
            ServiceError: it exceeds a limit, too many others wait, or the database is needed and does not answer.
        """
        async with self._counted(caller, 1) as month, self._places_to_read:
            yield
        if month is not None:
            self.store.count(caller.name, -1, month)

    @asynccontextmanager
    async def _counted(self, caller: Caller, n_characters: int) -> AsyncIterator[str | None]:
        """Take characters of a quota, and return the month that they are of; if the block fails, give them back."""
        if self.scheduler.waiting_tokens > _MOST_WAITING:
            raise ServiceError(503, "too many requests wait; try again later", retry_after=_RETRY_AFTER)
        quota, month = caller.limits.characters_per_month, None
        with self.meter.admit(caller, n_characters):
            if quota is not None:
                month = await self.database.run(self.store.take, caller.name, n_characters, quota)
                if month is None:
                    message = f"this key may translate {quota:,} characters a month, and has used them up"
                    raise ServiceError(456, message)
            try:
                yield month
            except BaseException:
                if month is not None:
                    self.store.count(caller.name, -n_characters, month)
                raise

    async def translate(
        self,
        request: Request | None,
        caller: Caller,
        texts: Sequence[str],
        wanted: Wanted,
        *,
        is_bulk: bool = False,
    ) -> list[list[Translation]]:
        """Translate the texts of a request, each into its best translations.

        Args:
            request: the request: when its client goes, its texts are not translated. None if no client waits.
            caller: who sends it.
            texts: any number of texts.
            wanted: how to translate them.
            is_bulk: whether they are those of a file, for which nobody waits as for a sentence.

        Raises:
            ServiceError: they exceed a limit, take too long, the client goes, or the server fails.
            UserError: the options cannot be used.
        """
        texts = list(map(without_surrogates, texts))
        async with self.admitted(caller, texts, is_bulk=is_bulk):
            translator = await self.translator(wanted)
            job = self.job(translator, translator.plan, texts, caller, is_bulk=is_bulk)
            results = await self.finished(request, job, is_bulk=is_bulk)
        self._count_notes([best for best, *_ in results])
        return results

    async def stream(
        self, request: Request, caller: Caller, texts: Sequence[str], wanted: Wanted
    ) -> AsyncIterator[list[Translation] | MtformerError]:
        """Yield the translations of texts in order, each as soon as it is there; see :meth:`translate`."""
        texts = list(map(without_surrogates, texts))
        loop, done = asyncio.get_running_loop(), dict[int, Any]()
        changed = asyncio.Event()

        def take(index: int, outcome: list[Translation] | MtformerError) -> None:
            done[index] = outcome
            changed.set()

        def tell(index: int, outcome: list[Translation] | MtformerError) -> None:
            loop.call_soon_threadsafe(take, index, outcome)

        async with self.admitted(caller, texts):
            translator = await self.translator(wanted)
            job = self.job(translator, translator.plan, texts, caller, on_text=tell)
            self.scheduler.submit(job)
            try:
                for index in range(len(texts)):
                    try:
                        async with asyncio.timeout(self.settings.timeout):
                            while index not in done:
                                await changed.wait()
                                changed.clear()
                    except TimeoutError:
                        raise self._late() from None
                    outcome = done.pop(index)
                    if not isinstance(outcome, MtformerError):
                        self._count_notes([outcome[0]])
                    yield outcome
            finally:
                job.future.cancel()  # if the client has gone

    def job(
        self,
        translator: Translator,
        plan: Callable[[str], Plan[T]],
        texts: Sequence[str],
        caller: Caller,
        *,
        is_bulk: bool = False,
        on_text: Callable[[int, T | MtformerError], object] | None = None,
    ) -> Job[T]:
        """Return the job of a caller."""
        weight = _BULK if is_bulk else 1.0
        return Job(plan, texts, translator.engine, key=caller.name, weight=weight, on_text=on_text)

    async def translator(self, wanted: Wanted) -> Translator:
        """Return the translator for a request, which may have to be loaded.

        Raises:
            UserError: the model cannot do what is wanted.
            ServiceError: the model cannot be loaded.
        """
        ready = self.models.ready(wanted)
        return await asyncio.to_thread(self.models.translator, wanted) if ready is None else ready

    async def finished(self, request: Request | None, job: Job[T], *, is_bulk: bool = False) -> list[T]:
        """Wait for the results of a job, for those of files as long as it takes.

        Raises:
            ServiceError: the client goes, time is up, or a text cannot be translated.
        """
        waiting = asyncio.wrap_future(self.scheduler.submit(job))
        gone = asyncio.ensure_future(_disconnected(request))
        timeout = None if is_bulk else self.settings.timeout
        try:
            await asyncio.wait((waiting, gone), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                job.future.cancel()
                if gone.done():
                    raise ClientGoneError
                raise self._late()
            outcomes = waiting.result()
        finally:
            gone.cancel()
            waiting.cancel()
        for outcome in outcomes:
            if isinstance(outcome, MtformerError):
                raise ServiceError(500, str(outcome))
        return outcomes  # type: ignore[return-value]

    async def explain(
        self, pair: LanguagePair, text: str, *, prefix: str | None, why_not: Sequence[str]
    ) -> dict[str, Any]:
        """Return how a sentence is translated: what ``mtformer explain --format json`` prints.

        Raises:
            UserError: the sentence cannot be explained.
            ServiceError: too many others wait, it takes too long, or the model cannot be loaded.
        """
        if not self._explaining.acquire(blocking=False):
            raise ServiceError(503, "too many explanations wait; try again later", retry_after=_RETRY_AFTER)
        future = self._explainer.submit(self._explain, pair, text, prefix=prefix, why_not=why_not)
        future.add_done_callback(lambda _: self._explaining.release())
        try:
            async with asyncio.timeout(self.settings.timeout):
                return await asyncio.wrap_future(future)
        except TimeoutError:
            raise self._late() from None

    def _explain(self, pair: LanguagePair, text: str, *, prefix: str | None, why_not: Sequence[str]) -> dict[str, Any]:
        from mtformer.explain import explanation

        bundle = self.models.bundle(pair)
        explainer = Translator.load(bundle).explainer()
        model = explanation.describe(bundle, bundle.header.title)
        return explanation.explain(explainer, text, model=model, prefix=prefix, why_not=why_not).to_dict()

    def _late(self) -> ServiceError:
        return ServiceError(504, f"the translation took more than {self.settings.timeout:g} s")

    def _count_notes(self, translations: Sequence[Translation]) -> None:
        for translation in translations:
            for flag in translation.flags:
                self.metrics.notes.add(note=flag.partition(":")[0])


def wanted(
    pair: LanguagePair,
    options: Mapping[str, Any] | None = None,
    *,
    alignments: bool = False,
    glossary: Glossary | None = None,
) -> Wanted:
    """Return what a request wants of a model.

    Raises:
        UserError: an option is none that requests may set, or its value is not allowed.
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    if unknown := [name for name in given if name not in OPTIONS]:
        raise UserError(f"there is no option {unknown[0]} here; there are {', '.join(OPTIONS)}")
    if given:
        SearchConfig().updated(**given)
    for name in _WIDE:
        if given.get(name, 0) > _LARGEST_BEAM:
            raise UserError(f"{name} = {given[name]}: a request may ask for {_LARGEST_BEAM} at most")
    return Wanted(pair, tuple(sorted(given.items())), alignments, glossary=glossary)


async def _disconnected(request: Request | None) -> None:
    """Wait until the client closes the connection; forever where there is none."""
    if request is None:
        await asyncio.get_running_loop().create_future()
    else:
        while (await request.receive())["type"] != "http.disconnect":
            pass
