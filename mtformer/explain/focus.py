"""Which attention an explanation shows."""

from dataclasses import dataclass

from mtformer.explain.trace import KINDS, Kind, require_head
from mtformer.model.architecture import Architecture


@dataclass(frozen=True)
class Focus:
    """The attention to show, or to show first.

    Attributes:
        kind: ``encoder``, ``decoder`` or ``cross``; None for all three.
        layer: from 1; None for the last.
        head: from 1; None for the mean of all.
    """

    kind: str | None = None
    layer: int | None = None
    head: int | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds to show."""
        return tuple(kind for kind in KINDS if self.kind in (None, kind))

    def require(self, model: Architecture) -> None:
        """Make sure that the model has this attention; without a kind, that either stack has the layer.

        Raises:
            UserError: there is no such layer or head; the message says which there are.
        """
        n_layers: dict[Kind, int] = {
            "encoder": model.n_encoder_layers,
            "decoder": model.n_decoder_layers,
            "cross": model.n_decoder_layers,
        }
        kind = max(self.kinds, key=lambda kind: n_layers[kind])
        layer = n_layers[kind] if self.layer is None else self.layer
        require_head(kind, layer, self.head, n_layers=n_layers[kind], n_heads=model.n_heads)


ALL_KINDS = Focus()
