"""The settings: their schema, with the only defaults in the project, and the reader of configs."""

from mtformer.config.data import FILTERS, AugmentConfig, DataConfig, Normalization, TokenizerConfig, TokenizerType
from mtformer.config.loading import dump_config, dump_new_config, dump_override, load_config, parse_config, parse_source
from mtformer.config.resolve import Base, Facts, ResolvedConfig, ResolvedTraining, resolve
from mtformer.config.schema import Change, Config, ModelConfig, Precision, Provenance, TrainingConfig, valid_run_name
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
