"""The service behind all interfaces of a server: it translates texts for a caller, within limits."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request

from mtformer.config import LanguagePair
from mtformer.serve.admission import Admission, RequestLimits
from mtformer.serve.database import Database
from mtformer.serve.errors import ClientGoneError, ServiceError
from mtformer.serve.explanations import Explanations
from mtformer.serve.keys import ANYONE, Caller, Keys, RateLimiter
from mtformer.serve.metrics import Metrics
from mtformer.serve.models import LONGEST_CODE, Models, Requirements
from mtformer.serve.query import Answer, Query
from mtformer.serve.results import Results
from mtformer.serve.scheduler import Job, Scheduler
from mtformer.serve.store import Store
from mtformer.support.errors import MtformerError, UserError
from mtformer.text.languages import english_name, matches_language, may_be_written_in
from mtformer.text.lines import without_surrogates
from mtformer.translate.guard import with_languages_noted
from mtformer.translate.plan import Plan
from mtformer.translate.translation import FLAG, Translation
from mtformer.translate.translator import Translator

T = TypeVar("T")

_MOST_WAITING = 500_000  # tokens: what waits behind more would only time out
_RETRY_AFTER = 5  # seconds, when so much waits
_MOST_READ = 2  # documents at a time: a large one takes a gigabyte
_BULK = 0.25  # the weight of files beside other requests
_MOST_DETECTED = 1_000  # characters of a text that its language is detected by
# The probability of all languages that are translated together, below which a text is surely in another one, or may be:
# so has no sentence of Multi30k and Tatoeba, or one in 1,000, and of those in a third language 97 %, or 99 %.
_FOREIGN, _DOUBTFUL = 0.02, 0.1
_LEAST_SHOWN = 0.02  # the probability of a language that /detect names


class Guess(NamedTuple):
    """The language of a text.

    Attributes:
        language: its code.
        probability: of this language, among all.
        is_foreign: whether the text cannot be translated, since it surely is in another language than those that are.
        is_doubtful: whether it may be in another language.
    """

    language: str
    probability: float
    is_foreign: bool = False
    is_doubtful: bool = False


class Service:
    """Models, a scheduler, and who may use them."""

    def __init__(self, models: Models, database: Database, keys: Keys | None, settings: RequestLimits) -> None:
        """Start the threads of the scheduler.

        Args:
            models: the models.
            database: for glossaries, usage and documents that wait; it is closed with the service.
            keys: who may send requests; None for anyone.
            settings: limits of all.
        """
        self.models, self.database, self.keys, self.settings = models, database, keys, settings
        self.store, self.results = Store(database), Results(database)
        self.metrics, self.rate_limiter = Metrics(), RateLimiter()
        self.places_to_read = asyncio.Semaphore(_MOST_READ)
        self.scheduler = Scheduler(models.n_threads, observe=self.metrics.observe_batch)
        self.is_ready = False
        self.explanations = Explanations(models)
        add_gauge, scheduler = self.metrics.add_gauge, self.scheduler
        add_gauge("waiting_texts", "Texts and searches that wait for a thread.", lambda: scheduler.n_waiting)
        add_gauge("waiting_tokens", "Their tokens, about.", lambda: scheduler.waiting_tokens)
        add_gauge("model_bytes", "Bytes of the weights of loaded models, about.", lambda: models.loaded_bytes)

    def remember(self) -> None:
        """Write usage and results to the database, as is done now and then.

        Raises:
            ServiceError: the database does not answer.
        """
        self.store.flush()
        self.results.beat()

    def close(self) -> None:
        """Finish the accepted requests."""
        self.is_ready = False
        self.explanations.close()
        self.scheduler.close()
        with suppress(ServiceError):  # which is logged
            self.remember()
        self.database.close()

    def caller(self, key: str) -> Caller:
        """Return the caller with a key.

        Raises:
            ServiceError: the server has keys, and this is none of them.
        """
        if self.keys is None:
            return ANYONE
        found = self.keys.find(key)
        if found is None:
            problem = "this server needs a key" if not key else "this key is not one of this server's"
            raise ServiceError(403, f"{problem}: ask whoever runs the server for one")
        return found

    def pair(self, src_lang: str | None, tgt_lang: str) -> LanguagePair:
        """Return the direction that a request means.

        Args:
            src_lang: the source language, in any spelling; None for any language.
            tgt_lang: the target language, in any spelling.

        Raises:
            ServiceError: no model has it.
        """
        sources = self.models.languages if src_lang is None else [src_lang]
        pair = next(filter(None, (self.models.direction(source, tgt_lang) for source in sources)), None)
        if pair is None:
            source = "" if src_lang is None else f"from {src_lang:.{LONGEST_CODE}} "
            asked = f"{source}to {tgt_lang:.{LONGEST_CODE}}"
            raise ServiceError(400, f"this server does not translate {asked}; it translates {self._known_pairs}")
        return pair

    @property
    def _known_pairs(self) -> str:
        return ", ".join(map(str, self.models.pairs[:10])) + ", …" * (len(self.models.pairs) > 10)

    @asynccontextmanager
    async def admitted(self, caller: Caller, *, is_bulk: bool = False) -> AsyncIterator[Admission]:
        """Admit a request while the block runs.

        If the block fails, the charged characters are refunded, except for those that were translated.

        Args:
            caller: who sends it.
            is_bulk: whether it is a file: it may have more characters than others, and take as long as it needs, since
                nobody waits for it as for a sentence.

        Raises:
            ServiceError: the caller has too many requests, or too many others wait.
        """
        if self.scheduler.waiting_tokens > _MOST_WAITING:
            raise ServiceError(503, "too many requests wait; try again later", retry_after=_RETRY_AFTER)
        admission = Admission(self.settings, self.rate_limiter, self.store, caller, is_bulk=is_bulk)
        with self.rate_limiter.admit(caller):
            try:
                yield admission
            except BaseException:
                admission.give_back()
                raise
            finally:
                self.metrics.characters.inc(admission.n_characters)

    async def translate(self, request: Request, caller: Caller, query: Query) -> list[Answer]:
        """Translate texts for a caller.

        Raises:
            ServiceError: they exceed a limit, take too long, the client goes, or the server fails.
            UserError: a model cannot do what is wanted.
        """
        async with self.admitted(caller) as admission:
            await admission.charge(query.texts)
            return await self.translated(request, admission, query)

    async def translated(self, request: Request | None, admission: Admission, query: Query) -> list[Answer]:
        """Translate texts for a request that is admitted, and charged for them.

        Args:
            request: when its client goes, the texts are not translated. None if no client waits.
            admission: that of the request.
            query: the texts.

        Raises:
            ServiceError: they take too long, the client goes, or the server fails.
            UserError: a model cannot do what is wanted.
        """
        async with admission.in_time():
            answers, jobs = await self._prepared(admission, query)
            results = await self.finished(request, list(jobs))
        for places, of_job in zip(jobs.values(), results, strict=True):
            for place, translations in zip(places, of_job, strict=True):
                answers[place] = answers[place]._replace(translations=translations)
        self._count_notes(answers)
        return answers

    async def stream(self, caller: Caller, query: Query) -> AsyncGenerator[Answer | MtformerError | None, None]:
        """Yield None once the request is admitted, and then the answer or error of each text, in order, as it comes.

        Raises:
            ServiceError: the texts exceed a limit, or take too long.
            UserError: a model cannot do what is wanted.
        """
        loop, changed, outcomes = asyncio.get_running_loop(), asyncio.Event(), dict[int, Any]()

        def take(places: Sequence[int], index: int, outcome: list[Translation] | MtformerError) -> None:
            outcomes[places[index]] = outcome
            if not isinstance(outcome, MtformerError):
                admission.n_translated += len(query.texts[places[index]])
            changed.set()

        async with self.admitted(caller) as admission:
            await admission.charge(query.texts)
            async with admission.in_time():
                answers, jobs = await self._prepared(admission, query)
            kept = [text for text, answer in zip(query.texts, answers, strict=True) if answer.translations]
            admission.n_translated = sum(map(len, kept))
            yield None
            try:
                for job, places in jobs.items():
                    job.on_text = partial(loop.call_soon_threadsafe, partial(take, places))
                    self.scheduler.submit(job)
                for place, answer in enumerate(answers):
                    async with admission.in_time():
                        while not answer.translations and place not in outcomes:
                            await changed.wait()
                            changed.clear()
                    outcome = outcomes.pop(place, answer.translations)
                    if isinstance(outcome, MtformerError):
                        yield outcome
                    else:
                        answer = answer._replace(translations=outcome)
                        self._count_notes([answer])
                        yield answer
            finally:
                for job in jobs:
                    job.future.cancel()  # if the client has gone
                admission.give_back()

    async def languages(self, texts: Sequence[str], query: Query) -> list[Guess]:
        """Return the language of each of some texts, and how probable it is.

        Raises:
            ServiceError: all that are not blank are in a language that is not translated to the target.
        """
        if query.source is not None:
            return [Guess(query.source, 1.0)] * len(texts)
        detected = ["\n".join(texts)] if query.is_one_language else texts
        guesses = await asyncio.to_thread(self._sources, detected, query.target)
        foreign = [guess.language for guess in guesses if guess.is_foreign]
        if foreign and len(foreign) == sum(bool(text.strip()) for text in detected):
            raise ServiceError(
                400,
                f"{foreign[0]} is not supported: the text seems to be in {english_name(foreign[0])}, and this server "
                f"translates {self._known_pairs}; if it is in another language, name that as its source",
            )
        return guesses * len(texts) if query.is_one_language else guesses

    def detect(self, text: str) -> list[Guess]:
        """Return the possible languages of a text, the most probable first; if none is probable, one of the models."""
        from mtformer.data.clean.language import identify  # which imports numpy

        [found] = identify([text[:_MOST_DETECTED]])
        ranked = [Guess(*each) for each in found.ranked(self.models.languages)]
        likely = [guess for guess in ranked if guess.probability >= _LEAST_SHOWN]
        return likely or [next((guess for guess in ranked if guess.language in self.models.languages), ranked[0])]

    def _sources(self, texts: Sequence[str], tgt_lang: str) -> list[Guess]:
        """Return the language of each text: one that can be translated to the target language, or the target itself.

        A text that surely is in none of these has its own language, and one without a letter of the target language is
        taken for one to translate.
        """
        from mtformer.data.clean.language import identify

        languages = self.models.languages
        sources = [code for code in languages if self.models.direction(code, tgt_lang)]
        possible = [code for code in languages if code in sources or matches_language(code, tgt_lang)]
        known = possible if sources else languages  # then any other direction is refused
        guesses = []
        for found in identify([text[:_MOST_DETECTED] for text in texts]):
            share = found.probability_of_any(known)
            if share < _FOREIGN:
                guesses.append(Guess(*found.ranked(languages)[0], is_foreign=True))
            else:
                choice = known if may_be_written_in(found.text, tgt_lang) else sources
                language = max(choice or known, key=found.probability)
                guesses.append(Guess(language, found.probability(language), is_doubtful=share < _DOUBTFUL))
        return guesses

    async def _prepared(
        self, admission: Admission, query: Query
    ) -> "tuple[list[Answer], dict[Job[list[Translation]], list[int]]]":
        """Return answers without translations, and for each source language a job with the places of its texts.

        Blank texts and those in the target language have their answers by now, and so have those that cannot be
        translated among others that can.
        """
        texts = list(map(without_surrogates, query.texts))
        guesses = await self.languages(texts, query)
        sources = {guess.language for guess in guesses if not guess.is_foreign}
        pairs = {source: self._pair_unless_same(source, query.target) for source in sources}
        answers: list[Answer] = []
        places: dict[LanguagePair, list[int]] = {}
        for place, (text, guess) in enumerate(zip(texts, guesses, strict=True)):
            pair = None if guess.is_foreign else pairs[guess.language]
            is_kept = pair is None or not text.strip()
            kept = [Translation(text, notes=_notes_on_copy(guess) if text.strip() else ())] if is_kept else []
            answers.append(Answer(guess.language, guess.probability, kept))
            if pair is not None and not is_kept:
                places.setdefault(pair, []).append(place)
        jobs = {}
        for pair, of_pair in places.items():
            translator = await self.translator(pair, query.wanted)
            plan = partial(_plan_noted, query.plan, translator)
            jobs[self.job(translator, plan, [texts[place] for place in of_pair], admission)] = of_pair
        return answers, jobs

    def _pair_unless_same(self, src_lang: str, tgt_lang: str) -> LanguagePair | None:
        """Return the direction of a request; None if it is from a language of the models to itself.

        Raises:
            ServiceError: no model has it.
        """
        is_known = any(matches_language(tgt_lang, code) for code in self.models.languages)
        return None if is_known and matches_language(src_lang, tgt_lang) else self.pair(src_lang, tgt_lang)

    def job(
        self, translator: Translator, plan: Callable[[str], Plan[T]], texts: Sequence[str], admission: Admission
    ) -> Job[T]:
        """Return a job for a request."""
        weight = _BULK if admission.is_bulk else 1.0
        return Job(plan, texts, translator.engine, key=admission.caller.name, weight=weight)

    async def translator(self, pair: LanguagePair, wanted: Requirements) -> Translator:
        """Return the translator for a request; load it if necessary.

        Raises:
            UserError: the model cannot do what is wanted.
            ServiceError: the model cannot be loaded.
        """
        ready = self.models.ready(pair, wanted)
        return await asyncio.to_thread(self.models.translator, pair, wanted) if ready is None else ready

    async def finished(self, request: Request | None, jobs: Sequence[Job[T]]) -> list[list[T]]:
        """Wait for the results of jobs.

        Raises:
            ServiceError: the client goes, or a text cannot be translated.
            UserError: a text cannot be translated as it is wanted.
        """
        waiting = asyncio.gather(*(asyncio.wrap_future(self.scheduler.submit(job)) for job in jobs))
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            await asyncio.wait((waiting, gone), return_when=asyncio.FIRST_COMPLETED)
            if not waiting.done():
                raise ClientGoneError
            results = waiting.result()
        finally:
            gone.cancel()
            waiting.cancel()
            waiting.add_done_callback(lambda done: done.cancelled() or done.exception())  # or asyncio would log it
        for outcome in chain.from_iterable(results):
            if isinstance(outcome, MtformerError):
                raise outcome if isinstance(outcome, UserError) else ServiceError(500, str(outcome))
        return results  # type: ignore[return-value]

    def _count_notes(self, answers: Sequence[Answer]) -> None:
        for answer in answers:
            for flag in answer.translations[0].flags:
                self.metrics.notes.labels(flag.partition(":")[0]).inc()


def _notes_on_copy(guess: Guess) -> tuple[str, ...]:
    """Return the notes on a text that is not translated because of its language."""
    if guess.is_foreign:
        return (f"{FLAG}not translated: source in {guess.language}",)
    return (f"{FLAG}not translated: source may not be in {guess.language}",) if guess.is_doubtful else ()


def _plan_noted(
    plan: Callable[[Translator, str], Plan[list[Translation]]], translator: Translator, text: str
) -> Plan[list[Translation]]:
    """Translate a text, and note if it is in another language than the translator's."""
    translations = yield from plan(translator, text)
    [noted] = with_languages_noted([text], [translations], translator.src_lang)
    return noted


async def _disconnected(request: Request | None) -> None:
    """Wait until the client closes the connection; forever where there is none."""
    if request is None:
        await asyncio.get_running_loop().create_future()
    else:
        while (await request.receive())["type"] != "http.disconnect":
            pass
