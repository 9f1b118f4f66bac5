"""What other distributions do that install a package of the same name."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import fray
from fray import _distribution

SOURCE = Path(fray.__file__).parent


def test_all_of_the_package_is_known() -> None:
    there = {path.name for path in SOURCE.iterdir()}
    assert there | {"__pycache__"} == _distribution.OWN


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory of installed packages that has fray-ml."""
    shutil.copytree(SOURCE, tmp_path / "fray", ignore=shutil.ignore_patterns("__pycache__"))
    _record(tmp_path, "fray_ml", ["fray/__init__.py", "fray/v2/__init__.py"])
    return tmp_path


def _record(site: Path, name: str, files: list[str]) -> None:
    info = site / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: 1.0\n")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))


def _install(site: Path, name: str, files: dict[str, str]) -> None:
    for file, text in files.items():
        path = site / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    _record(site, name, list(files))


def _run(site: Path, program: str) -> str:
    """Run a program that has the packages of a directory, and return what it wrote of errors."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environ, cwd=site, capture_output=True, text=True, check=False
    )
    return done.stderr


def test_alone_it_is_silent(site: Path) -> None:
    assert _run(site, "import fray.v2, fray.rpc.client") == ""


def test_one_that_was_installed_before_is_reported(site: Path) -> None:
    _install(site, "marin_fray", {"fray/device_flops.py": ""})
    errors = _run(site, "import fray.v2; print(fray.v2.LocalClient)")
    assert "RuntimeWarning: marin-fray has put files among those of fray-ml" in errors
    assert (
        f"both install the package {site / 'fray'}. Uninstall marin-fray (pip uninstall marin-fray)" in errors
    )
    assert "Error:" not in errors


def test_a_file_of_no_distribution_is_not_reported(site: Path) -> None:
    (site / "fray" / "scratch.py").touch()
    assert _run(site, "import fray.v2") == ""


@pytest.mark.parametrize("module", ["fray.v2", "fray.cluster", "fray.rpc", "fray._callable"])
def test_one_that_was_installed_afterwards_is_reported(site: Path, module: str) -> None:
    _install(site, "fray", {"fray/__init__.py": "", "fray/waf.py": ""})
    errors = _run(site, f"import {module}")
    assert "ImportError: fray has overwritten files of fray-ml; both install the package" in errors
    assert "pip install --force-reinstall fray-ml" in errors


def test_where_no_distribution_is_known(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match="another distribution has overwritten files of fray-ml"):
        _distribution.require(warnings, tmp_path / "fray")
