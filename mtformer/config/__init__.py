"""What can be set, and how it is read: the schema with the only defaults, and the reader of YAML files."""

from mtformer.config.loading import dump_config, load_config, parse_source
from mtformer.config.schema import (
    BuiltinText,
    Config,
    DataConfig,
    EvalConfig,
    HubDataset,
    JsonlFile,
    ModelConfig,
    RunConfig,
    SearchConfig,
    Source,
    TextFiles,
    TokenizerConfig,
    TrainingConfig,
    TsvFile,
)
from mtformer.config.sizing import sized_to_data

__all__ = [
    "BuiltinText",
    "Config",
    "DataConfig",
    "EvalConfig",
    "HubDataset",
    "JsonlFile",
    "ModelConfig",
    "RunConfig",
    "SearchConfig",
    "Source",
    "TextFiles",
    "TokenizerConfig",
    "TrainingConfig",
    "TsvFile",
    "dump_config",
    "load_config",
    "parse_source",
    "sized_to_data",
]
