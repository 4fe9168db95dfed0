"""What can be set, and how it is read: the schema with the only defaults, and the reader of YAML files."""

from mtformer.config.data import AugmentConfig, DataConfig, FilterName, Normalization, TokenizerConfig, TokenizerType
from mtformer.config.loading import dump_config, load_config, parse_source
from mtformer.config.resolve import Base, Facts, ResolvedConfig, ResolvedTraining, resolve
from mtformer.config.schema import (
    Change,
    Config,
    EvalConfig,
    ModelConfig,
    Precision,
    Provenance,
    RunConfig,
    TrainingConfig,
)
from mtformer.config.search import SearchConfig, SearchOptions, SearchPrecision
from mtformer.config.sources import (
    BuiltinText,
    CsvFile,
    HubDataset,
    JsonlFile,
    LanguagePair,
    MosesFiles,
    SacrebleuSet,
    Source,
    TextFiles,
    TmxFile,
    TsvFile,
)

__all__ = [
    "AugmentConfig",
    "Base",
    "BuiltinText",
    "Change",
    "Config",
    "CsvFile",
    "DataConfig",
    "EvalConfig",
    "Facts",
    "FilterName",
    "HubDataset",
    "JsonlFile",
    "LanguagePair",
    "ModelConfig",
    "MosesFiles",
    "Normalization",
    "Precision",
    "Provenance",
    "ResolvedConfig",
    "ResolvedTraining",
    "RunConfig",
    "SacrebleuSet",
    "SearchConfig",
    "SearchOptions",
    "SearchPrecision",
    "Source",
    "TextFiles",
    "TmxFile",
    "TokenizerConfig",
    "TokenizerType",
    "TrainingConfig",
    "TsvFile",
    "dump_config",
    "load_config",
    "parse_source",
    "resolve",
]
