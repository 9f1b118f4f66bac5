"""The methods of a class that can be called: described once for each class.

Running them is left to `_serving.call`, and the types of their parameters to `_serving.parameters`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from inspect import Parameter
from typing import Any, NamedTuple, TypeVar, overload

from fray.rpc._serving.parameters import Wanted, wanted_by
from fray.rpc._transport.failure import clip, near
from fray.rpc._transport.retry import Exceptions, names_of
from fray.rpc.context import ActorContext
from fray.rpc.errors import BadArgumentsError, UnknownMethodError

_MARK = "__fray_method__"
_Function = TypeVar("_Function", bound=Callable[..., Any])


class Marks(NamedTuple):
    """What the decorator `method` declares."""

    idempotent: bool = False
    concurrency_group: str = ""
    retries: int = 0
    retry_exceptions: frozenset[str] = frozenset()

    @property
    def retry(self) -> bool:
        """Whether calls may run again."""
        return bool(self.retries or self.retry_exceptions)


@overload
def method(function: _Function, /) -> _Function: ...
@overload
def method(
    *,
    idempotent: bool = False,
    concurrency_group: str = "",
    retries: int = 0,
    retry_exceptions: Exceptions = False,
) -> Callable[[_Function], _Function]: ...
def method(
    function: Any = None,
    /,
    *,
    idempotent: bool = False,
    concurrency_group: str = "",
    retries: int = 0,
    retry_exceptions: Exceptions = False,
) -> Any:
    """Declare properties of an actor's method. Methods without it can be called as well.

        @method(idempotent=True)
        def predict(self, x): ...

    Args:
        function: The method.
        idempotent: Running it twice is as good as once, so a call that may have run is sent again by itself.
        concurrency_group: The group whose limit it counts to, of those that ActorServer.register is given.
        retries: How often a call that may have run is sent again, unless its caller has other options.
        retry_exceptions: After which exceptions of the method it is sent again, too: True, or their classes.
            It takes `retries`, of which there is one budget, and a caller's options come before it as well.

    Raises:
        ValueError: `retries` is negative.
        TypeError: `retry_exceptions` are none.
    """
    if retries < 0:
        raise ValueError(f"retries is {retries}; it must not be negative")
    marks = Marks(idempotent, concurrency_group, retries, names_of(retry_exceptions))

    def mark(function: Any) -> Any:
        setattr(function, _MARK, marks)
        return function

    return mark if function is None else mark(function)


class Method:
    """One that can be called."""

    __slots__ = (
        "_judged",
        "_others",
        "_wanted",
        "asynchronous",
        "doc",
        "least",
        "marks",
        "most",
        "name",
        "params",
        "signature",
        "streams",
        "takes_context",
        "text",
    )

    def __init__(self, name: str, function: Any, bound: bool) -> None:
        """Describe a function; `bound`: its first parameter is the object."""
        self.name = name
        self.marks: Marks = getattr(function, _MARK, Marks())
        generates = inspect.isasyncgenfunction(function)
        self.asynchronous = inspect.iscoroutinefunction(function) or generates
        self.streams = inspect.isgeneratorfunction(function) or generates
        """It is known to answer by a stream. Others may, by returning an iterator."""
        self.doc = (inspect.getdoc(function) or "").partition("\n\n")[0]
        signature = _signature(function)
        self.takes_context = False
        self.signature: inspect.Signature | None = None
        self.least, self.most = 0, -1
        self.params: list[str] = []
        self.text = f"{name}(...)"
        self._wanted: list[Wanted | None] = []  # by position
        self._others: tuple[int, Wanted] | None = None  # from a position on
        self._judged: dict[str, Wanted] = {}  # by name; "" stands for all that have none here
        if signature is not None:
            self._describe(signature, bound)
            self._judge(function)

    def _describe(self, signature: inspect.Signature, bound: bool) -> None:
        params = list(signature.parameters.values())
        if (
            bound
            and params
            and params[0].kind
            in (
                Parameter.POSITIONAL_ONLY,
                Parameter.POSITIONAL_OR_KEYWORD,
            )
        ):
            params = params[1:]
        if params and _is_context(params[0]):
            self.takes_context = True
            params = params[1:]
        self.signature = signature.replace(parameters=params)
        self.text = clip(f"{self.name}{_readable(self.signature)}", 1000)
        self.params = [p.name for p in params]
        by_position = [
            p for p in params if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        ]
        self.least = sum(p.default is Parameter.empty for p in by_position)
        self.most = len(by_position)
        if any(p.kind is Parameter.KEYWORD_ONLY and p.default is Parameter.empty for p in params):
            self.least = self.most + 1  # the names have to be checked
        if any(p.kind is Parameter.VAR_POSITIONAL for p in params):
            self.most = 1 << 30

    def _judge(self, function: Any) -> None:
        """Note which types of arguments can be judged before a call."""
        assert self.signature is not None
        if hasattr(function, "__wrapped__"):
            return  # a decorator may convert what it is given
        for p in self.signature.parameters.values():
            wanted = wanted_by(p, function)
            if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
                self._wanted.append(wanted)
            if p.kind is Parameter.VAR_POSITIONAL:
                self._others = (len(self._wanted), wanted) if wanted is not None else None
            elif wanted is not None:
                self._judged["" if p.kind is Parameter.VAR_KEYWORD else p.name] = wanted
        if not any(self._wanted):
            self._wanted = []

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Raise BadArgumentsError unless the method can be called so."""
        self._check_number(args, kwargs)
        for i, (value, wanted) in enumerate(zip(args, self._wanted, strict=False)):
            if wanted is not None and type(value) not in wanted.exact:
                _fit(wanted, value, f"args[{i}]")
        if self._others is not None:
            first, wanted = self._others
            for i, value in enumerate(args[first:], first):
                _fit(wanted, value, f"args[{i}]")
        if kwargs and self._judged:
            for name, value in kwargs.items():
                by_name = self._judged.get(name) or (None if name in self.params else self._judged.get(""))
                if by_name is not None:
                    _fit(by_name, value, f"kwargs.{clip(name)}")

    def _check_number(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        if (not kwargs and self.least <= len(args) <= self.most) or self.signature is None:
            return
        params = self.signature.parameters.values()
        positional = [
            p for p in params if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        ]
        required = sum(p.default is Parameter.empty for p in positional)
        if len(args) > self.most or (not kwargs and len(args) < required):
            raise BadArgumentsError(_count_problem(required, self.most, len(args)))
        by_name = {
            p.name for p in params if p.kind in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
        }
        by_name -= {p.name for p in positional[: len(args)]}
        if not any(p.kind is Parameter.VAR_KEYWORD for p in params):
            for name in kwargs:
                if name not in by_name:
                    raise BadArgumentsError(
                        f'unexpected argument "{clip(name)}"',
                        argument=f"kwargs.{clip(name)}",
                        near=near(name, by_name),
                    )
        elif taken := kwargs.keys() & {p.name for p in positional[: len(args)]}:
            raise BadArgumentsError(f'unexpected argument "{min(taken)}"', argument=f"kwargs.{min(taken)}")
        for p in params:
            wanted = p.default is Parameter.empty and (p.name in by_name or p in positional[len(args) :])
            if wanted and (p.name not in kwargs or p.kind is Parameter.POSITIONAL_ONLY):
                raise BadArgumentsError(f'missing argument "{p.name}"')


def _fit(wanted: Wanted, value: Any, argument: str) -> None:
    problem = wanted.misfit(value)
    if problem:
        raise BadArgumentsError(problem, argument=argument)


def _count_problem(least: int, most: int, got: int) -> str:
    if most >= 1 << 30:
        return f"takes at least {_arguments(least)}, got {got}"
    if least < most:
        return f"takes {least} to {_arguments(most)}, got {got}"
    return f"takes {_arguments(most)}, got {got}"


def _arguments(count: int) -> str:
    return "1 argument" if count == 1 else f"{count} arguments"


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None  # of a builtin without one


class _Verbatim:
    """An annotation that is written without quotes."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _readable(signature: inspect.Signature) -> inspect.Signature:
    def plain(annotation: Any) -> Any:
        return _Verbatim(annotation) if isinstance(annotation, str) else annotation

    params = [p.replace(annotation=plain(p.annotation)) for p in signature.parameters.values()]
    return signature.replace(parameters=params, return_annotation=plain(signature.return_annotation))


def _is_context(param: Parameter) -> bool:
    if param.kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
        return False
    annotation = param.annotation
    if isinstance(annotation, str):
        return annotation.rpartition(".")[2] == "ActorContext" or param.name == "ctx"
    return annotation is ActorContext or param.name == "ctx"


class MethodTable:
    """The methods of a class, by name."""

    def __init__(self, kind: type) -> None:
        self.class_name = (
            kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
        )
        self._methods = {name: found for name in dir(kind) if (found := _method(kind, name)) is not None}
        self.asynchronous = any(m.asynchronous for m in self._methods.values())

    def __iter__(self) -> Any:
        return iter(self._methods.values())

    def find(self, name: str) -> Method:
        """Return a method.

        Raises:
            UnknownMethodError: there is none of that name, or it must not be called.
        """
        found = self._methods.get(name)
        if found is not None:
            return found
        if name.startswith("_"):
            raise UnknownMethodError(f'no method "{clip(name)}"; underscore names are not callable')
        raise UnknownMethodError(f'no method "{clip(name)}"', near=near(name, self._methods))


def _method(kind: type, name: str) -> Method | None:
    if name.startswith("_"):
        return None
    raw = inspect.getattr_static(kind, name)
    if isinstance(raw, staticmethod):
        return Method(name, raw.__func__, bound=False)
    if isinstance(raw, classmethod):
        return Method(name, raw.__func__, bound=True)
    if isinstance(raw, (property, type)) or not callable(raw):
        return None
    return Method(name, raw, bound=True)


def misfit(table: MethodTable, groups: Mapping[str, int]) -> str:
    """Return why objects of a class can never be registered with these concurrency groups, "" if they can."""
    if not list(table):
        return f"{table.class_name} has no method that can be called"
    for m in table:
        group = m.marks.concurrency_group
        if group and group not in groups:
            hint = f"; it has {', '.join(groups)}" if groups else ""
            return f'{table.class_name}.{m.name} is of group "{group}", which concurrency_groups lacks{hint}'
    return ""


def methods_of(kind: type) -> MethodTable:
    """Return the methods of a class."""
    return _table(kind)


@lru_cache(maxsize=256)
def _table(kind: Hashable) -> MethodTable:
    assert isinstance(kind, type)
    return MethodTable(kind)
