"""Where an Iris controller is, and as whom it is used: iris://HOST:PORT."""

from __future__ import annotations

import getpass
import ipaddress
import json
import os
import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass

SCHEME = "iris"
_NAMESPACE = re.compile(r"\w(?:[\w./-]*\w)?", re.ASCII)
_QUERY = ("user", "namespace", "tls")


@dataclass(frozen=True)
class Task:
    """The Iris task that a process is, as Iris's own variables describe it."""

    job: str
    """Its job's name in Iris, such as "/alice/train/eval"."""
    index: int
    attempt: int
    """From 0, as Iris counts."""
    num_tasks: int
    bundle: str
    variables: Mapping[str, str]
    """What its job's environment set."""
    region: str
    token: str

    @property
    def id(self) -> str:
        """Its own name in Iris."""
        return f"{self.job}/{self.index}"


@dataclass(frozen=True)
class Spec:
    """A controller and a user of it."""

    host: str
    port: int
    user: str
    namespace: str = ""
    """The scope of actors' names; "": that of `own_namespace`."""
    tls: bool = False

    @property
    def target(self) -> str:
        """host:port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def text(self) -> str:
        """The spec as FRAY_CLIENT_SPEC has it."""
        query = {"user": self.user, "namespace": self.namespace, "tls": "1" if self.tls else ""}
        given = urllib.parse.urlencode({key: value for key, value in query.items() if value}, safe="/")
        return f"{SCHEME}://{self.target}?{given}"


def parse(text: str, environ: Mapping[str, str] = os.environ) -> Spec:
    """Read "iris://host:port", with "?user=NAME", "&namespace=NAME" and "&tls=1" if need be.

    In an Iris task "iris://" alone is the controller of that task. The user is that of the task, or
    IRIS_USER, or this machine's.

    Raises:
        ValueError: it is something else, or names no controller and this is no task.
    """
    try:
        url = urllib.parse.urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError as err:
        raise ValueError(f'"{text}" is no iris://host:port: {err}') from err
    if url.scheme != SCHEME or url.path not in ("", "/") or url.username:
        raise ValueError(f'"{text}" is no iris://host:port')
    query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
    unknown = [key for key in query if key not in _QUERY]
    if unknown:
        raise ValueError(f'"{text}": {", ".join(unknown)} means nothing; known are {", ".join(_QUERY)}')
    tls = query.get("tls", "") not in ("", "0", "false")
    if not host or not port:
        own = environ.get("IRIS_CONTROLLER_ADDRESS", "")
        if host or port or not own:
            raise ValueError(
                f'"{text}" names no controller: write iris://HOST:PORT, the address of Iris\'s controller'
            )
        host, port, tls = _address(own)
    return Spec(
        host, port, _user(query.get("user", ""), environ), _namespace(query.get("namespace", "")), tls
    )


def of_address(address: str, environ: Mapping[str, str] = os.environ) -> Spec:
    """Return the spec of a controller's address: host:port, http://host:port, https://… or iris://….

    Raises:
        ValueError: it is something else.
    """
    if address.startswith(f"{SCHEME}:"):
        return parse(address, environ)
    host, port, tls = _address(address)
    return Spec(host, port, _user("", environ), "", tls)


def own_spec(environ: Mapping[str, str]) -> str:
    """Return the spec of the controller whose task this process is, "" if it is none of Iris's."""
    task = task_of(environ)
    address = environ.get("IRIS_CONTROLLER_ADDRESS", "")
    if task is None or not address:
        return ""
    host, port, tls = _address(address)
    return Spec(host, port, _user("", environ), "", tls).text


def task_of(environ: Mapping[str, str]) -> Task | None:
    """Return the Iris task that a process with these variables is, None if it is none."""
    name, _, attempt = environ.get("IRIS_TASK_ID", "").partition(":")
    job, _, index = name.rpartition("/")
    if not job or not index.isdecimal():
        return None
    variables = json.loads(environ.get("IRIS_JOB_ENV") or "{}")
    return Task(
        job=job,
        index=int(index),
        attempt=int(attempt or 0),
        num_tasks=int(environ.get("IRIS_NUM_TASKS") or 1),
        bundle=environ.get("IRIS_BUNDLE_ID", ""),
        variables=variables,
        region=environ.get("IRIS_WORKER_REGION", ""),
        token=environ.get("IRIS_TASK_TOKEN", ""),
    )


def is_own(spec: Spec, environ: Mapping[str, str]) -> bool:
    """Return whether a controller is that of the Iris task with these variables."""
    own = environ.get("IRIS_CONTROLLER_ADDRESS", "")
    return bool(own) and (spec.host, spec.port) == _address(own)[:2]


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(text: str) -> tuple[str, int, bool]:
    """Return host, port and whether it is TLS."""
    url = urllib.parse.urlsplit(text if "://" in text else f"http://{text}")
    tls = url.scheme == "https"
    try:
        port = url.port or (443 if tls else None)
    except ValueError:
        port = None
    if url.scheme not in ("http", "https") or not url.hostname or not port or url.path not in ("", "/"):
        raise ValueError(
            f'"{text}" is no address of an Iris controller: write HOST:PORT, or iris://HOST:PORT'
        )
    return url.hostname, port, tls


def _user(given: str, environ: Mapping[str, str]) -> str:
    task = task_of(environ)
    user = task.job.split("/")[1] if task else given or environ.get("IRIS_USER", "")
    if not user:
        try:
            user = getpass.getuser()
        except (OSError, KeyError, ImportError):
            user = "root"  # as Iris's own client does
    if "/" in user or not user.strip():
        raise ValueError(f'"{user}" cannot be a user of Iris: it has no "/" and is not empty; set IRIS_USER')
    return user


def _namespace(given: str) -> str:
    if given and not _NAMESPACE.fullmatch(given):
        raise ValueError(f'"{given}" is no namespace: use letters, digits and . _ - /')
    return given
