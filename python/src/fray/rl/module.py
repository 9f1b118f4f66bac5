"""The base of all modules of a run."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from fray.rl.dump import Dumps

if TYPE_CHECKING:
    from fray.rl.nexrl_types import Formatter
    from fray.rl.tracking import ActivityTrackerProxy


class NexRLModule(ABC):  # noqa: B024 - the guide's name for what every module has, abstract in its subclasses
    """What every module has: its name, the activity tracker, and whether it is well."""

    def __init__(self) -> None:
        self._module_name: str = "invalid"
        self._activity_tracker: ActivityTrackerProxy = cast("ActivityTrackerProxy", None)
        self._dumps: Dumps | None = None

    def set_activity_tracker(self, tracker: ActivityTrackerProxy) -> None:
        """Set what the module reports to."""
        self._activity_tracker = tracker

    def set_module_name(self, module_name: str) -> None:
        """Set the module's name, which is that of its actor."""
        self._module_name = module_name

    def get_module_name(self) -> str:
        """Return the module's name."""
        return self._module_name

    def health_check(self) -> bool:
        """Return whether the module is well; it answers at all if its process is."""
        return True

    def easy_dump(
        self, value: Any, keys: Sequence[str] = (), value_formatter: Formatter | None = None
    ) -> str | None:
        """Write a value to a file, for debugging, if the run is configured to. It never raises.

        Args:
            value: What to write.
            keys: They are in the file's name, after the module's name.
            value_formatter: Makes text of the value; None: JSON, or its repr where that is not possible.

        Returns:
            The path of the file, None if nothing was written.
        """
        if self._dumps is None:
            self._dumps = Dumps.of(getattr(self, "_config", None))
        if not self._dumps.wanted:
            return None
        step = -1
        try:
            if self._activity_tracker is not None:
                step = self._activity_tracker.get_training_step()
        except Exception:  # the value matters more than the step
            step = -1
        return self._dumps.write(value, [self._module_name, *keys], step, value_formatter)
