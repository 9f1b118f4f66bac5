"""Names of jobs in Iris: /USER/ROOT/CHILD, of which the last part is fray's name.

A part has no "/" in it, which fray's names may have: there it is %2F, as no name of fray has a percent sign.
Jobs at the root of a namespace that is not the user's own begin with that namespace and a point.
"""

from __future__ import annotations

from dataclasses import dataclass

_SLASH = "%2F"


@dataclass(frozen=True)
class Names:
    """The names of one namespace, as seen from outside of Iris or from one of its tasks."""

    user: str
    namespace: str
    parent: str = ""
    """The job whose task this process is; "": it is outside of Iris."""

    def job_id(self, name: str, detached: bool) -> str:
        """Return the id of a job to launch: a child of this process's job, or at the root."""
        part = name.replace("/", _SLASH)
        if self.parent and not detached:
            return f"{self.parent}/{part}"
        return f"/{self.user}/{self._prefix}{part}"

    def name(self, job_id: str) -> str:
        """Return the name by which fray knows a job."""
        parts = job_id.split("/")
        name = parts[-1]
        if len(parts) == 3:
            name = name.removeprefix(self._prefix)
        return name.replace(_SLASH, "/")

    @property
    def trees(self) -> tuple[str, ...]:
        """What the ids of all jobs of the namespace begin with."""
        if self.namespace.startswith(
            f"{self.user}/"
        ):  # of a root job: below it, and what is detached from it
            return f"/{self.namespace}/", f"/{self.user}/{self._prefix}"
        return (f"/{self.user}/{self._prefix}",)

    @property
    def _prefix(self) -> str:
        if self.namespace in ("", self.user):
            return ""
        return self.namespace.removeprefix(f"{self.user}/").replace("/", _SLASH) + "."


def own_namespace(user: str, parent: str) -> str:
    """Return the namespace where none is given: the user's, or in a task that of its root job."""
    return "/".join(parent.split("/")[1:3]) if parent else user


def is_task_number(name: str) -> bool:
    """Return whether Iris takes a job of that name for a task of its parent."""
    try:
        int(name)
    except ValueError:
        return False
    return True


def endpoint_name(namespace: str, actor: str) -> str:
    """Return the name by which an actor's endpoint is registered."""
    return f"/fray/{namespace}/{actor}"
