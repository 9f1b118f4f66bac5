"""Where a Ray cluster is: ray:auto, ray:HOST:PORT and ray://HOST:PORT."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

_FORMS = (
    '"ray:auto" (RAY_ADDRESS, or the cluster of this machine), "ray:HOST:PORT" (the address of ray start, on '
    'one of its nodes) or "ray://HOST:PORT" (a Ray client, from elsewhere; its port is 10001)'
)
NAMESPACE = "fray"
"""The namespace of names where nothing gives another."""


@dataclass(frozen=True)
class Spec:
    """The address of a Ray cluster."""

    address: str
    """As ray.init takes it: "auto", "HOST:PORT" or "ray://HOST:PORT"."""
    namespace: str = ""

    @property
    def client(self) -> bool:
        """Whether calls go through a proxy on the head, as from a machine that is no node."""
        return self.address.startswith("ray://")


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
    if scheme != "ray":
        raise ValueError(f'"{text}" names no Ray cluster; write {_FORMS}')
    if rest in ("", "auto"):
        return Spec("auto", namespace)
    host, port = _host_port(rest.removeprefix("//").rstrip("/"))
    if not host or not 0 < port < 1 << 16:
        raise ValueError(f'"{text}" names no Ray cluster; write {_FORMS}')
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return Spec(f"ray://{address}" if rest.startswith("//") else address, namespace)


def _host_port(text: str) -> tuple[str, int]:
    try:
        url = urllib.parse.urlsplit(f"//{text}")
        return (url.hostname or "", url.port or 0) if not url.path and not url.username else ("", 0)
    except ValueError:
        return "", 0
