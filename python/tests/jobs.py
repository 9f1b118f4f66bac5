"""What jobs of tests run. Their processes import this, but not pytest, which is slower."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from fray.cluster import (
    Cluster,
    Entrypoint,
    JobId,
    JobRequest,
    Namespace,
    ReservationConfig,
    ResourceConfig,
    current_cluster,
    job_context,
)
from fray.rpc import ActorContext, ActorServer, ClusterResolver


def append(file: str, text: str) -> None:
    with Path(file).open("a") as out:
        out.write(text + "\n")


def call(function: object, *args: object, name: str = "train", **fields: object) -> JobRequest:
    return JobRequest(name, Entrypoint.from_callable(function, args=args), **fields)  # type: ignore[arg-type]


def succeed() -> None:
    pass


def fail() -> None:
    raise ValueError("no such luck")


def until_stopped() -> None:
    while True:
        time.sleep(0.01)


def report_context(file: str) -> None:
    context = job_context()
    assert context is not None
    found = {**context.variables(), "WANDB": context.environ.get("WANDB", "")}
    append(file, " ".join(f"{key}={value}" for key, value in found.items()))


def launch_child(file: str, namespace: str | None) -> None:
    request = call(report_context, file, name="child", namespace=Namespace(namespace) if namespace else None)
    cluster = current_cluster()
    cluster.wait(cluster.launch(request), raise_on_failure=True)


def launch_and_return(detached: bool) -> None:
    current_cluster().launch(call(until_stopped, name="child", detached=detached))


def launch_and_stay(*_: object) -> None:
    current_cluster().launch(call(until_stopped, name="child"))
    until_stopped()


def exit_with(code: object) -> None:
    sys.exit(code)  # type: ignore[arg-type]


def child_named(cluster: Cluster, name: str) -> JobId | None:
    return next((job.job_id for job in cluster.list_jobs() if job.name == name), None)


def fail_until(file: str, attempts: int) -> None:
    append(file, "tried")
    if len(Path(file).read_text().splitlines()) < attempts:
        raise ValueError("not yet")


def fail_first_task() -> None:
    context = job_context()
    assert context is not None
    if context.task_index == 0:
        raise ValueError("task 0 is bad")
    until_stopped()


TPU = ResourceConfig.with_tpu("v5litepod-4")


def config(least: int, most: int, **fields: object) -> ReservationConfig:
    return ReservationConfig(
        min_resources=TPU.with_replicas(least),
        max_resources=TPU.with_replicas(most),
        **fields,  # type: ignore[arg-type]
    )


def register_and_stay(name: str) -> None:
    context = job_context()
    assert context is not None
    current_cluster().metadata.register(name, f"127.0.0.1:{context.attempt}", context.job_id)
    until_stopped()


def watch_for_ever() -> None:
    context = job_context()
    assert context is not None
    metadata = current_cluster().metadata
    metadata.register("watcher", "127.0.0.1:1", context.job_id)
    for _ in metadata.watch():
        pass


def reserve_and_return() -> None:
    current_cluster().create_reservation(config(1, 2, name="of-a-job"))


class Adder:
    def __init__(self) -> None:
        self.value = 0

    def add(self, number: int) -> int:
        self.value += number
        return self.value


def calls_an_actor(name: str) -> None:
    assert ClusterResolver(current_cluster()).wait_for_actor(name).add(1) >= 1


class Member:
    def whose(self, ctx: ActorContext) -> list[str]:
        return [ctx.job_id, ctx.namespace]


def serve() -> None:
    server = ActorServer(current_cluster())
    server.register("member", Member())
    server.serve()


def wait_for_it() -> None:
    ClusterResolver(current_cluster()).wait_for_actor("late", 300)


def register_late() -> None:
    context = job_context()
    assert context is not None
    current_cluster().metadata.register("late", "127.0.0.1:1", context.job_id)
    until_stopped()
