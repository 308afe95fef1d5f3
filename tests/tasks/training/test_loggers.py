"""Any logger of Lightning, by the path of its class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import pytest
from lightning.pytorch.loggers import Logger

from structpe.errors import ConfigError
from structpe.tasks.runs import train
from structpe.tasks.training.config import LoggerConfig
from structpe.tasks.training.reporting import extra_loggers
from tests.tasks.changes import with_training
from tests.tasks.graph_to_text.tiny import tiny

HERE = __name__


class Kept(Logger):
    """Keeps what is logged."""

    all: ClassVar[list[tuple[str, int | None, dict[str, float]]]] = []

    def __init__(self, label: str) -> None:
        super().__init__()
        self.label = label

    @property
    def name(self) -> str:
        return self.label

    @property
    def version(self) -> str:
        return ""

    def log_metrics(self, metrics: Any, step: int | None = None) -> None:
        self.all.append((self.label, step, dict(metrics)))

    def log_hyperparams(self, params: Any, *args: Any, **kwargs: Any) -> None:
        del params, args, kwargs


def test_a_run_tells_every_logger_what_it_writes_to_its_own(tmp_path: Path) -> None:
    Kept.all.clear()
    config = tiny(tmp_path, steps=2, validation={"every": 2}, logs={"every": 1})
    loggers = [{"path": f"{HERE}.Kept", "options": {"label": label}} for label in ("one", "two")]
    train(with_training(config, logs={"loggers": loggers}))
    lines = [
        f"{step},{name},{number!r}"
        for label, step, found in Kept.all
        if label == "one"
        for name, number in found.items()
    ]
    assert lines == (tmp_path / "run" / "metrics.csv").read_text().split()[1:]
    assert [each[1:] for each in Kept.all if each[0] == "one"] == [each[1:] for each in Kept.all if each[0] == "two"]
    assert train(config).steps == 2, "a run can go on with other loggers"


@pytest.mark.parametrize(
    ("path", "options", "message"),
    [
        ("WandbLogger", {}, "'WandbLogger' is not the path of a class; give one such as lightning.pytorch.loggers.CSV"),
        ("os.system('x')", {}, "is not the path of a class; give one such"),
        ("no_such_package.Logger", {}, "cannot be imported (No module named 'no_such_package'); check the path, and"),
        ("lightning.pytorch.loggers.NoLogger", {}, "is not a logger; give the path of a subclass of lightning.pytorch"),
        ("subprocess.Popen", {"args": "x"}, "subprocess.Popen is not a logger; give the path of a subclass of"),
        (f"{HERE}.Kept", {"name": 1}, "does not take these options, or lacks something ("),
    ],
)
def test_what_is_not_a_logger_is_refused(path: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=rf"^training\.logs\.loggers\[0\]: .*{re.escape(message)}"):
        extra_loggers([LoggerConfig(path, options)])
