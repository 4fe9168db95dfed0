"""A model's description, as JSON, with which a web page tokenizes and prepares texts as Python does.

The scripts of the page take what :func:`describe` and :func:`describe_texts` return.
"""

import base64
import struct
from collections import defaultdict
from typing import Any

from mtformer.browser.patterns import patterns_script
from mtformer.bundle.header import Header
from mtformer.config import LanguagePair
from mtformer.support.page import Asset
from mtformer.text import languages
from mtformer.text.beside_numbers import FALSE_UNITS
from mtformer.text.clocks import describe_clocks
from mtformer.text.dates import describe_dates
from mtformer.text.lost_names import finds_lost_names
from mtformer.text.number_words import PARTS, STEMS, large_units, large_words
from mtformer.text.ordinals import describe_ordinals
from mtformer.text.repetition import MAY_DOUBLE
from mtformer.text.sentences import abbreviations
from mtformer.text.slots import OF_KIND
from mtformer.text.spelled_numbers import describe_spelled_numbers
from mtformer.text.spoken_times import describe_spoken_times
from mtformer.text.tokenizer.sentencepiece_file import Kind, read_settings, read_tokens
from mtformer.text.tokenizer.tokenizer import Tokenizer
from mtformer.text.tokenizer.vocabulary import Vocabulary
from mtformer.text.unit_words import describe_units

_SCRIPTS = ("tokenizer", "numbers", "prepare", "guard", "notation", "entities", "slots", "marks", "text")
TEXT_ASSETS: list[Asset] = [  # what assemble() takes, in order
    ("mtformer.browser", "unicode.js"),
    patterns_script(),
    *(("mtformer.browser", f"{name}.js") for name in _SCRIPTS),
]


def describe(tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the argument of ``new Tokenizer(…)`` in JavaScript: special ids, and one vocabulary or two."""
    sides = [(tokenizer.src, tokenizer.src_model), (tokenizer.tgt, tokenizer.tgt_model)]
    return {
        "special_ids": tokenizer.special_ids.model_dump(),
        "context_end": tokenizer.context_end,
        "vocabularies": [_vocabulary(side, model) for side, model in sides if model is not None],
    }


def describe_texts(header: Header, tokenizer: Tokenizer) -> dict[str, Any]:
    """Return the argument of ``new TextPlanner(…)`` in JavaScript: tokenizer, directions, limits of a search."""
    pairs = header.language_pairs
    codes = dict.fromkeys(code for pair in pairs for code in pair)
    return {
        "tokenizer": describe(tokenizer),
        "max_length": header.architecture.max_length,
        "search": header.search.model_dump(),
        "languages": {code: _language(code) for code in codes},
        "known_words": header.known_words,
        "slots": OF_KIND if tokenizer.has_slots else None,
        "directions": [_direction(header, tokenizer, pair) for pair in pairs],
    }


def _vocabulary(vocabulary: Vocabulary, model: bytes) -> dict[str, Any]:
    tokens, settings = read_tokens(model), read_settings(model)
    scores = struct.pack(f"<{len(tokens)}f", *(token.score for token in tokens))
    return {
        "type": vocabulary.type,
        "form": vocabulary.form,
        "tokens": [token.text for token in tokens],
        "scores": base64.b64encode(scores).decode(),
        "kinds": "".join(str(token.kind.value) for token in tokens),
        "rules": character_rules(settings.character_map),
        "adds_dummy_prefix": settings.adds_dummy_prefix,
        "removes_extra_spaces": settings.removes_extra_spaces,
        "spells_in_bytes": any(token.kind == Kind.BYTE for token in tokens),
        "n_known": settings.n_known,
    }


def _language(code: str) -> dict[str, Any]:
    base, (point, group) = languages.base_language(code), languages.decimal_and_group(code)
    return {
        "base": base,
        "has_spaces": languages.is_written_with_spaces(code),
        "abbreviations": abbreviations(code),
        "has_ordinals": languages.has_full_stops_in_ordinals(code),
        "letters": languages.letters_of(code),
        "may_double": MAY_DOUBLE.get(base),
        "numbers": {"point": point, "group": group},
        "has_spaced_groups": languages.has_spaced_groups(code),
        "has_latin_units": languages.has_latin_units(code),
        "has_signs_behind": languages.has_signs_behind(code),
        "false_units": FALSE_UNITS.get(base, ()),
        "number_words": {"stems": STEMS.get(base, {}), "parts": PARTS.get(base)},
        "large_words": {
            **{"pattern": large_words(code, of_money=False), "of_money": large_words(code, of_money=True)},
            "units": large_units(code),
        },
        "dates": describe_dates(code),
        "ordinals": describe_ordinals(code),
        "clocks": describe_clocks(code),
        "spoken_times": describe_spoken_times(code),
        "spelled_numbers": describe_spelled_numbers(code),
        "unit_words": describe_units(code),
    }


def _direction(header: Header, tokenizer: Tokenizer, pair: LanguagePair) -> dict[str, Any]:
    tokens = header.prefix_tokens(pair)
    prefixes = tokenizer.prefixes_of(tokens.src, tokens.tgt)
    return {
        **pair._asdict(),
        **{"src_prefix": list(prefixes.src), "tgt_prefix": list(prefixes.tgt)},
        "finds_lost_names": finds_lost_names(tokenizer, *pair),
    }


def character_rules(character_map: bytes) -> dict[str, str]:
    """Return the replacements that the normalizer of a SentencePiece model makes, of which the longest counts.

    The map is the size of a trie in bytes, the trie, and the replacements, each ended by a zero byte. The trie is an
    array of 32-bit numbers, that of darts-clone (https://github.com/s-yata/darts-clone): the child of a node for a
    byte stands at the node's offset, combined with the byte by an exclusive or, and has the byte for its label.
    """
    if not character_map:
        return {}
    [size] = struct.unpack_from("<I", character_map)
    units = struct.unpack_from(f"<{size // 4}I", character_map, 4)
    targets = character_map[4 + size :]
    children = defaultdict(list)  # by the offset of their parent
    for place, unit in enumerate(units):
        label = unit & 0x8000_00FF  # the highest bit marks a value
        if 0 < label < 256:
            children[place ^ label].append(place)
    rules = {}
    nodes = [(0, b"")]
    while nodes:
        place, key = nodes.pop()
        unit = units[place]
        offset = place ^ ((unit >> 10) << ((unit & 512) >> 6))
        if unit & 256:  # a value stands at the offset itself
            start = units[offset] & 0x7FFF_FFFF
            rules[key.decode()] = targets[start : targets.index(b"\0", start)].decode()
        nodes += [(child, key + bytes([units[child] & 255])) for child in children[offset]]
    return rules
