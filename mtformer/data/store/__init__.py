"""The store: the text and the tokens of a corpus on disk, read once and shared by runs."""
