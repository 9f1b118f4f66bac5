"""Who rolls which task out: leases of the items that a loader of Python gives.

A lease is its worker's activity, so that no item is between loader and worker without being either's. It ends
with its task, or the task comes again, first of all: when the worker puts it back, lives anew, or does not
renew its leases for `lease_ttl`.
"""

from __future__ import annotations

import copy
import json
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fray.rl.config import DEFAULT_LEASE_TTL
from fray.rl.data import BaseDataLoader, Item
from fray.rl.wire import Exchange, Lease, Route, Task, TaskOutcome

_POLL = 0.02  # seconds between two readings of a loader that is waited for
_LONGEST_WAIT = 10.0  # seconds of one wait
_KEPT = 16_384  # tasks that were done, whose items are known still


@dataclass
class _Given:
    """An item that a worker has."""

    item: Item
    lease: Lease
    worker: str
    incarnation: str
    again: bool = False
    """Its trajectory is not used: it comes next once it is done."""


class LeasedLoader:
    """A loader as the actor `data_loader` or `validate_dataloader`, or for workers of this process."""

    def __init__(
        self,
        loader: BaseDataLoader,
        route: Route = "train",
        ttl: float = DEFAULT_LEASE_TTL,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Lease the items of a loader.

        Args:
            loader: Gives them. Its methods are called one at a time.
            route: Where their trajectories go.
            ttl: Seconds after which the leases of a worker end that it did not renew.
            clock: Gives seconds that grow.
        """
        self._loader, self._route, self._ttl, self._clock = loader, route, ttl, clock
        self._lock = threading.RLock()
        self._instance = secrets.token_hex(4)  # leases of an earlier process are none of this one's
        self._added: deque[str] = deque(maxlen=1024)
        self._returned: deque[tuple[Item, str]] = deque()
        self._given: dict[str, _Given] = {}
        self._heard: dict[str, float] = {}
        self._lives: dict[str, str] = {}
        self._count = self._pass = self._epoch = 0
        self._taken = 0  # items that the loader gave in this pass
        self._indices: dict[str, int] = {}  # of groups whose items have no index
        self._done: OrderedDict[str, Item] = OrderedDict()  # the last tasks, by their ids
        self._had: dict[str, tuple[int, int]] = {}  # of pools: the last task that it had come again

    def get_next_item(self, worker: str, incarnation: str) -> dict[str, Any] | None:
        """Lease the next item to a worker, while its lease stands the same one; None: there is none now."""
        with self._lock:
            self._hear(worker, incarnation)
            self._expire()
            for given in self._given.values():
                if given.worker == worker:
                    return self._written(given)
            leased = self._lease_next(worker, incarnation)
            return None if leased is None else self._written(leased)

    def lease(self, worker: str, incarnation: str) -> Task | None:
        """Lease the next item to a worker of this process."""
        return Task.of(self.get_next_item(worker, incarnation))

    def exchange_leases(
        self, worker: str, incarnation: str, asked: Mapping[str, Any]
    ) -> list[dict[str, Any]]:
        """End leases of a worker with their tasks, and lease items to it; see `fray.rl.wire.Exchange`.

        Leases that the worker does not name are of an answer that it did not get, and come first.
        It answers at once: the object that gives items cannot be waited for.
        """
        with self._lock:
            self._hear(worker, incarnation)
            for done in asked.get("done") or ():
                self.complete(str(done["lease"]), done["outcome"])
            self._expire()
            held, want = set(asked.get("held") or ()), int(asked.get("want") or 0)
            lost = [
                each for each in self._given.values() if each.worker == worker and each.lease.id not in held
            ]
            found = [self._written(each) for each in lost[:want]]
            while len(found) < want and (given := self._lease_next(worker, incarnation)) is not None:
                found.append(self._written(given))
            return found

    def exchange(
        self, worker: str, incarnation: str, asked: Exchange, poll: Any = None, since: int | None = None
    ) -> list[Task]:
        """Do the same for a worker of this process."""
        del poll, since
        found = self.exchange_leases(worker, incarnation, asked.to_wire())
        return [task for each in found if (task := Task.of(each)) is not None]

    def wait_quiet(self, seconds: float) -> dict[str, Any]:
        """Return the status as soon as no item is leased or can be, or after so many seconds."""
        until = self._clock() + min(seconds, _LONGEST_WAIT)
        while True:
            status = self.status()
            if (status["drained"] and not status["leased"]) or self._clock() >= until:
                return status
            time.sleep(_POLL)

    def complete(self, lease_id: str, outcome: TaskOutcome) -> None:
        """End a lease with its task. One that is over changes nothing."""
        del outcome
        with self._lock:
            given = self._given.pop(lease_id, None)
            if given is None:
                return
            if given.again:
                self._returned.appendleft((given.item, given.lease.task_id))
                return
            self._done[given.lease.task_id] = given.item
            if len(self._done) > _KEPT:
                self._done.popitem(last=False)

    def roll_out_again(self, pool: str, epoch: int, tasks: Sequence[Mapping[str, Any]]) -> list[str]:
        """Let tasks come next whose trajectories a pool does not use, since their weights are too old.

        Args:
            pool: Which pool asks. It numbers its tasks, so that the call may be repeated.
            epoch: Of the run, as the pool knows it.
            tasks: Each a map of `number`, `task_id` and `epoch`, that of its lease.

        Returns the tasks that were done too long ago, so that they are lost.
        """
        lost: list[str] = []
        with self._lock:
            had = max(self._had.get(pool, (epoch, 0)), (epoch, 0))
            for place, task in enumerate(tasks):
                known, number = str(task["task_id"]), (epoch, int(task["number"]))
                if number <= had:
                    continue
                had = number
                if int(task["epoch"]) != self._epoch or self._comes_again(known):
                    continue  # it comes once its worker ends it, or comes next anyhow
                item = self._done.pop(known, None)
                if item is None:
                    lost.append(known)
                else:
                    self._returned.insert(place, (item, known))
            self._had[pool] = had
        return lost

    def put_back(self, lease_id: str) -> bool:
        """End a lease and let its task come next; return whether there was such a lease."""
        with self._lock:
            given = self._given.pop(lease_id, None)
            if given is None:
                return False
            self._returned.appendleft((given.item, given.lease.task_id))
            return True

    def renew(self, worker: str, incarnation: str) -> None:
        """Note that a worker lives."""
        with self._lock:
            self._hear(worker, incarnation)

    def release_worker(self, worker: str, incarnation: str) -> int:
        """End the leases of one life of a worker; its tasks come next. Returns how many there were."""
        with self._lock:
            return self._release(lambda each: each.worker == worker and each.incarnation == incarnation)

    def status(self) -> dict[str, Any]:
        """Return whether items can be had, how many are leased, and the position, of one moment."""
        with self._lock:
            self._expire()
            drained = not self._returned and not self._loader.can_return_item()
            finished = not self._returned and self._loader.is_finished()
            position = {"epoch": self._pass, "batch": 0, "index": len(self._indices)}
            locked = drained and not finished
            return {
                "drained": drained,
                "leased": len(self._given),
                "finished": finished,
                "position": position,
                "locked": locked,
            }

    def is_finished(self) -> bool:
        """Return whether there will be no more items, and no worker has one that may come again."""
        status = self.status()
        return bool(status["finished"]) and not status["leased"]

    def can_return_item(self) -> bool:
        """Return whether an item can be leased now."""
        return not self.status()["drained"]

    def size(self) -> int:
        """Return how many items remain."""
        with self._lock:
            return len(self._returned) + len(self._loader)

    def get_item(self, index: int) -> Item:
        """Return an item of the source."""
        with self._lock:
            return self._loader[index]

    def add_item(self, item: Item, item_id: str = "") -> None:
        """Add an item, which comes last; one of the same id is not added again."""
        self._add(self._loader.add_item, item, item_id)

    def add_item_front(self, item: Item, item_id: str = "") -> None:
        """Add an item, which comes next; one of the same id is not added again."""
        self._add(self._loader.add_item_front, item, item_id)

    def add_item_back(self, item: Item, item_id: str = "") -> None:
        """Add an item, which comes last; one of the same id is not added again."""
        self._add(self._loader.add_item_back, item, item_id)

    def _add(self, add: Callable[[Item], None], item: Item, item_id: str) -> None:
        with self._lock:
            if item_id and item_id in self._added:
                return
            add(item)
            if item_id:
                self._added.append(item_id)

    def reset(self) -> None:
        """Begin again. Leases end, and what comes of them later counts for nothing."""
        with self._lock:
            self._given.clear()
            self._returned.clear()
            self._indices.clear()
            self._done.clear()
            self._pass += 1
            self._taken = 0
            self._loader.reset()

    def snapshot(self) -> bytes:
        """Return the state as bytes: the pass, how many items were given, and the tasks that are not done.

        Items that were added do not belong to it.
        """
        with self._lock:
            tasks = [each.lease.task_id for each in self._given.values()] + [
                known for _, known in self._returned
            ]
            return json.dumps({"pass": self._pass, "taken": self._taken, "undone": tasks}).encode()

    def restore(self, state: bytes, epoch: int = 0) -> None:
        """Go back to a state: the loader is reset, and gives again what it had given.

        Args:
            state: Of `snapshot`, of a loader with the same items in the same order.
            epoch: Of the run; leases have it from now on.
        """
        known = json.loads(bytes(state))
        undone = {task: place for place, task in enumerate(known["undone"])}
        with self._lock:
            self.reset()
            self._pass, self._epoch = int(known["pass"]), epoch
            again: list[tuple[int, tuple[Item, str]]] = []
            while self._taken < int(known["taken"]):
                given = self._next()
                if given is None:
                    self.unlock_for_next_batch()
                    given = self._next()
                if given is None:
                    break  # the source has fewer items now
                if given[1] in undone:
                    again.append((undone[given[1]], given))
            self._returned.extend(each for _, each in sorted(again, key=lambda pair: pair[0]))

    def skip_batches(self, count: int) -> int:
        """Leave out the next batches, see BufferedDataLoader.skip_batches."""
        with self._lock:
            loader: Any = self._loader
            return int(loader.skip_batches(count))

    def unlock_for_next_batch(self, at: dict[str, int] | None = None) -> bool:
        """Let a loader that keeps the order of batches read the next one.

        Args:
            at: The position in which the caller has seen it. If it has left that, as by a call whose answer
                was lost, nothing changes.

        Returns:
            Whether it was there.
        """
        with self._lock:
            if at is not None and at != self.status()["position"]:
                return False
            unlock = getattr(self._loader, "unlock_for_next_batch", None)
            if unlock is not None:
                unlock()
            return True

    def health_check(self) -> bool:
        """Return whether the loader is well."""
        return self._loader.health_check()

    def _comes_again(self, task: str) -> bool:
        """Return whether a task comes again: one that a worker has does once the worker ends it."""
        for each in self._given.values():
            if each.lease.task_id == task:
                each.again = True
                return True
        return any(known == task for _, known in self._returned)

    def _lease_next(self, worker: str, incarnation: str) -> _Given | None:
        taken = self._take()
        if taken is None:
            return None
        item, task_id = taken
        self._count += 1
        lease = Lease(f"{self._instance}-{self._count}", self._route, self._epoch, task_id)
        given = self._given[lease.id] = _Given(item, lease, worker, incarnation)
        return given

    @staticmethod
    def _written(given: _Given) -> dict[str, Any]:
        return {"item": copy.deepcopy(given.item), "lease": given.lease.to_wire()}

    def _take(self) -> tuple[Item, str] | None:
        return self._returned.popleft() if self._returned else self._next()

    def _next(self) -> tuple[Item, str] | None:
        """Return the next item of the loader with its task ID."""
        item = self._loader.get_next_item()
        if item is None:
            return None
        self._taken += 1
        item = dict(item)
        group = str(item.setdefault("group_id", f"group-{len(self._indices)}"))
        index = self._indices.setdefault(group, len(self._indices))
        run, index = item.setdefault("run_id", 0), item.setdefault("index", index)
        return item, f"{self._pass}/{index}/{run}"

    def _hear(self, worker: str, incarnation: str) -> None:
        if self._lives.get(worker, incarnation) != incarnation:  # it died, and another one has its name
            self._release(lambda each: each.worker == worker and each.incarnation != incarnation)
        self._lives[worker] = incarnation
        self._heard[worker] = self._clock()

    def _expire(self) -> None:
        since = self._clock() - self._ttl
        lost = {each.worker for each in self._given.values() if self._heard.get(each.worker, 0.0) < since}
        if lost:
            self._release(lambda each: each.worker in lost)

    def _release(self, which: Callable[[_Given], bool]) -> int:
        released = [lease_id for lease_id, each in self._given.items() if which(each)]
        for lease_id in reversed(released):
            given = self._given.pop(lease_id)
            self._returned.appendleft((given.item, given.lease.task_id))
        return len(released)
