"""What Ray would import as it pickles for the first time, and is registered where a program imports it."""

from __future__ import annotations

import importlib
import importlib.resources
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fray.cluster.ray import addons


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Make two packages that can be imported, and return their names."""
    names = ["heavy_one", "heavy_two"]
    for name in names:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("VALUE = 1\n")
        (tmp_path / name / "within.py").write_text("")
        (tmp_path / name / "data.txt").write_text("data")
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    return names


def test_the_first_import_is_followed_by_one_call(packages: list[str]) -> None:
    calls: list[int] = []
    addons.once_imported(packages, lambda: calls.append(sys.modules["heavy_two"].VALUE))
    importlib.import_module("json")
    assert importlib.util.find_spec("no_such_package") is None
    assert calls == []
    importlib.import_module("heavy_two.within")
    assert calls == [1], "it is called once the package has all that it defines"
    importlib.import_module("heavy_one")
    assert calls == [1]


def test_an_imported_package_has_its_own_loader(packages: list[str]) -> None:
    addons.once_imported(packages, lambda: None)
    found = importlib.import_module("heavy_one")
    assert found.__spec__ is not None
    assert type(found.__loader__) is type(found.__spec__.loader) is type(addons.__loader__)
    assert importlib.resources.files(found).joinpath("data.txt").read_text() == "data"


def test_a_package_that_is_only_looked_for_is_not_imported(packages: list[str]) -> None:
    addons.once_imported(packages, pytest.fail)
    assert importlib.util.find_spec("heavy_one") is not None
    assert "heavy_one" not in sys.modules


def test_an_import_does_not_fail_as_what_follows_does(
    packages: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ImportError("of another version")

    addons.once_imported(packages, fail)
    assert importlib.import_module("heavy_one").VALUE == 1
    assert "of another version" in caplog.text


def test_imports_of_two_threads_are_followed_by_one_call(packages: list[str]) -> None:
    calls: list[int] = []
    addons.once_imported(packages, lambda: calls.append(1))
    threads = [threading.Thread(target=importlib.import_module, args=(name,)) for name in packages]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert calls == [1]


class Ray:
    """What of Ray is used: a context that registers as it is made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.registered: list[object] = []
        self.context: object | None = None
        found: Any = ModuleType("ray.util.serialization_addons")
        found.apply = self.registered.append
        self.addons: Any = found
        worker: Any = ModuleType("ray._private.worker")
        worker.global_worker = SimpleNamespace(get_serialization_context=self._made)
        util: Any = ModuleType("ray.util")
        util.serialization_addons = self.addons
        private: Any = ModuleType("ray._private")
        private.worker = worker
        for module in (ModuleType("ray"), util, self.addons, private, worker):
            monkeypatch.setitem(sys.modules, module.__name__, module)

    def _made(self) -> object:
        if self.context is None:
            self.context = object()
            self.addons.apply(self.context)
        return self.context


def test_ray_registers_when_a_package_is_imported(
    packages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addons, "PACKAGES", tuple(packages))
    ray = Ray(monkeypatch)
    register = ray.addons.apply
    addons.defer()
    assert ray.context is not None
    assert (ray.registered, ray.addons.apply) == ([], register)
    importlib.import_module("heavy_two")
    assert ray.registered == [ray.context]


def test_ray_registers_at_once_what_was_imported_before(
    packages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addons, "PACKAGES", tuple(packages))
    ray = Ray(monkeypatch)
    importlib.import_module("heavy_one")
    addons.defer()
    ray._made()
    assert ray.registered == [ray.context]


def test_nothing_is_registered_twice(packages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(addons, "PACKAGES", tuple(packages))
    ray = Ray(monkeypatch)
    ray._made()  # by Ray itself
    addons.defer()
    importlib.import_module("heavy_one")
    assert ray.registered == [ray.context]


def test_a_ray_of_another_form_does_as_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    Ray(monkeypatch)
    monkeypatch.delattr(sys.modules["ray._private.worker"], "global_worker")
    before = list(sys.meta_path)
    addons.defer()
    assert sys.meta_path == before
