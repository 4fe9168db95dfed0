"""Language detection among the languages of the models."""

from collections.abc import Sequence

from mtformer.serve.models import Models
from mtformer.text.languages import matches_language

_MOST_CHARACTERS = 1_000  # of a text that its language is detected by

Guess = tuple[str, float]  # a language and its probability


def detect(models: Models, texts: Sequence[str]) -> list[list[Guess]]:
    """Return the possible languages of each text, the most probable first."""
    from mtformer.data.clean.language import probabilities  # which imports numpy

    found = probabilities([text[:_MOST_CHARACTERS] for text in texts], models.languages)
    return [sorted(of_text.items(), key=lambda each: -each[1]) for of_text in found]


def detect_sources(models: Models, texts: Sequence[str], tgt_lang: str) -> list[Guess]:
    """Return the language of each text: one that can be translated to the target language, or the target itself."""
    sources = [code for code in models.languages if models.direction(code, tgt_lang)]
    possible = [code for code in models.languages if code in sources or matches_language(code, tgt_lang)]
    return [
        next(guess for guess in guesses if guess[0] in possible) if sources else guesses[0]
        for guesses in detect(models, texts)
    ]
