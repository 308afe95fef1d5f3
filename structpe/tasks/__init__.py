"""Tasks: their configurations, training, trained models and scores."""

from typing import TYPE_CHECKING

from structpe.faces import face

if TYPE_CHECKING:
    from structpe.tasks.explaining import explain
    from structpe.tasks.graph_to_text.config import (
        DataConfig,
        GraphToTextConfig,
        InjectConfig,
        PrepareConfig,
        PretrainedConfig,
        PretrainedTextConfig,
        PretrainedTraining,
        TextTraining,
    )
    from structpe.tasks.graph_to_text.generator import Generated, Generator
    from structpe.tasks.graph_to_text.scores import Scores, score
    from structpe.tasks.parser import ParserConfig, ParserData, ParserTraining
    from structpe.tasks.prediction.config import (
        BenchmarkConfig,
        PredictionConfig,
        PredictionOptimiser,
        PredictionTraining,
        PredictionValidation,
        SamplingConfig,
    )
    from structpe.tasks.prediction.predictor import Predictor
    from structpe.tasks.prediction.report import Outcome, Score, difference
    from structpe.tasks.prediction.study import StudyConfig, load_study
    from structpe.tasks.runs import load, load_config, load_run, train
    from structpe.tasks.training.config import HardwareConfig, LogsConfig, OptimiserConfig, ValidationConfig
    from structpe.tasks.training.result import Result

__all__ = [
    "BenchmarkConfig",
    "DataConfig",
    "Generated",
    "Generator",
    "GraphToTextConfig",
    "HardwareConfig",
    "InjectConfig",
    "LogsConfig",
    "OptimiserConfig",
    "Outcome",
    "ParserConfig",
    "ParserData",
    "ParserTraining",
    "PredictionConfig",
    "PredictionOptimiser",
    "PredictionTraining",
    "PredictionValidation",
    "Predictor",
    "PrepareConfig",
    "PretrainedConfig",
    "PretrainedTextConfig",
    "PretrainedTraining",
    "Result",
    "SamplingConfig",
    "Score",
    "Scores",
    "StudyConfig",
    "TextTraining",
    "ValidationConfig",
    "difference",
    "explain",
    "load",
    "load_config",
    "load_run",
    "load_study",
    "score",
    "train",
]

__getattr__, __dir__ = face(
    __name__,
    {
        "BenchmarkConfig": "prediction.config",
        "DataConfig": "graph_to_text.config",
        "difference": "prediction.report",
        "explain": "explaining",
        "Generated": "graph_to_text.generator",
        "Generator": "graph_to_text.generator",
        "GraphToTextConfig": "graph_to_text.config",
        "HardwareConfig": "training.config",
        "InjectConfig": "graph_to_text.config",
        "load": "runs",
        "load_config": "runs",
        "load_run": "runs",
        "load_study": "prediction.study",
        "LogsConfig": "training.config",
        "OptimiserConfig": "training.config",
        "Outcome": "prediction.report",
        "ParserConfig": "parser",
        "ParserData": "parser",
        "ParserTraining": "parser",
        "PredictionConfig": "prediction.config",
        "PredictionOptimiser": "prediction.config",
        "PredictionTraining": "prediction.config",
        "PredictionValidation": "prediction.config",
        "Predictor": "prediction.predictor",
        "PrepareConfig": "graph_to_text.config",
        "PretrainedConfig": "graph_to_text.config",
        "PretrainedTextConfig": "graph_to_text.config",
        "PretrainedTraining": "graph_to_text.config",
        "Result": "training.result",
        "SamplingConfig": "prediction.config",
        "score": "graph_to_text.scores",
        "Score": "prediction.report",
        "Scores": "graph_to_text.scores",
        "StudyConfig": "prediction.study",
        "TextTraining": "graph_to_text.config",
        "train": "runs",
        "ValidationConfig": "training.config",
    },
)
