"""The built-in corpus: the same meaning expressed in English, German and Chinese.

A seeded grammar (:mod:`.grammar`) draws meanings from a lexicon (:mod:`.lexicon`), and :mod:`.english`, :mod:`.german`
and :mod:`.chinese` express them. Far more than 10^7 sentences are possible; :func:`.sentences` draws a split of them.

    train           any number of sentences
    valid, test     sentences that do not occur in train
    compositional   sentences with a combination (verb and object, adjective and noun, two candidates for *it*) that
                    never occurs in train, valid and test, although its parts do
    ambiguous       like test, with a word that has several meanings, such as *chips*
    pronouns        like test, with an *it* that could refer to either of two nouns
"""
