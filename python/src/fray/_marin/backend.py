"""The client of marin-fray's names, over any cluster."""

from __future__ import annotations

import contextlib
from typing import Any

from fray._host_serve import _own_address
from fray._marin import convert
from fray._marin.group import Group
from fray._marin.handle import Handle
from fray._marin.job import Job
from fray._marin.member import Place, construct, make
from fray.actor import ActorContext, ActorHandle, HostedActor
from fray.client import JobAlreadyExists
from fray.cluster import AlreadyExistsError, Cluster, LocalCluster, NotFoundError
from fray.rpc.server import ActorServer
from fray.types import ActorConfig, EnvironmentConfig, JobRequest, ResourceConfig
from fray.v2.actor import ActorSpec, PendingActor, handle_of, wait_ready
from fray.v2.actors import Actors

_ONE = ResourceConfig()
_CONFIG = ActorConfig()


class Backend:
    """Submits jobs to a cluster and creates actors there, see fray.client.Client."""

    def __init__(self, cluster: Cluster) -> None:
        """Use a cluster."""
        self.cluster = cluster
        self._actors = Actors(cluster)
        self._jobs: list[Job] = []

    def submit(self, request: JobRequest, adopt_existing: bool = True) -> Job:
        """Start a job and return at once."""
        try:
            job_id = self.cluster.launch(convert.job_request(request, adopt_existing))
        except AlreadyExistsError as err:
            raise JobAlreadyExists(request.name, self._living(request.name)) from err
        job = Job(self.cluster, job_id)
        self._jobs.append(job)
        return job

    def _living(self, name: str) -> Job | None:
        found = (job for job in self.cluster.list_jobs() if job.name == name and not job.status.ended)
        return next((Job(self.cluster, job.job_id) for job in found), None)

    def host_actor(
        self,
        actor_class: type,
        *args: Any,
        name: str,
        actor_config: ActorConfig = _CONFIG,
        **kwargs: Any,
    ) -> HostedActor:
        """Make an actor in this process, which others call."""
        handle = Handle(handle_of(self.cluster, name))
        actor = construct(ActorContext(handle, 0, name), actor_class, args, kwargs)
        host = "127.0.0.1" if isinstance(self.cluster, LocalCluster) else _own_address()
        server = ActorServer(self.cluster, host=host, created=True)
        server.serve_background()
        try:
            server.register(name, actor, max_concurrency=actor_config.max_concurrency)
        except BaseException:
            server.shutdown(0)
            raise
        return HostedActor(handle, server.shutdown)

    def create_actor(
        self,
        actor_class: type,
        *args: Any,
        name: str,
        resources: ResourceConfig = _ONE,
        actor_config: ActorConfig = _CONFIG,
        environment: EnvironmentConfig | None = None,
        **kwargs: Any,
    ) -> ActorHandle:
        """Create an actor and return its handle once it answers."""
        place = Place(name, name)
        spec = _spec(place, (actor_class, args, kwargs), resources, actor_config, environment)
        return Handle(self._actors.create(spec))

    def create_actor_group(
        self,
        actor_class: type,
        *args: Any,
        name: str,
        count: int,
        resources: ResourceConfig = _ONE,
        actor_config: ActorConfig = _CONFIG,
        environment: EnvironmentConfig | None = None,
        **kwargs: Any,
    ) -> Group:
        """Begin to create `count` actors, called NAME_0, NAME_1 and so on; in this process, make them."""
        actors = self._actors.create_all(
            _spec(
                Place(f"{name}_{i}", name, i),
                (actor_class, args, kwargs),
                resources,
                actor_config,
                environment,
            )
            for i in range(count)
        )
        if isinstance(self.cluster, LocalCluster):
            _await_made(actors)
        return Group(name, actors)

    def shutdown(self, wait: bool = True) -> None:
        """End the actors that were created; with `wait`, once the jobs that were submitted have ended."""
        for job in self._jobs if wait else ():
            with contextlib.suppress(NotFoundError):
                job.wait(raise_on_failure=False)
        self._actors.await_end(self._actors.terminate())


def _spec(
    place: Place,
    what: tuple[Any, tuple[Any, ...], dict[str, Any]],
    resources: ResourceConfig,
    config: ActorConfig,
    environment: EnvironmentConfig | None,
) -> ActorSpec:
    actor_class, args, kwargs = what
    return ActorSpec(
        place.name,
        make,
        (place, actor_class, args, kwargs),
        pool=place.group if place.group != place.name else "",
        resources=convert.resources(resources, 1),
        options=convert.actor_options(config, environment, resources.image),
    )


def _await_made(actors: list[PendingActor]) -> None:
    try:
        wait_ready(actors, len(actors))
    except BaseException:
        for actor in actors:
            actor.job.terminate()
        raise
