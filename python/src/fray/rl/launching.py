"""A run as jobs that a program launches: NexRL's controller class, for fray clusters and for Ray.

    config = load("run.json")
    NexRLController(config).run()          # FRAY_CLIENT_SPEC=ray:auto

Each role, or each member of a colocation group, is a job. Roles of Go are the program `fray rl`, all others
`python -m fray.rl`. The module nexrl of HCL describes the same jobs as a file, see docs/guides/nexrl.md.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fray.rl.config import Config, ConfigError, json_like, setting
from fray.rl.hosting import INDEXED, KEYS, OTHERS
from fray.rl.tracking import ActivityTrackerProxy

if TYPE_CHECKING:
    from fray.cluster import Cluster, EnvironmentConfig, JobId, JobRequest, ResourceConfig

_log = logging.getLogger("fray.rl")

CONTROLLER = "controller"
_RETRIES, _PREEMPTIONS = 10, 1000  # of each process, as the module nexrl has them
_OF_GO = ("activity_tracker", CONTROLLER)
_OF_PYTHON = ("rollout_worker", "train_worker", "algorithm_processor", *OTHERS)
_STOP = 60.0  # seconds that the other processes have to end with the run
_GRACE = 30.0  # seconds between asking a process to stop and killing it
_REACHED = 10.0  # seconds in which the controller answers
_WAIT = 20.0  # seconds that it may take to answer whether the run has ended
_PAUSE = 0.5  # seconds after which a controller that does not answer is asked again


class RunFailedError(RuntimeError):
    """A run has failed; the message has why."""


@dataclass(frozen=True)
class Process:
    """One process of a run."""

    name: str
    """Of its job."""
    roles: tuple[str, ...]
    """What it hosts: "rollout_worker:3"."""
    group: str
    """Its colocation group, or its role."""
    python: bool
    """Whether the roles are classes of Python."""


def processes_of(config: Mapping[str, Any]) -> list[Process]:
    """Return the processes of a run, by `roles.ROLE.count` and `roles.ROLE.colocation_group`.

    Raises:
        ConfigError: roles of one group have different counts, or are of Go and of Python.
    """
    groups: dict[str, list[str]] = {}
    for role in (*KEYS, *_OF_GO):
        if _count(config, role):
            group = setting(config, f"roles.{role}.colocation_group")
            groups.setdefault(str(group or role), []).append(role)
    found: list[Process] = []
    for group, roles in groups.items():
        counts = {role: _count(config, role) for role in roles}
        if len(set(counts.values())) > 1:
            each = ", ".join(f"{role} has {count}" for role, count in counts.items())
            raise ConfigError(
                f'roles of colocation group "{group}" have different counts: {each}; give them the same'
            )
        kinds = {role: _is_python(config, role) for role in roles}
        if len(set(kinds.values())) > 1:
            ours = ", ".join(role for role, python in kinds.items() if python)
            raise ConfigError(
                f'colocation group "{group}" has roles of Python ({ours}) and of Go; give each kind a group'
            )
        several = counts[roles[0]] > 1 or group in INDEXED
        for i in range(counts[roles[0]]):
            name = f"{group}_{i}" if several else group
            found.append(Process(name, tuple(f"{role}:{i}" for role in roles), group, kinds[roles[0]]))
    return found


def _count(config: Mapping[str, Any], role: str) -> int:
    declared = setting(config, f"roles.{role}.count")
    if declared is not None:
        return int(declared)
    match role:
        case "rollout_worker" | "train_worker":
            return int(setting(config, f"{role}.num_workers", 1))
        case "validate_dataloader" | "validator":
            return int(bool(setting(config, "validate.data.type")))
        case "train_service" | "inference_service":
            return int(bool(setting(config, f"service.{role}.class")))
        case "experiment_logger":
            backends = setting(config, "logger.backend", [])
            return int("wandb" in ([backends] if isinstance(backends, str) else backends))
        case "activity_tracker":
            return 0  # the controller's process hosts it
    return 1


def _is_python(config: Mapping[str, Any], role: str) -> bool:
    if role in _OF_GO:
        return False
    key, default = KEYS[role]
    return role in _OF_PYTHON or ":" in str(setting(config, key, default))


class NexRLController:
    """Launches the processes of a run, and leads it to its end.

    What leads is the actor `controller`, a process of its own: the run goes on when this program is lost.
    Names of a run are those of its cluster connection's namespace, so that each run has one of its own, such
    as that of FRAY_CLIENT_SPEC=ray:auto?namespace=first.
    """

    def __init__(
        self,
        config: Any,
        cluster: Cluster | None = None,
        resources: Mapping[str, ResourceConfig] | None = None,
        environment: EnvironmentConfig | None = None,
    ) -> None:
        """Read a configuration.

        Args:
            config: Of the run, as `fray.rl.config.load` returns it.
            cluster: Where to launch; None: the current one, which FRAY_CLIENT_SPEC names.
            resources: What each process of a colocation group, or of a role, needs; by default 1 CPU. Roles
                of Go are not on preemptible machines by default, which on Ray are nodes with `head_node`.
            environment: Of all processes; None: that of the cluster, see fray.cluster.EnvironmentConfig.

        Raises:
            ConfigError: the colocation groups cannot be as they are, or the cluster is this process, where
                no program of Go finds actors.
        """
        from fray.cluster import LocalCluster, current_cluster

        self._config = config if isinstance(config, Config) else Config(json_like(config))
        self._processes = processes_of(self._config)
        self._cluster: Cluster = cluster if cluster is not None else current_cluster()
        if isinstance(self._cluster, LocalCluster):
            raise ConfigError(
                "a run needs a cluster, as roles of Go do not find actors of this process: set "
                'FRAY_CLIENT_SPEC to "ray:auto" or "fray://host:port"; on this machine start "fray apply '
                '--local" with the module nexrl'
            )
        self._resources, self._environment = dict(resources or {}), environment
        self._jobs: dict[str, JobId] = {}

    def start(self) -> None:
        """Launch all processes, or none.

        Raises:
            ClusterError: they cannot be launched, see fray.cluster.Cluster.launch_group.
        """
        from fray.cluster import JobGroupConfig

        requests = [self._request(process) for process in self._processes]
        launched = self._cluster.launch_group(requests, JobGroupConfig("run"))
        self._jobs = dict(zip((request.name for request in requests), launched, strict=True))

    def run(self) -> None:
        """Launch all processes, wait for the end of the run, and end what is left of them.

        Raises:
            RunFailedError: the run failed.
            JobFailedError: its controller's process has failed again and again.
            ClusterError: see `start`.
        """
        from fray.cluster import WaitTimeoutError

        self.start()
        try:
            self._await_end()
            with contextlib.suppress(WaitTimeoutError):  # then they are terminated
                self._cluster.wait(list(self._jobs.values()), timeout=_STOP)
        finally:
            self.terminate()

    def _await_end(self) -> None:
        """Return once the run has ended; a controller that is lost goes on in another process."""
        from fray.rpc.errors import ActorError

        controller = self._handle(CONTROLLER).options(idempotent=True, resolve_timeout=_REACHED)
        leader = self._jobs[self._leader()]
        while not self._cluster.poll(leader).status.ended:
            try:
                status = controller.wait_ended(_WAIT)
            except ActorError as err:
                _log.info("the controller does not answer: %s", err)
                time.sleep(_PAUSE)
                continue
            if status["phase"] == "ended":
                if status.get("failed"):  # its process would be started again
                    raise RunFailedError(f"the run failed: {status.get('reason')}")
                return
        self._cluster.wait(leader, raise_on_failure=True)

    def stop(self, reason: str = "stopped") -> None:
        """Have the run end in an orderly way: what is being done ends first, for 30 s at most.

        Raises:
            ActorError: the controller does not answer.
        """
        self._handle(CONTROLLER).options(idempotent=True).stop(reason)

    def status(self) -> dict[str, Any]:
        """Return how the run is: its phase, step, and why it does not go on, if so.

        Raises:
            ActorError: the controller does not answer.
        """
        controller = self._handle(CONTROLLER).options(idempotent=True, resolve_timeout=_REACHED)
        return dict(controller.status())

    @property
    def activity_tracker(self) -> ActivityTrackerProxy:
        """What the modules of the run report to."""
        return ActivityTrackerProxy(self._handle("activity_tracker"))

    def terminate(self) -> None:
        """End all processes that were launched, and return once they have ended."""
        from fray.cluster import NotFoundError

        jobs = list(self._jobs.values())
        for job_id in jobs:
            with contextlib.suppress(NotFoundError):  # it ended long ago
                self._cluster.terminate(job_id)
        for job_id in jobs:
            with contextlib.suppress(NotFoundError):
                self._cluster.wait(job_id)

    def _leader(self) -> str:
        wanted = f"{CONTROLLER}:0"
        return next(process.name for process in self._processes if wanted in process.roles)

    def _handle(self, name: str) -> Any:
        from fray.rpc.resolver import ClusterResolver

        return ClusterResolver(self._cluster).handle(name)

    def _request(self, process: Process) -> JobRequest:
        from fray.cluster import Entrypoint, JobRequest, ResourceConfig

        host = host_in_python if process.python else become_program
        # As JSON, so that it arrives as it is.
        args = (process.roles, json.dumps(json_like(self._config)))
        return JobRequest(
            name=process.name,
            entrypoint=Entrypoint.from_callable(host, args=args),
            resources=self._resources.get(process.group) or ResourceConfig(preemptible=process.python),
            environment=self._environment,
            max_retries_failure=_RETRIES,
            max_retries_preemption=_PREEMPTIONS,
            stop_grace_seconds=_GRACE,
            ports=("actor",),
        )


def host_in_python(roles: Sequence[str], document: str) -> None:
    """Host roles of Python in this process, a job's, to its end."""
    from fray.rl.__main__ import main

    if status := main([*roles, "--config", document]):
        raise SystemExit(status)


