"""Short ways to ask an engine, for tests. Errors are raised."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mtformer.config import SearchOptions
from mtformer.search.constraints import Constraint
from mtformer.search.engine import AlignRequest, Engine, ScoreRequest, SearchRequest, results_of, succeeded
from mtformer.search.hypothesis import Hypothesis
from mtformer.translate.plan import Plan, run

Ids = Sequence[int]
T = TypeVar("T")


def given(result: T) -> Plan[T]:
    """Return a plan that asks for nothing."""
    yield from ()
    return result


def result_of(plan: Plan[T], engine: Engine | None = None) -> T:
    """Drive a plan to its end; without an engine, it may ask for nothing."""
    [result] = succeeded(run([plan], cast(Engine, engine)))
    return result


def request(src: Ids, limit: int, prefix: Ids = (), constraint: Constraint | None = None) -> SearchRequest:
    """Return a search with the default options."""
    return SearchRequest(src, SearchOptions(), limit, prefix, constraint)


def candidates(engine: Engine, requests: Sequence[SearchRequest], options: SearchOptions) -> list[list[Hypothesis]]:
    """Search with other options."""
    return results_of(engine, [replace(each, options=options) for each in requests])


def score(engine: Engine, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
    """Score pairs."""
    return results_of(engine, [ScoreRequest(*pair) for pair in zip(sources, targets, strict=True)])


def align(engine: Engine, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[NDArray[np.float32]]:
    """Align pairs."""
    return results_of(engine, [AlignRequest(*pair) for pair in zip(sources, targets, strict=True)])
