"""Connects this process to a Ray cluster, after a short question whether one answers there.

Ray itself waits for half a minute or more where none does, ends the process then, and writes what concerns
tokens to its log only.
"""

from __future__ import annotations

import os
import platform
import socket
import time
from importlib import import_module
from pathlib import Path
from typing import Any

from fray.cluster.errors import AccessDeniedError, ClusterError, ClusterUnavailableError
from fray.cluster.ray.spec import START, TOKEN_PLACES, Spec, resolve, token_of

_REACH = 5.0  # seconds for an answer
_ALIVE = "/ray.rpc.NodeInfoGcsService/CheckAlive"  # of gcs_service.proto; it has the cluster's version
_PING = "/ray.rpc.RayletDriver/ClusterInfo"  # of ray_client.proto


def import_ray() -> Any:
    """Return the module.

    Raises:
        ImportError: it is not installed; the message names what to install.
    """
    try:
        return import_module("ray")
    except ModuleNotFoundError as err:
        if err.name != "ray":
            raise
        raise ImportError(
            "a Ray cluster needs the package ray, which is not installed; install fray-ml[ray]", name="ray"
        ) from err


def connect(spec: Spec, namespace: str) -> tuple[Any, str]:
    """Connect, unless the process is connected, and return the module ray and the cluster's address.

    Raises:
        ImportError: Ray is not installed.
        ValueError: RAY_ADDRESS names no Ray cluster, or the process is connected to another one.
        ClusterUnavailableError: no Ray cluster answers there.
        AccessDeniedError: it wants a token, and this process has none, or another.
        ClusterError: the versions of Ray or Python differ.
    """
    ray = import_ray()
    found = resolve(spec, os.environ)
    if ray.is_initialized():
        return ray, _same(ray, found, spec)
    if found is None:
        raise ClusterUnavailableError(
            "auto",
            1,
            0.0,
            f"no Ray cluster runs on this machine and RAY_ADDRESS is not set; start one: {START}",
        )
    _reach(found)
    if found.client:
        _check_proxy(found)
        _init_client(ray, found, namespace)
    else:
        _check_alive(ray, found)
        _init(ray, found, namespace)
    return ray, found.address


def _same(ray: Any, found: Spec | None, asked: Spec) -> str:
    """Return the address that the process is connected to, if that is what is asked for."""
    have: str = ray.get_runtime_context().gcs_address
    if found is None or asked.address == "auto" or found.client:
        return have
    (host, port), (its_host, _, its_port) = found.endpoint, have.rpartition(":")
    if str(port) != its_port or _addresses(host).isdisjoint(_addresses(its_host)):
        raise ValueError(
            f"this process is connected to the Ray cluster {have}, and a process has one only; "
            f"call ray.shutdown() before it is to use {found.address}"
        )
    return have


def _addresses(host: str) -> set[str]:
    try:
        return {str(info[4][0]) for info in socket.getaddrinfo(host, None)}
    except OSError:
        return {host}


def _reach(spec: Spec) -> None:
    began = time.monotonic()
    try:
        socket.create_connection(spec.endpoint, timeout=_REACH).close()
    except OSError as err:
        port = "; Ray clients use port 10001 of the head by default" if spec.client else ""
        raise ClusterUnavailableError(
            spec.address,
            1,
            time.monotonic() - began,
            f"{err.strerror or err}; if no Ray cluster is there, start one: {START}{port}",
        ) from err


def _check_alive(ray: Any, spec: Spec) -> None:
    """Ask the GCS whether it lives, lets this process in, and is of the same version."""
    from ray.core.generated import gcs_service_pb2 as gcs

    reply = _ask(spec, _ALIVE, gcs.CheckAliveRequest(), gcs.CheckAliveReply)
    if reply.ray_version and reply.ray_version != ray.__version__:
        raise ClusterError(_differs(spec.address, f"Ray {reply.ray_version}", f"Ray {ray.__version__}"))


def _check_proxy(spec: Spec) -> None:
    """Ask the proxy for Ray clients whether it lives and lets this process in. Ray compares versions."""
    from ray.core.generated import ray_client_pb2 as client

    request = client.ClusterInfoRequest(type=client.ClusterInfoType.PING)
    _ask(spec, _PING, request, client.ClusterInfoResponse)


def _ask(spec: Spec, method: str, request: Any, reply: Any) -> Any:
    """Make a call with the token that there is, and have Ray show that as well if it was accepted."""
    import grpc

    token = token_of(os.environ, Path.home())
    began = time.monotonic()
    target = spec.address.removeprefix("ray://")
    with grpc.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
        call = channel.unary_unary(
            method, request_serializer=type(request).SerializeToString, response_deserializer=reply.FromString
        )
        shown = (("authorization", f"Bearer {token}"),) if token else ()
        try:
            answer = call(request, metadata=shown, timeout=_REACH)
        except grpc.RpcError as err:
            code = err.code() if isinstance(err, grpc.Call) else grpc.StatusCode.UNKNOWN
            if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
                raise AccessDeniedError(_denied(spec.address, token)) from None
            raise ClusterUnavailableError(
                spec.address,
                1,
                time.monotonic() - began,
                f"what listens there is no Ray cluster ({code.name}); its address is what {START} prints",
            ) from None
    if token and "RAY_AUTH_MODE" not in os.environ:
        _show_token()
    return answer


def _show_token() -> None:
    """Have Ray show the token, which it leaves out unless it is told so."""
    from ray._raylet import Config

    os.environ["RAY_AUTH_MODE"] = "token"
    Config.initialize("")


def _denied(address: str, token: str) -> str:
    problem = "the token of this program is not the cluster's" if token else "this program has no token"
    return f"the Ray cluster at {address} wants a token, and {problem}; set it in {TOKEN_PLACES}"


def _differs(address: str, theirs: str, ours: str) -> str:
    return f"the Ray cluster at {address} runs {theirs}, and this program {ours}; use the same on both sides"


def _init(ray: Any, spec: Spec, namespace: str) -> None:
    try:
        _call_init(ray, spec, namespace)
    except SystemExit as err:
        raise ClusterUnavailableError(spec.address, 1, 0.0, f"Ray ended the connection ({err})") from err
    except RuntimeError as err:
        raise ClusterError(f"connect to the Ray cluster at {spec.address}: {err}") from err
    except OSError as err:
        message = f"{err}; is this machine one of its nodes? From elsewhere use ray://HOST:10001"
        raise ClusterUnavailableError(spec.address, 1, 0.0, message) from err


def _init_client(ray: Any, spec: Spec, namespace: str) -> None:
    began = time.monotonic()
    try:
        _call_init(ray, spec, namespace)
    except RuntimeError as err:  # among them that versions differ, with both in the message
        here = f"this program has Ray {ray.__version__} and Python {platform.python_version()}"
        raise ClusterError(f"connect to the Ray cluster at {spec.address}: {err}; {here}") from err
    except OSError as err:
        raise ClusterUnavailableError(spec.address, 1, time.monotonic() - began, str(err)) from err


def _call_init(ray: Any, spec: Spec, namespace: str) -> None:
    options: dict[str, Any] = {"namespace": namespace, "log_to_driver": False, "logging_level": "ERROR"}
    if not spec.client:
        options["configure_logging"] = False
    ray.init(spec.address, **options)
