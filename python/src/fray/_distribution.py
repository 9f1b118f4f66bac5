"""Detects files of another distribution in this package, as any whose package is called `fray` puts there.

`fray` on PyPI is another project, and marin-fray installs an import package `fray` too. pip writes the files
of two distributions into one directory, and each overwrites what both have. Where only the other one is
found, no code of this package runs; the agent of a host reports that (PACKAGE_MISSING).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

NAME = "fray-ml"
"""What pip installs."""

MARK = "__fray_ml__"
"""An attribute that `fray/__init__.py` of this distribution has, and no other."""

_NAMES = """
__init__.py __pycache__ _callable.py _distribution.py _host_class.py _host_run.py _host_serve.py _latch.py
_locks.py _marin _own_package.py _pb _pickling.py _termination.py actor.py client.py cluster
current_client.py host.py local_backend.py mypy_plugin.py profiles.py py.typed rl rpc types.py v2
"""
OWN = frozenset(_NAMES.split())
"""All that this distribution has in its directory."""


def warn_of_others(package: Path = Path(__file__).parent) -> None:
    """Warn if another distribution has files among those of this one, in the directory of the package."""
    if all(name in OWN for name in os.listdir(package)):  # noqa: PTH208 it is quicker, and each import does it
        return
    if others := others_in(package):
        message = f"{' and '.join(others)} has put files among those of fray-ml; {_remedy(package, others)}"
        warnings.warn(message, RuntimeWarning, stacklevel=3)


def require(imported: ModuleType, package: Path = Path(__file__).parent) -> None:
    """Check that what was imported as `fray` is of this distribution.

    Raises:
        ImportError: another one has overwritten it.
    """
    if hasattr(imported, MARK):
        return
    others = others_in(package)
    who = " and ".join(others) or "another distribution"
    raise ImportError(f"{who} has overwritten files of fray-ml; {_remedy(package, others)}", name="fray")


def others_in(package: Path) -> list[str]:
    """Return the names of the other distributions that have installed files into a package's directory."""
    from importlib.metadata import distributions  # slow to import, and rarely needed

    found = {
        distribution.name
        for distribution in distributions(path=[str(package.parent)])
        if any(file.parts[:1] == (package.name,) for file in distribution.files or ())
    }
    return sorted(found - {NAME})


def _remedy(package: Path, others: Sequence[str]) -> str:
    them = " ".join(others) or "it"
    return (
        f"both install the package {package}. Uninstall {them} (pip uninstall {them}), then install fray-ml "
        "again (pip install --force-reinstall fray-ml)"
    )
