"""From a config and facts to a resolved config."""

import json
from pathlib import Path

import pytest
import yaml
from config_texts import MINIMAL, load

from mtformer.config import (
    Base,
    Change,
    Config,
    Facts,
    ModelConfig,
    Provenance,
    ResolvedConfig,
    TokenizerConfig,
    dump_config,
    resolve,
)
from mtformer.support.errors import UserError

TINY, SMALL = (2, 2, 128, 4, 512, 0.2, "pre", "rotary"), (3, 3, 256, 4, 1024, 0.2, "pre", "rotary")
# Vaswani et al. 2017, table 3
BASE, BIG = (6, 6, 512, 8, 2048, 0.1, "post", "sinusoidal"), (6, 6, 1024, 16, 4096, 0.3, "post", "sinusoidal")


def size_of(config: Config) -> tuple[object, ...]:
    model = config.model
    layers = model.n_encoder_layers, model.n_decoder_layers
    return *layers, model.d_model, model.n_heads, model.d_ff, model.dropout, model.norm, model.positions


@pytest.mark.parametrize(
    ("preset", "size"),
    [("tiny", TINY), ("small", SMALL), ("base", BASE), ("big", BIG)],
)
def test_keys_beside_a_preset_change_single_values_of_it(folder: Path, preset: str, size: tuple[object, ...]) -> None:
    config = load(folder, f"{MINIMAL}model: {{preset: {preset}}}\n")
    assert size_of(config) == size
    changed = load(
        folder, f"{MINIMAL}model: {{dropout: 0, preset: big}}\n", f"model.preset={preset}", "model.n_heads=2"
    )
    assert changed.model == config.model.model_copy(update={"dropout": 0.0, "n_heads": 2})
    for n_pairs in (100, 10_000_000):
        assert resolve(changed, Facts(n_pairs)).model.model_dump() == changed.model.model_dump()


@pytest.mark.parametrize(
    ("n_pairs", "size", "vocab_size", "training", "learning_rate"),
    [  # the paper's peak, d_model^-½ · 4000^-½, times 3 for pre-norm, with Muon
        (1, TINY, 4_000, (1_024, 30, 200), 3 * 0.0013975),
        (10_000, TINY, 4_000, (1_024, 30, 200), 3 * 0.0013975),
        (10_001, SMALL, 8_000, (2_048, 12, 400), 3 * 0.00098821),
        (100_000, SMALL, 8_000, (2_048, 12, 400), 3 * 0.00098821),
        (100_001, SMALL, 16_000, (2_048, 12, 400), 3 * 0.00098821),
        (200_000, SMALL, 16_000, (2_048, 12, 400), 3 * 0.00098821),
        (200_001, SMALL, 16_000, (4_096, 5, 2_000), 3 * 0.00098821),
        (2_000_000, SMALL, 16_000, (4_096, 5, 2_000), 3 * 0.00098821),
        (2_000_001, BASE, 32_000, (8_192, 4, 4_000), 0.00069877),
    ],
)
def test_what_is_left_open_goes_by_the_size_of_the_data(
    folder: Path,
    n_pairs: int,
    size: tuple[object, ...],
    vocab_size: int,
    training: tuple[int, int, int],
    learning_rate: float,
) -> None:
    config = resolve(load(folder, MINIMAL), Facts(n_pairs))
    chosen = config.training
    assert (size_of(config), config.tokenizer.vocab_size) == (size, vocab_size)
    assert (chosen.max_tokens, chosen.max_epochs, chosen.warmup_steps) == training
    assert chosen.learning_rate == pytest.approx(learning_rate, rel=1e-4)


@pytest.mark.parametrize(
    ("n_pairs", "given", "has_slots"),
    [
        (4_999, {}, False),
        (5_000, {}, True),
        (5_000, {"type": "bpe"}, True),
        (5_000, {"type": "char"}, False),
        (5_000, {"type": "byte"}, False),
        (5_000, {"slots": False}, False),
        (4_999, {"slots": True}, True),
    ],
)
def test_slots_are_for_trained_tokenizers_of_enough_text(
    folder: Path, n_pairs: int, given: dict[str, object], has_slots: bool
) -> None:
    config = load(folder, f"{MINIMAL}\ntokenizer: {json.dumps(given)}\n")
    assert resolve(config, Facts(n_pairs)).tokenizer.slots == has_slots
    resumed = resolve(config, Facts(n_pairs, slots=not has_slots))  # a run of a version with another default
    assert resumed.tokenizer.slots == given.get("slots", not has_slots)


