"""The kinds of models of Hugging Face's transformers that ours are; export and import both go by them."""

from typing import Literal, NamedTuple

from mtformer.model.architecture import Architecture


class Family(NamedTuple):
    """The properties that all models with the same ``model_type`` share.

    Attributes:
        norm: whether layers are normalized before or after their sub-layers.
        positions: the position encoding.
        embedding_norm: whether embeddings are normalized.
        sines_first: whether the features are in the order of transformers' sinusoids.
    """

    norm: Literal["pre", "post"]
    positions: str
    embedding_norm: bool = False
    sines_first: bool = False

    def suits(self, architecture: Architecture) -> bool:
        """Tell whether a model is of this family, as far as its norms and positions say."""
        # Those of fairseq count positions from padding, and their output has no bias.
        is_fairseq = architecture.special_ids.pad == 1 and architecture.joint_vocab and not architecture.output_bias
        wanted = (architecture.norm, architecture.positions, architecture.embedding_norm)
        is_alike = wanted == (self.norm, self.positions, self.embedding_norm)
        return is_alike and (is_fairseq or self.positions != "fairseq")


FAMILIES = {
    "marian": Family("post", "sinusoidal", sines_first=True),
    "pegasus": Family("pre", "sinusoidal", sines_first=True),
    "m2m_100": Family("pre", "fairseq"),
    "mbart": Family("pre", "learned", embedding_norm=True),
}
N_UNUSED_POSITIONS = 2  # in the table of mBART, before the first one
