"""The one class of Ray actors that fray makes: it fetches fray, and hosts an object of it.

Ray pickles it by value, as it is defined in a function, and what it is called with are bytes. So workers can
make it whether fray is installed on their node or not, and use the version of the client. It is made without
arguments, before which Ray would prepare all that it unpickles, see `addons`: what the object is to know is
in the class, and in the Ray actor's name.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
from collections.abc import Callable
from typing import Any


@functools.cache
def host_class(namespace: str, package: str, target: str) -> Any:
    """Return the class, for ray.remote.

    Args:
        namespace: Whose store has the package.
        package: The SHA-256 of the package.
        target: The class of the object, MODULE:CLASS. It is made with the namespace, the package, and the
            name of the Ray actor.
    """

    class FrayHost:
        """Hosts an object of fray."""

        def __init__(self) -> None:
            import compileall
            import gc
            import importlib
            import io
            import os
            import shutil
            import sys
            import tempfile
            import zipfile

            import ray
            from ray._private import worker
            from ray.experimental import internal_kv

            home = os.path.join(worker._global_node.get_session_dir_path(), "fray")
            directory = os.path.join(home, "packages", package)
            if not os.path.isdir(directory):
                os.makedirs(os.path.dirname(directory), exist_ok=True)
                key = f"{namespace.replace('/', '%2F')}/blob/{package}"  # as Store has it
                count = int(internal_kv._internal_kv_get(key, namespace=b"fray") or 0)
                parts = (internal_kv._internal_kv_get(f"{key}/{i}", namespace=b"fray") for i in range(count))
                made = tempfile.mkdtemp(dir=os.path.dirname(directory))
                zipfile.ZipFile(io.BytesIO(b"".join(parts))).extractall(made)
                # Where PYTHONDONTWRITEBYTECODE is set, as in many images, each worker would do it again.
                compileall.compile_dir(made, quiet=2)
                try:
                    os.rename(made, directory)
                except OSError:  # another process was faster
                    shutil.rmtree(made, ignore_errors=True)
            gc.disable()  # imports make many objects, among many of Ray's that stay
            for name in [n for n in sys.modules if n == "fray" or n.startswith("fray.")]:
                del sys.modules[name]
            sys.path.insert(0, directory)
            os.environ["FRAY_RAY_PACKAGE"] = directory
            os.environ["FRAY_RAY_HOME"] = home
            importlib.import_module("fray.cluster.ray.addons").defer()
            dispatcher = importlib.import_module("fray.cluster.ray.host").Dispatcher
            name = ray.get_runtime_context().get_actor_name() or ""
            self._dispatcher = dispatcher(target, namespace, package, name)
            gc.freeze()
            gc.enable()

        async def call(self, method: str, payload: bytes) -> bytes:
            """Call a method of the object."""
            reply: bytes = await self._dispatcher.call(method, payload)
            return reply

        async def leave(self) -> None:
            """End this actor in order; Ray does not always return the resources of one that is killed."""
            import ray

            ray.actor.exit_actor()

    return FrayHost


@functools.cache
def remote_class(ray: Any, namespace: str, package: str, target: str) -> Any:
    """Return the class as Ray has it, which exports it once; see `host_class`."""
    return ray.remote(host_class(namespace, package, target))


class Dispatcher:
    """Calls methods of an object, those that are not coroutines in threads."""

    def __init__(self, target: str, namespace: str, package: str, name: str) -> None:
        from importlib import import_module

        module, _, kind = target.partition(":")
        self._object = getattr(import_module(module), kind)(namespace, package, name)

    async def call(self, method: str, payload: bytes) -> bytes:
        """Return what the method returned or raised."""
        args, kwargs = pickle.loads(payload)
        try:
            function: Callable[..., Any] = getattr(self._object, method)
            if inspect.iscoroutinefunction(function):
                value = await function(*args, **kwargs)
            else:
                value = await asyncio.to_thread(function, *args, **kwargs)
            return pickle.dumps(("value", value))
        except Exception as err:
            return pickle.dumps(("error", err))


def payload_of(*args: Any, **kwargs: Any) -> bytes:
    """Return what a method is called with, as bytes."""
    return pickle.dumps((args, kwargs))


def value_of(reply: bytes) -> Any:
    """Return what a method returned, or raise what it raised."""
    kind, content = pickle.loads(reply)
    if kind == "error":
        raise content
    return content
