"""Lists the machines of a Google Cloud project, over two REST APIs. Labels are left to `gcp`."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from fray.cluster.errors import AccessDeniedError, ClusterError, ClusterUnavailableError

_TIMEOUT = 20.0  # seconds of one request
_EARLY = 60.0  # seconds before its end at which a token is replaced
_HOUR = 3600.0
_UNREACHABLE = "the service could not reach it"


@dataclass(frozen=True)
class Urls:
    """Where the APIs are."""

    tpu: str = "https://tpu.googleapis.com"
    compute: str = "https://compute.googleapis.com"
    metadata: str = "http://metadata.google.internal"
    """The server that gives machines of Google Cloud their tokens."""


@dataclass(frozen=True)
class Machine:
    """A TPU node or an instance that runs."""

    address: str
    """Of its first host, inside the network."""
    labels: dict[str, str]
    name: str
    """Its zone and its name there, as zone/name."""


class PartialListError(ClusterUnavailableError):
    """The actor may be where nothing can be listed now."""

    def __init__(self, unlisted: dict[str, str]) -> None:
        gaps = ", ".join(f"{zone} ({why})" for zone, why in sorted(unlisted.items()))
        super().__init__("Google Cloud", 1, 0.0, f"it may be where nothing can be listed now: {gaps}")

    def __reduce__(self) -> tuple[type[ClusterUnavailableError], tuple[str, int, float, str]]:
        return ClusterUnavailableError, (self.target, self.tries, self.seconds, self.last)

    def __str__(self) -> str:
        return self.last


@dataclass
class Listing:
    """What is in the two lists together."""

    machines: list[Machine] = field(default_factory=list)
    """Those that run."""
    unlisted: dict[str, str] = field(default_factory=dict)
    """Of zones why what is in them is not known, or not all of it."""


class Token:
    """An access token, of the machine's service account or else of gcloud's user."""

    def __init__(self, metadata_url: str) -> None:
        self._url = metadata_url
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def __call__(self) -> str:
        """Return the token.

        Raises:
            AccessDeniedError: there is neither.
        """
        with self._lock:
            if monotonic() >= self._until:
                self._token, seconds = self._of_machine() or self._of_user()
                self._until = monotonic() + seconds - _EARLY
            return self._token

    def _of_machine(self) -> tuple[str, float] | None:
        path = "/computeMetadata/v1/instance/service-accounts/default/token"
        try:
            with urlopen(
                Request(self._url + path, headers={"Metadata-Flavor": "Google"}), timeout=2
            ) as response:
                found = json.load(response)
            return str(found["access_token"]), float(found["expires_in"])
        except (OSError, ValueError, KeyError):
            return None  # this is no machine of Google Cloud

    def _of_user(self) -> tuple[str, float]:
        gcloud = shutil.which("gcloud")
        if gcloud is None:
            raise AccessDeniedError(
                "there are no credentials: this is no machine of Google Cloud, and has no gcloud"
            )
        command = [gcloud, "auth", "print-access-token"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode != 0:
            raise AccessDeniedError(f"gcloud has no credentials; log in with it: {done.stderr.strip()}")
        return done.stdout.strip(), _HOUR / 2


class Machines:
    """Lists the machines of a project's zones."""

    def __init__(self, project: str, zones: Sequence[str], urls: Urls) -> None:
        self._project, self._zones, self._urls = project, zones, urls
        self._token = Token(urls.metadata)

    def list(self) -> Listing:
        """Return those that run.

        Raises:
            ClusterError: a list could not be had, or it is not whole and does not name what is missing.
        """
        found = Listing()
        project = quote(self._project)
        for zone in self._zones or ["-"]:
            self._nodes(f"{self._urls.tpu}/v2/projects/{project}/locations/{quote(zone)}/nodes", found)
        compute = f"{self._urls.compute}/compute/v1/projects/{project}"
        if not self._zones:
            for page in self._pages(f"{compute}/aggregated/instances", filter="status = RUNNING"):
                for scope, of_zone in page.get("items", {}).items():
                    found.machines.extend(_instances(of_zone.get("instances", [])))
                    if scope.startswith("zones/") and _is_partial(of_zone.get("warning", {})):
                        found.unlisted[_base(scope)] = _why(of_zone["warning"])
                _note_missing(page, found)
        for zone in self._zones:
            for page in self._pages(f"{compute}/zones/{quote(zone)}/instances", filter="status = RUNNING"):
                found.machines.extend(_instances(page.get("items", [])))
                if _is_partial(page.get("warning", {})):
                    found.unlisted[zone] = _why(page["warning"])
        return found

    def _nodes(self, url: str, found: Listing) -> None:
        for page in self._pages(url):
            for node in page.get("nodes", []):
                hosts = node.get("networkEndpoints", [])
                if node.get("state") == "READY" and hosts and hosts[0].get("ipAddress"):
                    machine = Machine(hosts[0]["ipAddress"], node.get("labels", {}), _name_of_node(node))
                    found.machines.append(machine)
            for location in page.get("unreachable", []):
                found.unlisted[_base(location)] = _UNREACHABLE

    def _pages(self, url: str, **query: str) -> Iterator[dict[str, Any]]:
        while True:
            page = self._get(f"{url}?{urlencode(query)}" if query else url)
            yield page
            if not page.get("nextPageToken"):
                return
            query["pageToken"] = page["nextPageToken"]

    def _get(self, url: str) -> dict[str, Any]:
        began = monotonic()
        request = Request(url, headers={"Authorization": f"Bearer {self._token()}"})
        try:
            with urlopen(request, timeout=_TIMEOUT) as response:
                page: dict[str, Any] = json.load(response)
                return page
        except HTTPError as err:
            with err:
                problem = f"{url.partition('?')[0]}: {err.code} {err.read(500).decode(errors='replace')}"
            if err.code in (401, 403):
                raise AccessDeniedError(problem) from err
            if err.code < 500 and err.code != 429:
                raise ClusterError(problem) from err
            raise ClusterUnavailableError(url, 1, monotonic() - began, problem) from err
        except (OSError, ValueError) as err:
            raise ClusterUnavailableError(url, 1, monotonic() - began, str(err)) from err


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _is_partial(warning: dict[str, Any]) -> bool:
    """Return whether a warning reports a list that is not whole. That a zone is empty is no such warning."""
    return warning.get("code", "") not in ("", "NO_RESULTS_ON_PAGE")


