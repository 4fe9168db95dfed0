"""Where the result of a run comes from, besides its settings."""

from pydantic import BaseModel, ConfigDict, JsonValue


class Change(BaseModel):
    """A setting, or another condition of the result, that was changed when a run was resumed."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    step: int
    key: str
    old: JsonValue
    new: JsonValue


class Provenance(BaseModel):
    """What a result depends on besides the settings. `train` writes it; a user cannot set it.

    Attributes:
        versions: of the software, at present.
        hardware: the device and the number of processes, at present.
        fingerprints: of the training and the validation text, of the glossary of annotated terms, and of the model that
            training started from.
        changes: what was changed on the way, in order of steps; the settings beside it are those of the last step.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    versions: dict[str, str] = {}
    hardware: dict[str, str] = {}
    fingerprints: dict[str, str] = {}
    changes: list[Change] = []
