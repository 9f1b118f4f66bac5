"""Has Ray import pydantic, starlette and pyarrow in a worker only where the worker's program does.

Ray pickles some of their values in ways of its own. To register these it imports what is installed of them
when it pickles or unpickles for the first time, which with pydantic takes two thirds of the time that
importing Ray itself does. Objects of a package that was not imported cannot be pickled, so that registering
can wait until one of them is.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

PACKAGES = ("pydantic", "pyarrow", "starlette")
"""What ray.util.serialization_addons of Ray 2.60 imports."""

_log = logging.getLogger("fray")


def defer() -> None:
    """Make Ray's context of pickling in this process, with what it would register later.

    Where Ray has made it, or is of another form than here is known, all goes as Ray has it.
    """
    if any(name in sys.modules for name in PACKAGES):
        return
    with contextlib.suppress(ImportError, AttributeError):
        from ray._private import worker
        from ray.util import serialization_addons

        waiting: list[Any] = []
        register = serialization_addons.apply
        serialization_addons.apply = waiting.append
        try:
            worker.global_worker.get_serialization_context()
        finally:
            serialization_addons.apply = register
        for context in waiting:
            once_imported(PACKAGES, functools.partial(register, context))


def once_imported(packages: Sequence[str], then: Callable[[], None]) -> None:
    """Call a function once, when the first of some packages has been imported."""
    sys.meta_path.insert(0, _Finder(packages, then))


class _Finder(MetaPathFinder):
    """Finds modules as the others do, and has their loader followed by a call."""

    def __init__(self, packages: Sequence[str], then: Callable[[], None]) -> None:
        self._packages, self._then = packages, then

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of one of the packages, None for every other module."""
        if fullname not in self._packages:
            return None
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            found: ModuleSpec | None = find(fullname, path, target) if find and finder is not self else None
            if found is not None:
                if found.loader is not None:
                    found.loader = _Followed(found.loader, self._imported)
                return found
        return None

    def _imported(self) -> None:
        if self not in sys.meta_path:
            return  # another thread was first
        sys.meta_path.remove(self)
        try:
            self._then()
        except Exception:  # which is not the fault of the program that imports
            _log.warning("what Ray registers for pickling could not be registered", exc_info=True)


class _Followed(Loader):
    """A loader, and what is called after it."""

    def __init__(self, loader: Any, then: Callable[[], None]) -> None:
        self._loader, self._then = loader, then

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the loader makes."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Run the module by its own loader, which it has from then on."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()
