"""The corpus that ships with the package: one meaning, said in English, German and Chinese.

A seeded grammar draws meanings (:mod:`.grammar`) from a lexicon (:mod:`.lexicon`), and :mod:`.english`, :mod:`.german`
and :mod:`.chinese` say them. Far more than 10^7 sentences are possible; :func:`sentences` draws a split of them.

    train           any number of sentences
    valid, test     sentences that do not occur in train
    compositional   each with a combination (verb and object, adjective and noun, the two nouns that *it* may mean) that
                    train, valid and test never have, though they have its parts
    ambiguous       with a word that has several meanings, such as *chips*; otherwise like test
    pronouns        with an *it* that may mean either of two nouns; otherwise like test
"""

from mtformer.phrasebook.splits import LANGUAGES, Saying, held_out, sentences, train

__all__ = ["LANGUAGES", "Saying", "held_out", "sentences", "train"]
