"""Where a Ray cluster is: ray:auto, ray:HOST:PORT and ray://HOST:PORT."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

FORMS = (
    '"ray:auto" (RAY_ADDRESS, or the cluster of this machine), "ray:HOST:PORT" (the address that ray start '
    'prints, on one of its nodes) or "ray://HOST:PORT" (the port for Ray clients, which is 10001 by default)'
)
NAMESPACE = "fray"
"""The namespace of names where nothing gives another."""
START = "ray start --head --port=6379"
"""How a cluster is started."""
TOKEN_PLACES = "RAY_AUTH_TOKEN, a file that RAY_AUTH_TOKEN_PATH names, or ~/.ray/auth_token"
_CURRENT = "/tmp/ray/ray_current_cluster"  # where Ray notes the last cluster that was started on a machine


@dataclass(frozen=True)
class Spec:
    """The address of a Ray cluster."""

    address: str
    """"auto", "HOST:PORT", or "ray://HOST:PORT" through a proxy on the head, as from elsewhere."""
    namespace: str = ""

    @property
    def client(self) -> bool:
        """Whether calls go through the proxy for Ray clients."""
        return self.address.startswith("ray://")

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port of an address that is not "auto"."""
        return _host_port(self.address.removeprefix("ray://"))


def parse(text: str) -> Spec:
    """Read a spec, which may end in "?namespace=NAME".

    Raises:
        ValueError: it has another form.
    """
    scheme, _, rest = text.partition(":")
    rest, _, query = rest.partition("?")
    options = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
    namespace = options.pop("namespace", "")
    if options:
        raise ValueError(f'"{text}": {", ".join(options)} means nothing; known is namespace')
    if scheme == "ray" and rest == "auto":
        return Spec("auto", namespace)
    host, port = _host_port(rest.removeprefix("//").rstrip("/"))
    if scheme != "ray" or not host or not 0 < port < 1 << 16:
        raise ValueError(f'"{text}" names no Ray cluster; write {FORMS}')
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Spec(f"ray://{address}" if rest.startswith("//") else address, namespace)


def resolve(spec: Spec, environ: Mapping[str, str], current: str = _CURRENT) -> Spec | None:
    """Return the spec of an address for "auto", of RAY_ADDRESS or Ray's note of this machine; None: neither.

    Raises:
        ValueError: RAY_ADDRESS has another form.
    """
    if spec.address != "auto":
        return spec
    found = environ.get("RAY_ADDRESS", "")
    if found in ("", "auto"):
        try:
            found = Path(current).read_text().strip()
        except OSError:
            return None
    if found in ("", "local"):
        return None
    try:
        return replace(parse(f"ray:{found.removeprefix('ray:')}"), namespace=spec.namespace)
    except ValueError as err:
        raise ValueError(f'RAY_ADDRESS is "{found}": {err}') from err


def token_of(environ: Mapping[str, str], home: Path) -> str:
    """Return the token that Ray would show, "" if there is none; see TOKEN_PLACES."""
    if environ.get("RAY_AUTH_TOKEN"):
        return environ["RAY_AUTH_TOKEN"].strip()
    path = environ.get("RAY_AUTH_TOKEN_PATH")
    try:
        return (Path(path) if path else home / ".ray" / "auth_token").read_text().strip()
    except OSError:
        return ""


def _host_port(text: str) -> tuple[str, int]:
    try:
        url = urllib.parse.urlsplit(f"//{text}")
        return (url.hostname or "", url.port or 0) if not url.path and not url.username else ("", 0)
    except ValueError:
        return "", 0
