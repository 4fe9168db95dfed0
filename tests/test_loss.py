import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.testing import assert_close

from mtformer.config import ModelConfig
from mtformer.data.arrays import Ragged
from mtformer.data.batches import Batch, make_batch
from mtformer.data.tokens import Corpus
from mtformer.model.output import Losses, OutputHead, smoothed_cross_entropy
from mtformer.model.transformer import Transformer
from mtformer.training.update import summed_loss

D_MODEL, VOCAB_SIZE = 24, 700


def loss_and_gradients(loss: Tensor | Losses, *inputs: Tensor) -> list[Tensor]:
    minimized = loss.smoothed if isinstance(loss, Losses) else loss
    return [minimized.detach(), *torch.autograd.grad(minimized, inputs)]


def draw(n: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(n)
    hidden = torch.randn(n, D_MODEL, requires_grad=True)
    weight = torch.randn(VOCAB_SIZE, D_MODEL, requires_grad=True)
    return hidden, weight, torch.randint(VOCAB_SIZE, (n,))


def tiny_model(**changes: bool) -> Transformer:
    config = ModelConfig(d_model=16, n_heads=2, d_ff=32, n_encoder_layers=1, n_decoder_layers=1, dropout=0.0)
    torch.manual_seed(1)
    architecture = config.architecture(src_vocab_size=30, tgt_vocab_size=30, joint=True, max_length=700)
    return Transformer(architecture.model_copy(update=changes))


def corpus_of(*lengths: tuple[int, int]) -> Corpus:
    src = [[4 + (3 * place + i) % 26 for i in range(length)] + [3] for place, (length, _) in enumerate(lengths)]
    tgt = [[4 + (5 * place + i) % 26 for i in range(length)] + [3] for place, (_, length) in enumerate(lengths)]
    return Corpus(Ragged.of(src), Ragged.of(tgt))


def test_the_loss_of_a_hand_computed_case() -> None:
    weight = torch.tensor([[0.0], [math.log(3)]])  # over hidden = 1 these logits are the probabilities 1/4 and 3/4
    loss = smoothed_cross_entropy(torch.tensor([[1.0]]), weight, torch.tensor([1]), 0.2)
    assert loss.smoothed.item() == pytest.approx(-0.9 * math.log(3 / 4) - 0.1 * math.log(1 / 4), rel=1e-6)
    assert loss.cross_entropy.item() == pytest.approx(-math.log(3 / 4), rel=1e-6)


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("n", [1, 511, 512, 513, 1300])
def test_value_and_gradients_are_those_of_cross_entropy_on_all_logits(n: int, label_smoothing: float) -> None:
    hidden, weight, target = draw(n)
    found = loss_and_gradients(smoothed_cross_entropy(hidden, weight, target, label_smoothing), hidden, weight)
    exact = [tensor.detach().double().requires_grad_() for tensor in (hidden, weight)]
    reference = F.cross_entropy(exact[0] @ exact[1].T, target, reduction="sum", label_smoothing=label_smoothing)
    for ours, theirs in zip(found, loss_and_gradients(reference, *exact), strict=True):
        assert_close(ours, theirs.float(), rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("tied", [False, True])
def test_the_output_head_gives_the_logits_loss_and_gradients_of_plain_torch(
    tied: bool, bias: bool, precision: torch.dtype
) -> None:
    model = tiny_model(tie_embeddings=tied, output_bias=bias)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    batch = make_batch(corpus_of((3, 2), (9, 1), (1, 80)), [0, 1, 2])
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == torch.bfloat16):
        found = loss_and_gradients(summed_loss(model, batch, 0.1), *model.parameters())
        hidden = model(batch.src, batch.src_mask, batch.tgt_in)[batch.tgt_mask]
        logits = F.linear(hidden, model.output.weight, model.output.bias)
        assert torch.equal(model.project(hidden), logits)
    target = batch.tgt_out[batch.tgt_mask]
    reference = F.cross_entropy(logits.float(), target, reduction="sum", label_smoothing=0.1)
    expected = loss_and_gradients(reference, *model.parameters())
    tolerance = 1e-5 if precision == torch.float32 else 0.1
    for ours, theirs in zip(found, expected, strict=True):
        assert (ours - theirs).norm() <= tolerance * theirs.norm().clamp(min=1e-3)


def test_a_bias_counts_in_the_loss_as_it_does_in_the_logits() -> None:
    hidden, weight, target = draw(70)
    head = OutputHead(d_model=D_MODEL, vocab_size=VOCAB_SIZE, bias=True)
    with torch.no_grad():
        head.weight.copy_(weight)
        nn.init.normal_(head.bias)
    found = loss_and_gradients(head.loss(hidden, target, 0.1), hidden, *head.parameters())
    logits = F.linear(hidden, head.weight, head.bias)
    reference = F.cross_entropy(logits, target, reduction="sum", label_smoothing=0.1)
    for ours, theirs in zip(found, loss_and_gradients(reference, hidden, *head.parameters()), strict=True):
        assert (ours - theirs).norm() < 1e-5 * theirs.norm()


def test_the_products_of_any_number_of_targets_have_few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    n_rows: list[int] = []

    def product(a: Tensor, b: Tensor, *, out: Tensor) -> Tensor:
        n_rows.append(len(a))
        return torch.matmul(a, b, out=out)

    monkeypatch.setattr(torch, "mm", product)
    for n in range(1, 600, 7):
        smoothed_cross_entropy(*draw(n), 0.1)
    assert len(set(n_rows)) <= 8


def test_no_targets_give_a_loss_and_gradients_of_zero() -> None:
    hidden, weight, target = draw(0)
    loss = smoothed_cross_entropy(hidden, weight, target, 0.1)
    assert [tensor.abs().sum().item() for tensor in loss_and_gradients(loss, hidden, weight)] == [0.0] * 3


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_bfloat16_hidden_states_give_nearly_the_same_and_a_float32_sum(label_smoothing: float) -> None:
    hidden, weight, target = draw(1300)
    halved = hidden.detach().bfloat16().requires_grad_()
    found = loss_and_gradients(smoothed_cross_entropy(halved, weight, target, label_smoothing), halved, weight)
    assert [tensor.dtype for tensor in found] == [torch.float32, torch.bfloat16, torch.float32]
    reference = F.cross_entropy(hidden @ weight.T, target, reduction="sum", label_smoothing=label_smoothing)
    for ours, theirs in zip(found, loss_and_gradients(reference, hidden, weight), strict=True):
        assert (ours.float() - theirs).norm() < 0.02 * theirs.norm()


def test_fixed_weights_get_no_gradient_and_change_no_other() -> None:
    hidden, weight, target = draw(600)
    expected = loss_and_gradients(smoothed_cross_entropy(hidden, weight, target, 0.1), hidden)
    loss = smoothed_cross_entropy(hidden, weight.detach(), target, 0.1)
    assert all(map(torch.equal, loss_and_gradients(loss, hidden), expected))


def test_under_autocast_products_are_in_bfloat16_and_sums_in_float32() -> None:
    hidden, weight, target = draw(1300)
    exact = loss_and_gradients(smoothed_cross_entropy(hidden, weight, target, 0.1), hidden, weight)
    with torch.autocast("cpu", torch.bfloat16):
        loss = smoothed_cross_entropy(hidden, weight, target, 0.1)
    found = loss_and_gradients(loss, hidden, weight)
    assert [tensor.dtype for tensor in found] == [torch.float32] * 3
    for ours, theirs in zip(found, exact, strict=True):
        assert 0 < (ours - theirs).norm() < 0.02 * theirs.norm()


def test_a_target_that_the_model_holds_impossible_gives_a_large_and_finite_loss() -> None:
    weight = torch.tensor([[0.0], [1000.0]], requires_grad=True)
    loss = smoothed_cross_entropy(torch.tensor([[1.0]]), weight, torch.tensor([0]), 0.0).smoothed
    assert 80 < loss.item() < 1000
    [gradient] = torch.autograd.grad(loss, weight)
    assert gradient.flatten().tolist() == [-1.0, 1.0]


def test_not_a_number_stays_one() -> None:
    hidden, weight, target = draw(3)
    assert all(loss.isnan() for loss in smoothed_cross_entropy(hidden * math.nan, weight, target, 0.1))


@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_padding_takes_no_part_in_loss_and_gradients(label_smoothing: float) -> None:
    model, corpus = tiny_model(), corpus_of((3, 2), (9, 1), (1, 8))
    parameters = list(model.parameters())

    def measure(indices: list[int]) -> list[Tensor]:
        return loss_and_gradients(summed_loss(model, make_batch(corpus, indices), label_smoothing), *parameters)

    alone = [measure([i]) for i in range(3)]
    for together, *apart in zip(measure([0, 1, 2]), *alone, strict=True):
        assert_close(together, sum(apart, torch.zeros_like(together)), rtol=1e-4, atol=1e-5)


def test_the_sum_is_that_of_each_piece_predicted_from_those_before_it() -> None:
    model = tiny_model()
    src, tgt = [7, 9, 11, 3], [5, 6, 8, 3]
    corpus = Corpus(Ragged.of([src]), Ragged.of([tgt]))
    expected = 0.0
    for n, piece in enumerate(tgt):
        hidden = model(torch.tensor([src]), torch.ones(1, 4, dtype=torch.bool), torch.tensor([[2, *tgt[:n]]]))
        logits = model.project(hidden)[0, -1]
        expected += F.cross_entropy(logits, torch.tensor(piece), label_smoothing=0.1).item()
    batch: Batch = make_batch(corpus, [0])
    assert summed_loss(model, batch, 0.1).smoothed.item() == pytest.approx(expected, rel=1e-5)


def test_the_plain_cross_entropy_is_free_of_smoothing() -> None:
    hidden, weight, target = draw(1300)
    losses = smoothed_cross_entropy(hidden, weight, target, 0.1)
    expected = F.cross_entropy(hidden @ weight.T, target, reduction="sum")
    assert losses.cross_entropy.item() == pytest.approx(expected.item(), rel=1e-5)
    assert not losses.cross_entropy.requires_grad
