"""What can be set, and how it is read: the schema with the only defaults, and the reader of YAML files."""

from mtformer.config.loading import dump_config, load_config, parse_source
from mtformer.config.resolve import Base, Facts, ResolvedConfig, ResolvedTraining, resolve
from mtformer.config.schema import (
    BuiltinText,
    Change,
    Config,
    DataConfig,
    EvalConfig,
    HubDataset,
    JsonlFile,
    ModelConfig,
    Provenance,
    RunConfig,
    SearchOptions,
    Source,
    TextFiles,
    TokenizerConfig,
    TrainingConfig,
    TsvFile,
)

__all__ = [
    "Base",
    "BuiltinText",
    "Change",
    "Config",
    "DataConfig",
    "EvalConfig",
    "Facts",
    "HubDataset",
    "JsonlFile",
    "ModelConfig",
    "Provenance",
    "ResolvedConfig",
    "ResolvedTraining",
    "RunConfig",
    "SearchOptions",
    "Source",
    "TextFiles",
    "TokenizerConfig",
    "TrainingConfig",
    "TsvFile",
    "dump_config",
    "load_config",
    "parse_source",
    "resolve",
]
