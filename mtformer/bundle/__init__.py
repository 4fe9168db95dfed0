"""The model file: its header, its format, and reading it without torch."""
