"""Finds the class of an actor by its path, "package.module:Class", and reports what is wrong with a path.

The path may name a function that makes the actor too, and something within a class: "module:Outer.Inner".
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import pkgutil
import sys
import sysconfig
from collections.abc import Callable, Iterable
from typing import Any


class ClassPathError(ImportError):
    """A class path names nothing that can make an actor. The message names what is missing, and where."""


def find(path: str) -> Callable[..., Any]:
    """Return what a class path names.

    Raises:
        ClassPathError: the path is none, or there is no such module or class.
        Exception: what the module raised when it was imported.
    """
    module_name, colon, qualname = path.partition(":")
    if not colon or not module_name or not qualname:
        raise ClassPathError(f'"{path}" is no class path: write module:Class, such as "counter:Counter"')
    found: Any = _module(path, module_name)
    at = f'module "{module_name}"'
    for name in qualname.split("."):
        if not hasattr(found, name):
            hint = _meant(name, _makers(found))
            raise ClassPathError(f'"{path}" cannot be imported: {at} has no class "{name}"{hint}')
        found, at = getattr(found, name), f'"{module_name}:{name}"'
    if not callable(found):
        raise ClassPathError(f'"{path}" is a {type(found).__name__}, which makes no actors; name a class')
    maker: Callable[..., Any] = found
    return maker


def _module(path: str, name: str) -> Any:
    if name.startswith("."):
        raise ClassPathError(f'"{path}" is no class path: the module\'s name is relative; write all of it')
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as err:
        missing = err.name or ""
        if name != missing and not name.startswith(missing + "."):
            raise ClassPathError(
                f'"{path}" cannot be imported: {name} needs the module "{missing}", which is not here; '
                "ship it with the project, or add it to the project's dependencies"
            ) from err
        parent, _, last = missing.rpartition(".")
        hint = _meant(last, _modules(parent), f"{parent}." if parent else "")
        raise ClassPathError(
            f'"{path}" cannot be imported: there is no module "{missing}"{hint}; '
            f"it was searched for in {_places(parent)}"
        ) from None


def _modules(parent: str) -> Iterable[str]:
    """Return the names of the modules in a package; without one those of the project."""
    paths = _path_of(parent) if parent else _own_places()
    return [module.name for module in pkgutil.iter_modules(paths)]


def _places(parent: str) -> str:
    own = [] if parent else _own_places()
    places = own or (_path_of(parent) if parent else sys.path)
    if not places:
        return "no place at all: sys.path is empty"
    return ", ".join(places) + (" and among the installed packages" if own else "")


def _path_of(package: str) -> list[str]:
    spec = importlib.util.find_spec(package)
    return list(spec.submodule_search_locations or []) if spec else []


def _own_places() -> list[str]:
    libraries = tuple(sysconfig.get_paths()[kind] for kind in ("stdlib", "platstdlib", "purelib", "platlib"))
    return [place or "." for place in sys.path if not place.startswith(libraries) and place[-4:] != ".zip"]


def _makers(owner: Any) -> Iterable[str]:
    """Return the names of what may have been meant: the classes, and the functions of the module itself."""
    return [
        name for name, value in vars(owner).items() if inspect.isclass(value) or inspect.isfunction(value)
    ]


def _meant(name: str, names: Iterable[str], prefix: str = "") -> str:
    by_lower = {each.lower(): each for each in names if not each.startswith("_")}
    near = [by_lower[lower] for lower in difflib.get_close_matches(name.lower(), by_lower)]
    return f"; did you mean {' or '.join(prefix + each for each in near)}?" if near else ""
