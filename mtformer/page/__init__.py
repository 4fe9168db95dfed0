"""Pages that need nothing but themselves: one HTML file with its style, scripts and data inside, no network."""

from mtformer.page.html import MAX_PAGE_BYTES, assemble

__all__ = ["MAX_PAGE_BYTES", "assemble"]
