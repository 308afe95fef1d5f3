"""Loggers of Lightning by the paths of their classes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from lightning.pytorch.loggers import Logger

from structpe.errors import ConfigError, located, reason_of
from structpe.tasks.training.config import LoggerConfig

__all__ = ["further"]


def further(configs: Sequence[LoggerConfig]) -> list[Logger]:
    """The loggers that a configuration asks for.

    Raises:
        ConfigError: a path leads to no logger of Lightning, or its class does not take the options.
    """
    made = []
    for number, config in enumerate(configs):
        with located(f"training.loggers[{number}]"):
            made.append(_built(_found(config.path), config))
    return made


def _found(path: str) -> Any:
    module, _, name = path.rpartition(".")
    if not module or not all(part.isidentifier() for part in path.split(".")):
        raise ConfigError(f"{path!r} is not the path of a class; give one such as lightning.pytorch.loggers.CSVLogger")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise ConfigError(
            f"{path} cannot be imported ({reason_of(error)}); check the path, and that its package is installed"
        ) from None
    if not (isinstance(found, type) and issubclass(found, Logger)):
        raise ConfigError(f"{path} is not a logger; give the path of a subclass of lightning.pytorch.loggers.Logger")
    return found


def _built(cls: Any, config: LoggerConfig) -> Logger:
    try:
        made: Logger = cls(**config.options)
    except Exception as error:  # of any kind, from another library
        raise ConfigError(
            f"{config.path} does not take these options, or lacks something ({reason_of(error)}); change its options, "
            f"or install what it needs"
        ) from error
    return made
