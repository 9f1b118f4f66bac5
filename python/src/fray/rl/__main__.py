"""Hosts roles of a run: `python -m fray.rl ROLE[:INDEX] ... [--config FILE]`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence

from fray.rl.config import VARIABLE, ConfigError, load
from fray.rl.execution import set_logging_basic_config

_DESCRIPTION = """Hosts roles of a reinforcement learning run that are classes of Python, until
the run has ended, or SIGTERM.

ROLE is one of rollout_worker, algorithm_processor, train_worker, train_service, inference_service and
experiment_logger; or a role that is otherwise hosted by "fray rl", where its type in the configuration is
"module:Class". INDEX is which of several; without it all of the role are hosted here."""

_OF_A_GANG = """fray.rl: this is task {task} of its job. Only task 0 of a gang hosts actors: callers would
reach now one process, now another. Give the role a command, which runs `python -m fray.rl {roles}`
in task 0 only, and in the others what computes for it, as examples/nexrl/train_service.py does.
"""


def main(arguments: Sequence[str]) -> int:
    """Host roles until the run has ended, SIGTERM or Ctrl-C, and return the exit status.

    It is 0, also of a run that failed, which the controller's status shows; 2 if the configuration is at
    fault, and 1 if the actors cannot be registered.
    """
    parser = argparse.ArgumentParser(
        "python -m fray.rl", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("roles", nargs="+", metavar="ROLE[:INDEX]", help="what to host")
    parser.add_argument("--config", metavar="FILE", help=f"the run's configuration; without it {VARIABLE}")
    parser.add_argument("--log-level", default="INFO", metavar="LEVEL", help="of messages (INFO)")
    given = parser.parse_args(arguments)
    level = logging.getLevelNamesMapping().get(given.log_level.upper())
    if level is None:
        parser.error(f"--log-level {given.log_level}: want DEBUG, INFO, WARNING or ERROR")
    set_logging_basic_config(level)
    if (task := os.environ.get("FRAY_TASK_INDEX") or "0") != "0":
        sys.stderr.write(_OF_A_GANG.format(task=task, roles=" ".join(given.roles)))
        return 2
    from fray.cluster.current import current_cluster
    from fray.rl.hosting import Hosting, places_of

    try:
        config = load(given.config)
        hosting = Hosting(config, places_of(given.roles, config), current_cluster())
    except (ConfigError, ImportError) as err:
        sys.stderr.write(f"fray.rl: {err}\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: hosting.end())
    sys.stderr.write(f"fray.rl: {', '.join(hosting.names)} at {hosting.address}\n")
    hosting.wait()
    return 0 if hosting.failure is None else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
