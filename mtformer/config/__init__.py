"""What can be set, and how it is read: the schema with the only defaults, and the reader of YAML files."""

from mtformer.config.augment import AugmentConfig
from mtformer.config.directions import LanguagePair
from mtformer.config.loading import dump_config, load_config, parse_source
from mtformer.config.resolve import Base, Facts, ResolvedConfig, ResolvedTraining, resolve
from mtformer.config.schema import (
    Change,
    Config,
    DataConfig,
    EvalConfig,
    ModelConfig,
    Precision,
    Provenance,
    RunConfig,
    TokenizerConfig,
    TrainingConfig,
)
from mtformer.config.search import SearchConfig, SearchOptions, SearchPrecision
from mtformer.config.sources import BuiltinText, HubDataset, JsonlFile, Source, TextFiles, TsvFile

__all__ = [
    "AugmentConfig",
    "Base",
    "BuiltinText",
    "Change",
    "Config",
    "DataConfig",
    "EvalConfig",
    "Facts",
    "HubDataset",
    "JsonlFile",
    "LanguagePair",
    "ModelConfig",
    "Precision",
    "Provenance",
    "ResolvedConfig",
    "ResolvedTraining",
    "RunConfig",
    "SearchConfig",
    "SearchOptions",
    "SearchPrecision",
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
