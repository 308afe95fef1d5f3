"""Options that cannot act are refused, with the setting that makes them so; defaults and records are not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from structpe.errors import ConfigError
from structpe.plain.options import Inert, recorded, refuse_inert


@dataclass(frozen=True)
class Lamp:
    on: bool = True
    colour: str = "white"
    levels: list[int] = field(default_factory=lambda: [1, 2])

    inert: ClassVar[tuple[Inert, ...]] = (Inert(("colour", "levels"), "on is false", lambda lamp: not lamp.on),)

    def __post_init__(self) -> None:
        refuse_inert(self, "lamp.")


@dataclass(frozen=True)
class Torch(Lamp):
    beam: int = 3

    inert: ClassVar[tuple[Inert, ...]] = (Inert(("beam",), "this one is broken"),)


def test_what_cannot_act_is_refused_and_the_reason_is_named() -> None:
    wanted = r"^lamp\.colour is 'red', which has no effect, as on is false; leave lamp\.colour out, or change that$"
    with pytest.raises(ConfigError, match=wanted):
        Lamp(on=False, colour="red")
    with pytest.raises(ConfigError, match=r"lamp\.levels is \[1\], which has no effect"):
        Lamp(on=False, levels=[1])


def test_defaults_and_what_acts_are_taken() -> None:
    assert Lamp(on=False, colour="white", levels=[1, 2]) == Lamp(on=False)
    assert Lamp(colour="red").colour == "red"


def test_rules_of_a_base_and_of_the_class_itself_hold() -> None:
    with pytest.raises(ConfigError, match=r"lamp\.colour is 'red'"):
        Torch(on=False, colour="red")
    with pytest.raises(ConfigError, match=r"lamp\.beam is 4, which has no effect, as this one is broken"):
        Torch(beam=4)


def test_what_a_caller_knows_is_added() -> None:
    with pytest.raises(ConfigError, match=r"^colour is 'red', which has no effect, as it is day; leave colour out"):
        refuse_inert(Lamp(colour="red"), also=[Inert(("colour",), "it is day")])
    refuse_inert(Lamp(colour="red"), also=[Inert(("levels",), "it is day")])


def test_what_a_run_has_recorded_is_history() -> None:
    with recorded():
        assert Lamp(on=False, colour="red").colour == "red"
    with pytest.raises(ConfigError):
        Lamp(on=False, colour="red")