@pytest.mark.parametrize(
    ("norm", "given", "optimizer", "factor"),
    [
        ("pre", "auto", "muon", 3.0),
        ("pre", "adamw", "adamw", 1.5),
        ("pre", "adam", "adam", 1.5),
        ("post", "auto", "adamw", 1.0),
        ("post", "muon", "muon", 1.0),
    ],
)
def test_optimizer_learning_rate_and_weight_decay_go_by_the_place_of_the_normalization(
    folder: Path, norm: str, given: str, optimizer: str, factor: float
) -> None:
    config = load(folder, MINIMAL, f"model.norm={norm}", f"training.optimizer={given}")
    chosen = resolve(config, Facts(10_000)).training
    assert chosen.optimizer == optimizer
    assert chosen.learning_rate == pytest.approx(factor * (4_000 * 128) ** -0.5, rel=1e-4)
    assert chosen.weight_decay == (1.0 if optimizer == "muon" else 0.01)


@pytest.mark.parametrize(
    ("n_pairs", "weight_decay"),
    [(1, 1.0), (20_000, 1.0), (29_000, 0.69), (160_000, 0.125), (2_000_000, 0.01), (10_000_000, 0.01)],
)
def test_weights_decay_more_where_there_is_less_text(folder: Path, n_pairs: int, weight_decay: float) -> None:
    config = load(folder, MINIMAL)
    assert resolve(config, Facts(n_pairs)).training.weight_decay == weight_decay
    base = Base(ModelConfig(d_model=32), TokenizerConfig(vocab_size=345))
    for is_tuned in (True, False):
        trained = Facts(n_pairs, base=base._replace(is_tuned=is_tuned), vocab_size=345)
        assert resolve(config, trained).training.weight_decay == 0.01


@pytest.mark.parametrize(("n_pairs", "warmup_steps"), [(100, 1_000), (100_000, 1_000), (2_000_000, 2_000)])
def test_post_norm_warms_up_for_longer(folder: Path, n_pairs: int, warmup_steps: int) -> None:
    config = resolve(load(folder, MINIMAL, "model.norm=post"), Facts(n_pairs))
    assert config.training.warmup_steps == warmup_steps


@pytest.mark.parametrize("n_pairs", [100, 100_000, 10_000_000])
def test_sizing_leaves_given_values_alone(folder: Path, n_pairs: int) -> None:
    text = f"""{MINIMAL}\
tokenizer: {{vocab_size: 777}}
model: {{d_model: 96, n_heads: 3, d_ff: 100, n_encoder_layers: 9, n_decoder_layers: 1, dropout: 0, norm: post,
  positions: learned}}
training: {{max_tokens: 99, max_epochs: 77, warmup_steps: 0, learning_rate: 3e-5, weight_decay: 0}}
"""
    given, resolved = load(folder, text), resolve(load(folder, text), Facts(n_pairs))
    auto = {
        "tokenizer": {"joint", "slots"},
        "model": {"preset"},
        "training": {"optimizer", "precision", "threads", "early_stopping_patience"},
    }
    assert resolved.model_dump(exclude=auto) == given.model_dump(exclude=auto)
    for limit in ("max_steps", "max_minutes"):
        limited = resolve(load(folder, MINIMAL, f"training.{limit}=5"), Facts(n_pairs))
        assert limited.training.max_epochs is None


@pytest.mark.parametrize(("key", "given", "n_pairs"), [("n_heads", 256, 100), ("d_model", 300, 10_000_000)])
def test_a_value_that_does_not_fit_the_chosen_size_is_told(folder: Path, key: str, given: int, n_pairs: int) -> None:
    config = load(folder, MINIMAL, f"model.{key}={given}")
    with pytest.raises(UserError, match=r"n_heads = \d+ does not divide d_model = \d+"):
        resolve(config, Facts(n_pairs))