def _why(warning: dict[str, Any]) -> str:
    return str(warning.get("message") or warning.get("code") or _UNREACHABLE)


def _note_missing(page: dict[str, Any], found: Listing) -> None:
    """Note the zones that could not be reached, by a page of all zones.

    Raises:
        ClusterUnavailableError: it does not name them, so that nothing is known of any.
    """
    warning = page.get("warning", {})
    missing = list(page.get("unreachables", []))
    if _is_partial(warning):
        values = [str(each.get("value", "")) for each in warning.get("data", [])]
        missing += [value for value in values if "zones/" in value]
    for each in missing:
        if "regions/" not in each:
            found.unlisted[_base(each)] = _why(warning)
    if _is_partial(warning) and not missing:
        problem = f"the list is not whole, and does not name what is missing: {_why(warning)}"
        raise ClusterUnavailableError("Google Cloud", 1, 0.0, problem)


def _instances(instances: list[dict[str, Any]]) -> Iterator[Machine]:
    for instance in instances:
        interfaces = instance.get("networkInterfaces", [])
        if instance.get("status") == "RUNNING" and interfaces and interfaces[0].get("networkIP"):
            zone = str(instance.get("zone", "")).rpartition("/")[2]
            name = f"{zone}/{instance.get('name', '')}"
            yield Machine(interfaces[0]["networkIP"], instance.get("labels", {}), name)


def _name_of_node(node: dict[str, Any]) -> str:
    parts = str(node.get("name", "")).split("/")  # projects, its name, locations, the zone, nodes, its name
    return f"{parts[3]}/{parts[5]}" if len(parts) == 6 else parts[-1]
