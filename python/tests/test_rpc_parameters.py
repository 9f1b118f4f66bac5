"""Arguments that do not fit what a method's parameters are annotated with."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Optional, Union, cast

import numpy as np
import pytest

from actors import Caller
from fray.cluster import LocalCluster
from fray.rpc import ActorServer
from fray.rpc._serving.methods import Method
from fray.rpc.errors import BadArgumentsError

if TYPE_CHECKING:
    from fray.rpc.errors import ActorError as Missing

Text = Annotated[str, "a name"]


class Typed:
    ran = 0

    def whole(self, n: int) -> None: ...
    def real(self, x: float) -> None: ...
    def text(self, s: Text) -> None: ...
    def flag(self, b: bool) -> None: ...
    def raw(self, b: bytes) -> None: ...
    def many(self, xs: list[int]) -> None: ...
    def table(self, t: dict[str, float]) -> None: ...
    def array(self, a: np.ndarray[Any, Any]) -> None: ...
    def perhaps(self, n: Optional[int]) -> None: ...  # noqa: UP045
    def either(self, v: Union[int, str, None]) -> None: ...  # noqa: UP007
    def short(self, v: bytes | list[str]) -> None: ...
    def default(self, n: int = cast("int", None)) -> None: ...
    def anything(self, v: Any, w: object, x: Missing, y: tuple[int, int], z: int | Missing) -> None: ...
    def spread(self, first: str, *rest: int, last: float = 0.0, **named: str) -> None: ...
    @staticmethod
    def fixed(n: int) -> None: ...
    @classmethod
    def of_class(cls, n: int) -> None: ...

    def count(self, by: int, ratio: float = 1.0) -> int:
        self.ran += int(by * ratio)
        return self.ran


def problem(name: str, *args: Any, **kwargs: Any) -> str:
    function = Typed.__dict__[name]
    plain = isinstance(function, staticmethod)
    method = Method(name, getattr(function, "__func__", function), bound=not plain)
    try:
        method.check(args, kwargs)
    except BadArgumentsError as err:
        return f"{err.argument}: {err.message}"
    return ""


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        ("whole", "one", "want int, got string"),
        ("whole", 1.5, "want int, got float"),
        ("whole", None, "want int, got nil"),
        ("whole", [1], "want int, got list"),
        ("whole", np.zeros(3, np.float32), "want int, got array of float32, shape [3]"),
        ("real", "1.5", "want float, got string"),
        ("text", b"abc", "want string, got bytes"),
        ("text", 7, "want string, got int"),
        ("text", True, "want string, got bool"),
        ("flag", 1, "want bool, got int"),
        ("raw", "abc", "want bytes, got string"),
        ("many", {"a": 1}, "want list, got map"),
        ("many", "abc", "want list, got string"),
        ("table", [1], "want map, got list"),
        ("array", "abc", "want array, got string"),
        ("array", None, "want array, got nil"),
        ("perhaps", "one", "want int or nil, got string"),
        ("either", 1.5, "want int or string or nil, got float"),
        ("short", "abc", "want bytes or list, got string"),
        ("fixed", "one", "want int, got string"),
        ("of_class", "one", "want int, got string"),
    ],
)
def test_what_surely_does_not_fit_is_rejected(name: str, value: Any, want: str) -> None:
    assert problem(name, value) == f"args[0]: {want}"


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("whole", [0, -1, 1 << 63, True, np.int64(3), np.asarray(3)]),
        ("real", [1.5, 1, float("nan"), True, np.float32(1), 1 << 63]),
        ("text", ["", "größer"]),
        ("flag", [True, False, np.bool_(True)]),
        ("raw", [b"", bytearray(b"a"), memoryview(b"a"), np.zeros(2, np.uint8)]),
        ("many", [[], ["not looked at"], (1, 2), np.zeros(3)]),
        ("table", [{}, {1: 2}]),
        ("array", [np.zeros(3), np.float32(1), [1, 2], 3]),
        ("perhaps", [None, 1]),
        ("either", [None, 1, "one"]),
        ("short", [b"", []]),
        ("default", [None, 1]),
    ],
)
def test_what_may_fit_is_taken(name: str, values: list[Any]) -> None:
    for value in values:
        assert problem(name, value) == "", repr(value)


def test_what_is_not_known_is_not_judged() -> None:
    assert problem("anything", 1, "two", None, [1, 2], "three") == ""
    Method("plain", lambda v, w: (v, w), bound=False).check(["one", None], {})


def test_arguments_are_named_as_they_were_given() -> None:
    assert problem("count", 1, "two") == "args[1]: want float, got string"
    assert problem("count", by="one") == "kwargs.by: want int, got string"
    assert problem("count", 1, ratio="two") == "kwargs.ratio: want float, got string"
    assert problem("spread", "a", 1, "two") == "args[2]: want int, got string"
    assert problem("spread", "a", 1, last="two") == "kwargs.last: want float, got string"
    assert problem("spread", "a", other=3) == "kwargs.other: want string, got int"
    assert problem("spread", "a", 1, 2, last=1, other="b") == ""


def test_the_number_comes_first() -> None:
    assert problem("count", "one", "two", "three") == ": takes 1 to 2 arguments, got 3"


def test_a_rejected_call_does_not_run() -> None:
    typed = Typed()
    with LocalCluster() as cluster, ActorServer(cluster) as server, Caller(server.address) as caller:
        server.register("counter", typed)
        with pytest.raises(BadArgumentsError) as raised:
            caller.call("counter", "count", "one")
        assert str(raised.value) == "counter.count: args[0]: want int, got string"
        assert (raised.value.ran, typed.ran) == (False, 0)
        assert caller.call("counter", "count", 2) == 2


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    import functools

    @functools.wraps(function)
    def around(self: Any, *args: Any) -> Any:
        return function(self, *map(int, args))

    return around


def test_what_a_decorator_may_convert_is_not_judged() -> None:
    method = Method("count", converted(Typed.count), bound=True)
    method.check(["1"], {})
    with pytest.raises(BadArgumentsError, match="takes 1 to 2 arguments, got 3"):
        method.check(["1", "2", "3"], {})
