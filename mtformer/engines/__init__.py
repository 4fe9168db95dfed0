"""Engines, which run a model: torch or CTranslate2."""
