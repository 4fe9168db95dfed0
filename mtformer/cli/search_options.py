"""The options of the search, which every command has that translates."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated

import typer

from mtformer.cli.options import CONTROL, SEARCH, BeamOption, LengthPenaltyOption
from mtformer.config.search import REMOVED_OPTIONS

SearchSettings = dict[str, float | str | None]


def _options(
    beam_size: BeamOption = None,
    length_penalty: LengthPenaltyOption = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="fp32|bf16|int8",
            help="The number format of matrix products; bf16 and int8 are faster where the hardware supports them.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    sample: Annotated[
        bool, typer.Option("--sample", help="Draw translations at random by their probability.", rich_help_panel=SEARCH)
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Below 1, likely tokens become likelier.", rich_help_panel=SEARCH)
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(metavar="K", min=1, help="Sample from the K likeliest tokens.", rich_help_panel=SEARCH),
    ] = None,
    top_p: Annotated[
        float | None,
        typer.Option(
            metavar="P",
            help="Sample from the likeliest tokens that together have probability P.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="The seed of the samples.", rich_help_panel=SEARCH)
    ] = None,
    mbr: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Minimum Bayes risk: of N candidates, take the one most similar to all.",
            rich_help_panel=SEARCH,
        ),
    ] = None,
    min_length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="The minimum length of translations, in tokens.", rich_help_panel=CONTROL
        ),
    ] = None,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, help="The maximum length of translations, in tokens.", rich_help_panel=CONTROL
        ),
    ] = None,
    repetition_penalty: Annotated[
        float | None,
        typer.Option(
            metavar="THETA", min=1, help="Above 1, tokens are less likely to occur again.", rich_help_panel=CONTROL
        ),
    ] = None,
    no_repeat_ngram_size: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Never repeat N tokens in a row.", rich_help_panel=CONTROL),
    ] = None,
) -> None:
    """Declare the options; :func:`takes_search_options` gives them to a command."""


def takes_search_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` the options of the search in the place of its parameter ``search``, a dictionary of them."""
    removed = Annotated[str | None, typer.Option(hidden=True)]  # SearchConfig.updated says what to use instead
    options = inspect.signature(_options).parameters | {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=removed)
        for name in REMOVED_OPTIONS
    }
    own = inspect.signature(command)

    @wraps(command)
    def wrapped(**given: object) -> None:
        search = {name: given.pop(name) for name in options}
        command(**given, search={name: None if value is False else value for name, value in search.items()})

    parameters: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        parameters += options.values() if name == "search" else [parameter]
    vars(wrapped)["__signature__"] = own.replace(parameters=parameters)
    return wrapped
