"""A program for marin-fray whose actors end themselves, by success or by failure."""

from __future__ import annotations

import os
import time

from fray import ActorConfig, ResourceConfig, current_actor
from fray.client import Client
from fray.current_client import current_client

SMALL = ResourceConfig(cpu=0.1, ram="100m", disk="1g")


class Worker:
    def __init__(self) -> None:
        self.context = current_actor()

    def process(self) -> int:
        assert self.context.shutdown_event is not None
        return os.getpid()

    def leave(self) -> None:
        assert self.context.shutdown_event is not None
        self.context.shutdown_event.set()

    def fail(self) -> None:
        self.context.fail(RuntimeError("the coordinator is gone"))


class Hasty:
    """Asks for its end before it is served."""

    def __init__(self) -> None:
        event = current_actor().shutdown_event
        assert event is not None
        event.set()


def main() -> None:
    client: Client = current_client()
    group = client.create_actor_group(
        Worker, name="workers", count=2, resources=SMALL, actor_config=ActorConfig(max_task_retries=1)
    )
    one, other = group.wait_ready()
    before = other.process()
    one.leave()
    other.fail.remote()
    while _process(other) in (before, None):
        time.sleep(0.02)
    assert not group.is_done()
    other.leave()
    hasty = client.create_actor_group(Hasty, name="hasty", count=1, resources=SMALL)
    while not (group.is_done() and hasty.is_done()):
        time.sleep(0.02)
    print("the actors have ended: done")


def _process(actor: object) -> int | None:
    try:
        return int(actor.process())  # type: ignore[attr-defined]
    except (ConnectionError, RuntimeError):  # while it is made again
        return None


if __name__ == "__main__":
    main()