def become_program(roles: Sequence[str], document: str) -> None:
    """Replace this process, a job's, by the program `fray rl`.

    Raises:
        ConfigError: the program is not on this machine or, on Ray, this is not the machine of its head.
    """
    environ = {**os.environ, **_reach(), "FRAY_RL_CONFIG": document}
    program = _program(environ)
    sys.stderr.flush()
    os.execve(program, [program, "rl", *roles], environ)


def _reach() -> dict[str, str]:
    """Return the variables by which a program of Go finds actors, where the job's own are not enough."""
    if not os.environ.get("FRAY_CLUSTER_SPEC", "").startswith("ray:"):
        return {}
    from fray.cluster import current_cluster

    cluster: Any = current_cluster()
    reach = cluster.reach()
    cluster.close()
    if (ray := sys.modules.get("ray")) is not None:
        ray.shutdown()  # its threads do not outlive this program
    here = os.environ.get("FRAY_HOST_ADDRESS", "")
    if reach.address != here:
        raise ConfigError(
            f"roles of Go run on the machine of the Ray cluster's head, which is {reach.address}, and this "
            f"is {here}: give its head the resource head_node, and these roles preemptible=False"
        )
    return dict(reach.variables())


def _program(environ: Mapping[str, str]) -> str:
    """Return the path of the program fray: of the agent, of the Python package, or on the path."""
    beside = Path(sys.executable).parent / "fray"
    found = (
        environ.get("FRAY_PROGRAM") or shutil.which(str(beside)) or shutil.which("fray", path=environ["PATH"])
    )
    if not found:
        raise ConfigError(
            "roles of Go need the program fray on this machine: install a release of fray-ml, which has it, "
            "or set FRAY_PROGRAM to its path"
        )
    return found
