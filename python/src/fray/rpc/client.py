"""A client of the actors of one class: its methods are known, and all of them are awaited.

Calls are left to handles.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from fray.rpc.options import RpcOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from fray.rpc.future import ActorFuture
    from fray.rpc.resolver import Resolver

T = TypeVar("T")


class RpcClient(Generic[T]):
    """Calls the methods of an actor, which its class declares.

    client = RpcClient(resolver, Curriculum)
    lesson = await client.get_lesson()
    lesson = client.with_options(timeout=5).get_lesson().result()

    Calling a method returns a future at once. The actor is looked up at the first call.
    """

    def __init__(
        self, resolver: Resolver, cls: type[T], options: RpcOptions | None = None, *, name: str | None = None
    ) -> None:
        """Make a client.

        Args:
            resolver: Finds the actor.
            cls: The class of the actor. Of it only the names of methods matter.
            options: Of the calls.
            name: What the actor is registered as; None: the name of the class in snake case.
        """
        self._resolver, self._cls = resolver, cls
        self._options = options or RpcOptions()
        self._name = name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    def with_options(self, **changes: Any) -> RpcClient[T]:
        """Return the client with other options, see RpcOptions."""
        return RpcClient(self._resolver, self._cls, replace(self._options, **changes), name=self._name)

    def __getattr__(self, name: str) -> Callable[..., ActorFuture[Any]]:
        """Return a method of the class."""
        if name.startswith("_") or not callable(getattr(self._cls, name, None)):
            public = [each for each in dir(self._cls) if not each.startswith("_")]
            near = difflib.get_close_matches(name, public)
            hint = f"; did you mean {', '.join(near)}?" if near else ""
            raise AttributeError(f"class {self._cls.__name__} has no method {name!r}{hint}")
        return self._resolver.handle(self._name).with_options(self._options)[name].remote
