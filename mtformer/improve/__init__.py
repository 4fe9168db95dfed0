"""More from the same text: teachers, their translations, and a model that learns from all of it, in one command."""
