"""Data loaders that are classes of Python: their base, and one over a buffer that sources fill.

The run's own loader is a role in Go. A class here takes its place where `type` is "module:Class"; leases and
what becomes of a lost worker's tasks are the host's, see `fray.rl.leases`.
"""

from __future__ import annotations

import json
import random
from abc import abstractmethod
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fray.rl.config import ConfigError, setting
from fray.rl.module import NexRLModule

Item = dict[str, Any]


class DataLoaderError(RuntimeError):
    """A loader was asked for what it cannot do in its state."""


class BaseDataLoader(NexRLModule):
    """Gives the items that are rolled out."""

    def __init__(self, config: Any, is_validate: bool = False) -> None:
        """Keep the configuration.

        Args:
            config: Section `data` of the run, or `validate.data`.
            is_validate: Whether its items are for validation.
        """
        super().__init__()
        self._config, self._is_validate = config, is_validate

    @abstractmethod
    def __len__(self) -> int:
        """Return how many items remain."""

    @abstractmethod
    def __getitem__(self, index: int) -> Item:
        """Return the item of an index."""

    @abstractmethod
    def get_next_item(self) -> Item | None:
        """Return the next item, None if there is none now."""

    @abstractmethod
    def is_finished(self) -> bool:
        """Return whether there will be no more items."""

    @abstractmethod
    def can_return_item(self) -> bool:
        """Return whether `get_next_item` would return an item now."""

    @abstractmethod
    def reset(self) -> None:
        """Begin again, as for the next validation."""

    def add_item(self, item: Item) -> None:
        """Add an item, which comes last."""
        self.add_item_back(item)

    @abstractmethod
    def add_item_front(self, item: Item) -> None:
        """Add an item, which comes next."""

    @abstractmethod
    def add_item_back(self, item: Item) -> None:
        """Add an item, which comes last."""


class BufferedDataLoader(BaseDataLoader):
    """A loader over a source that is read batch by batch; subclasses give the items by `_items`.

    Keys of its section: `batch_size` (32) items are read at a time, in an order shuffled by `seed` with
    `shuffle`; with `drop_last` a last batch that is not full is left out. `repeat_item` (1) is how often each
    is given, with the same `group_id` and `run_id` 0, 1 and so on; items for validation are given once. With
    `keep_batch_order` the next batch is read after `unlock_for_next_batch` only.
    """

    def __init__(self, config: Any, is_validate: bool = False) -> None:
        super().__init__(config, is_validate)
        self._batch_size = int(setting(config, "batch_size", 32))
        self._repeat = 1 if is_validate else int(setting(config, "repeat_item", 1))
        self._ordered = bool(setting(config, "keep_batch_order", False))
        if self._batch_size < 1 or self._repeat < 1:
            raise ConfigError("batch_size and repeat_item are 1 at least")
        if int(setting(config, "passes", 1)) != 1:
            raise ConfigError("passes: a loader of Python makes one pass; give its items as often in _items")
        self._all = list(self._items())
        self._order = list(range(len(self._all)))
        if setting(config, "shuffle", False):
            random.Random(setting(config, "seed", 0)).shuffle(self._order)
        if setting(config, "drop_last", False):
            del self._order[len(self._order) - len(self._order) % self._batch_size :]
        self.reset()

    @abstractmethod
    def _items(self) -> Iterator[Item]:
        """Return the items of the source, always the same ones in the same order."""

    def reset(self) -> None:
        """Begin again: nothing is buffered, no item was given, and the first batch is not locked."""
        self._buffer: deque[Item] = deque()
        self._next = 0
        self._locked = False
        self._begun = False

    def skip_batches(self, count: int) -> int:
        """Leave out the next batches, as when a run is resumed. Returns how many there were.

        Raises:
            DataLoaderError: items were given since the loader was made or reset.
        """
        if self._begun:
            raise DataLoaderError(
                "batches are skipped before the first item is given; reset the loader first"
            )
        left = (len(self._order) - self._next + self._batch_size - 1) // self._batch_size
        self._next = min(len(self._order), self._next + count * self._batch_size)
        return min(count, left)

    def unlock_for_next_batch(self) -> None:
        """Let the next batch be read, with `keep_batch_order`; if nothing is buffered it is read now."""
        self._locked = False
        if not self._buffer:
            self._load()

    def get_next_item(self) -> Item | None:
        """Return the next item, None if there is none now."""
        if not self._buffer:
            self._load()
        if not self._buffer:
            return None
        self._begun = True
        return self._buffer.popleft()

    def is_finished(self) -> bool:
        """Return whether the source is exhausted and nothing is buffered."""
        return not self._buffer and self._next >= len(self._order)

    def can_return_item(self) -> bool:
        """Return whether `get_next_item` would return an item now."""
        return bool(self._buffer) or (self._next < len(self._order) and not self._locked)

    def add_item_front(self, item: Item) -> None:
        """Add an item, which comes next."""
        self._buffer.appendleft(item)

    def add_item_back(self, item: Item) -> None:
        """Add an item after those that are buffered."""
        self._buffer.append(item)

    def __len__(self) -> int:
        """Return how many items remain."""
        return len(self._buffer) + (len(self._order) - self._next) * self._repeat

    def __getitem__(self, index: int) -> Item:
        """Return an item of the source, in its order."""
        return dict(self._all[index])

    def _load(self) -> None:
        if self._locked or self._next >= len(self._order):
            return
        batch = self._order[self._next : self._next + self._batch_size]
        self._next += len(batch)
        self._locked = self._ordered
        for index in batch:
            item = self._all[index]
            group = str(item.get("group_id", f"item-{index}"))
            for run in range(self._repeat):
                self._buffer.append({**item, "group_id": group, "run_id": run, "index": index})


class MockDataLoader(BufferedDataLoader):
    """Gives `num_samples` (100) made-up prompts, for tests of the rest of a run."""

    def _items(self) -> Iterator[Item]:
        for i in range(int(setting(self._config, "num_samples", 100))):
            yield {"prompt": f"mock prompt {i}"}


class JsonlDataLoader(BufferedDataLoader):
    """Gives the objects of `data_path`, a file with one JSON object per line."""

    def _items(self) -> Iterator[Item]:
        path = setting(self._config, "data_path")
        if not path:
            raise ConfigError("data_path is missing: the file with one JSON object per line")
        with Path(path).open() as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    item = json.loads(line)
                except json.JSONDecodeError as err:
                    raise ConfigError(f"{path}:{number}:{err.colno}: {err.msg}") from err
                if not isinstance(item, dict):
                    raise ConfigError(f"{path}:{number}: want a JSON object, got {type(item).__name__}")
                yield item