@pytest.mark.parametrize("n_pairs", [100, 10_000_000])
@pytest.mark.parametrize("model", ["{}", "{preset: base, dropout: 1e-7}"])
def test_a_resolved_config_is_read_back_and_nothing_in_it_is_open(folder: Path, model: str, n_pairs: int) -> None:
    change = Change(step=500, key="training.freeze", old=["encoder"], new=None)
    provenance = Provenance(versions={"torch": "2"}, changes=[change])
    facts = Facts(n_pairs, vocab_size=777, precision="bf16", max_tokens=9_999, provenance=provenance)
    settings = "training: {max_tokens: auto, schedule: constant}\n"
    config = resolve(load(folder, f"{MINIMAL}model: {model}\n{settings}"), facts)
    assert (config.tokenizer.vocab_size, config.training.max_tokens, config.training.precision) == (777, 9_999, "bf16")
    again = load(folder, dump_config(config))
    assert again.provenance == provenance
    assert resolve(again, Facts(100_000, provenance=provenance)) == config
    assert ResolvedConfig.model_validate(yaml.safe_load(dump_config(config))) == config


@pytest.mark.parametrize("schedule", ["linear", "cosine", "constant", "inverse_sqrt"])
def test_a_schedule_that_decays_to_zero_is_not_stopped_on_its_plateau(folder: Path, schedule: str) -> None:
    decays = schedule in ("linear", "cosine")
    config = load(folder, MINIMAL, f"training.schedule={schedule}")
    assert resolve(config, Facts(100)).training.early_stopping_patience == (None if decays else 10)
    for given, patience in (("3", 3), ("null", None)):
        config = load(folder, MINIMAL, f"training.schedule={schedule}", f"training.early_stopping_patience={given}")
        assert resolve(config, Facts(100)).training.early_stopping_patience == patience


@pytest.mark.parametrize("joint", [True, False])
def test_one_tokenizer_or_two_goes_by_the_languages_if_it_is_not_set(folder: Path, joint: bool) -> None:
    for given, expected in (("null", joint), ("true", True), ("false", False)):
        config = load(folder, MINIMAL, f"tokenizer.joint={given}")
        assert resolve(config, Facts(100, joint=joint)).tokenizer.joint == expected


def test_settings_of_a_bundle_replace_those_of_model_and_tokenizer(folder: Path) -> None:
    config = load(folder, MINIMAL, "model.d_model=64", "tokenizer.type=bpe")
    base = Base(ModelConfig(preset="base", d_model=32), TokenizerConfig(vocab_size=345))
    resolved = resolve(config, Facts(100, base=base, vocab_size=345))
    assert (resolved.model.d_model, resolved.model.norm) == (32, "post")
    assert (resolved.tokenizer.type, resolved.tokenizer.vocab_size) == ("unigram", 345)
    assert resolved.training.learning_rate == pytest.approx(0.2 * (4_000 * 32) ** -0.5, rel=1e-4)


def test_fine_tuning_has_a_small_learning_rate_unless_it_is_set_or_the_model_has_to_learn_a_language(
    folder: Path,
) -> None:
    config, base = load(folder, MINIMAL), Base(ModelConfig(d_model=32), TokenizerConfig(vocab_size=345))
    from_scratch = 3 * (4_000 * 32) ** -0.5
    for is_tuned, peak in ((True, 0.2 * from_scratch), (False, from_scratch)):
        facts = Facts(100, base=base._replace(is_tuned=is_tuned), vocab_size=345)
        assert resolve(config, facts).training.learning_rate == pytest.approx(peak, rel=1e-4)
        given = load(folder, MINIMAL, "training.learning_rate=0.5")
        assert resolve(given, facts).training.learning_rate == 0.5


def test_the_learning_rate_of_fine_tuning_grows_with_the_new_pairs_within_limits(folder: Path) -> None:
    config, base = load(folder, MINIMAL), Base(ModelConfig(d_model=32), TokenizerConfig(vocab_size=345))
    from_scratch = 3 * (4_000 * 32) ** -0.5
    for n_new, share in ((100, 0.2), (2_000, 0.2), (4_000, 0.2 * 2 ** (1 / 3)), (10_000, 1 / 3), (10**6, 1 / 3)):
        facts = Facts(2 * n_new, n_new=n_new, base=base, vocab_size=345)
        assert resolve(config, facts).training.learning_rate == pytest.approx(share * from_scratch, rel=1e-3)
