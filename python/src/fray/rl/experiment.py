"""The run's logger at Weights & Biases: a process of Python, as its package is."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Any

from fray.rl.config import DEFAULTS, setting
from fray.rl.module import NexRLModule

_STEP = "training/global_step"
_log = logging.getLogger("fray.rl")


class WandbLogger(NexRLModule):
    """The actor `experiment_logger`: posts metrics and messages to a run of wandb.

    The run has the names of `project_name` and `experiment_name`, and the configuration; its directory is
    `out`. It is resumed when the process is restarted. WANDB_MODE and WANDB_API_KEY are wandb's own.
    """

    def __init__(self, config: Any) -> None:
        """Use a configuration; wandb is imported and the run begun with the first post.

        Args:
            config: The whole configuration.
        """
        super().__init__()
        self._config = config
        self._lock = threading.Lock()
        self._run: Any = None

    def post(self, backend: str, values: Mapping[str, Any]) -> bool:
        """Post what `experiment_logger_post` was given for a backend; return whether it was for this one.

        Args:
            backend: Others than "wandb" change nothing.
            values: `data` and `step`, or `content` and `title`. Others are ignored. Steps may come in any
                order: wandb itself drops what it is given with a step before the last one, as of a run that
                went back to a checkpoint, so that the step is a metric, and the axis of the others.

        Raises:
            ImportError: wandb is not installed.
        """
        if backend != "wandb":
            return False
        with self._lock:
            run = self._begun()
            if (data := values.get("data")) is not None:
                step = values.get("step")
                run.log({**data, **({} if step is None else {_STEP: step})})
            elif (content := values.get("content")) is not None:
                title = values.get("title") or f"message: {self._named('experiment_name')}"
                run.alert(title=str(title), text=str(content))
        return True

    def stop(self) -> None:
        """End the run at wandb, once all that was posted is written."""
        with self._lock:
            run, self._run = self._run, None
            if run is not None:
                import wandb

                run.finish()
                # Offline, finish() returns while wandb's own process still writes; this waits for its end.
                wandb.teardown()

    def _named(self, key: str) -> str:
        return str(setting(self._config, key, DEFAULTS[key]))

    def _begun(self) -> Any:
        if self._run is None:
            try:
                import wandb
            except ImportError as err:
                raise ImportError(
                    'logger.backend has "wandb", and the package is not there: pip install wandb'
                ) from err
            project, name = self._named("project_name"), self._named("experiment_name")
            self._run = wandb.init(
                project=project,
                name=name,
                id=_identifier(f"{project}-{name}"),
                resume="allow",
                dir=self._named("out"),
                config={"nexrl": _public(self._config)},
            )
            self._run.define_metric(_STEP)
            self._run.define_metric("*", step_metric=_STEP)
        return self._run


def _identifier(text: str) -> str:
    return "".join(c if c.isalnum() or c in "-_" else "-" for c in text)[:128]


def _public(config: Any) -> Any:
    """Return the configuration without keys of services."""
    if isinstance(config, Mapping):
        return {key: _public(value) for key, value in config.items() if key != "api_key"}
    return [_public(each) for each in config] if isinstance(config, list) else config
