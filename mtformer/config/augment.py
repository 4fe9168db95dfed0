"""The section of a config that says how training pairs are varied."""

from typing import Annotated

from pydantic import Field

from mtformer.config.section import Section

Share = Annotated[float, Field(ge=0, le=1)]


class AugmentConfig(Section):
    """The shares of the training pairs that each epoch varies; a pair may get several kinds of variations."""

    typos: Share = 0.1
    """Typos in the source: letters swapped, left out, doubled, or replaced by a neighbour on the keyboard."""
    upper: Share = 0.1
    """Both sides IN CAPITALS. Languages without case stay as they are, and so do their translations."""
    title: Share = 0.05
    """Both Sides in Title Case, with or without the short words."""
    unpunctuated: Share = 0.05
    """Both sides without the mark at their end."""
    joined: Share = 0.05
    """Followed by the next pair on the same line; the next pair stays by itself as well."""
    numbers: Share = 0.02
    """Numbers of both sides replaced by others; or one inserted, where the sides share none."""
    placeholders: Share = 0.02
    """A placeholder such as `{name}` or `%s` inserted into both sides."""
    tags: Share = 0.02
    """Tags such as `<b>` around both sides or a word that they share."""
    urls: Share = 0.02
    """A URL or an e-mail address inserted into both sides."""
    emoji: Share = 0.05
    """An emoji inserted into both sides."""
