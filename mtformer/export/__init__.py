"""Models in the formats of other programs."""

from mtformer.bundle.header import Header
from mtformer.export.families import FAMILIES
from mtformer.model.architecture import ACTIVATIONS, POSITIONS
from mtformer.support.errors import UserError


def require_huggingface(header: Header) -> None:
    """Check that Hugging Face's transformers can compute a model. This imports neither them nor torch.

    Raises:
        UserError: they cannot; the message names every setting in the way, and what to train instead.
    """
    architecture = header.architecture
    suited = {
        family.positions
        for family in FAMILIES.values()
        if family.suits(architecture.model_copy(update={"positions": family.positions}))
    }
    kinds = (
        ("positions", architecture.positions, [name for name in POSITIONS if name in suited]),
        ("feed_forward", architecture.activation, [name for name, kind in ACTIVATIONS.items() if kind.transformers]),
    )
    if wrong := [(key, name, supported) for key, name, supported in kinds if name not in supported]:
        settings = ", ".join(f"{key} = {name}" for key, name, _ in wrong)
        others = " ".join(f"model.{key}={next(iter(supported), '')}" for key, _, supported in wrong)
        raise UserError(
            f"transformers has no architecture for this model, because of {settings}: train one with {others}"
        )
    if header.languages:  # whose token the caller forces
        return
    forced = {header.prefix_tokens(pair).tgt for pair in header.language_pairs}
    if len(forced) > 1 or max(map(len, forced)) > 1:
        shown = ", ".join(sorted({token for tokens in forced for token in tokens}))
        raise UserError(
            f"transformers force one token at the start of a translation, in all directions the same; this one {shown}"
        )
