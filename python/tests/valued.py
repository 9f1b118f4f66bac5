"""Values, exceptions and actors of tests of what calls carry. Processes import this, but not pytest."""

from __future__ import annotations

import enum
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from fray.v2 import ActorHandle


@dataclass
class Settings:
    name: str
    rates: tuple[float, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int


class Own:
    """Of a class without anything that helps."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and self.value == other.value

    __hash__ = None  # type: ignore[assignment]


class LessonError(Exception):
    """Its constructor takes what Exception.__reduce__ does not know."""

    def __init__(self, lesson: str, *, hint: str) -> None:
        super().__init__(f"no such lesson: {lesson}")
        self.lesson, self.hint = lesson, hint
        self.message = "its own"


class FileLostError(FileNotFoundError):
    pass


class KeepingError(Exception):
    """Holds what cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("it keeps a lock")
        self.lock = threading.Lock()


class VanishingError(Exception):
    """Can be pickled, but not unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _vanish, ()


def _vanish() -> None:
    raise RuntimeError("it is not to be had")


class Echo:
    def one(self, value: Any) -> Any:
        return value

    def all(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        return args, kwargs

    def kind(self, value: Any) -> str:
        return type(value).__qualname__

    def tuple_of(self, value: Any) -> tuple[Any, ...]:
        return (value,)

    def mean(self, settings: Settings) -> float:
        return float(np.mean(settings.extra["array"]))

    def apply(self, function: Callable[[Any], Any], value: Any) -> Any:
        return function(value)

    def fail(self, how: str) -> None:
        if how == "own":
            try:
                int("missing")
            except ValueError as err:
                raise LessonError("chess", hint="go") from err
        if how == "file":
            raise FileLostError(2, "lost", "lessons.txt")
        if how == "keeping":
            raise KeepingError
        if how == "vanishing":
            raise VanishingError
        if how == "stop":
            raise StopIteration
        if how == "key":
            raise KeyError("lesson", 7)
        if how == "exit":
            raise SystemExit("bye")
        open("/no/such/lessons")  # noqa: PTH123, SIM115

    def fail_by(self, other: ActorHandle, how: str) -> None:
        other.fail(how)


# The program of the design of fray-lite: a coordinator and its workers.


@dataclass(frozen=True)
class MapOp:
    function: Callable[[int], int]


@dataclass(frozen=True)
class FilterOp:
    keep: Callable[[int], bool]


PhysicalOp = MapOp | FilterOp


class ZephyrWorker:
    """Reads a shard from shared storage, and writes the result there."""

    def run_stage(self, input_path: str, operations: list[PhysicalOp]) -> str:
        with open(input_path) as file:  # noqa: PTH123
            data = [int(line) for line in file]
        for op in operations:
            match op:
                case MapOp(function):
                    data = [function(n) for n in data]
                case FilterOp(keep):
                    data = [n for n in data if keep(n)]
        output = f"{input_path}.out"
        with open(output, "w") as file:  # noqa: PTH123
            file.writelines(f"{n}\n" for n in data)
        return output
