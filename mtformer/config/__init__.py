"""What can be set, and how it is read: the schema with the only defaults, and the reader of YAML files."""

from mtformer.config.loading import dump_config, load_config
from mtformer.config.schema import (
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
    "sized_to_data",
]
