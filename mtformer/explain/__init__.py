"""How one translation comes about: a trace of every step, in the terminal and as a page."""
