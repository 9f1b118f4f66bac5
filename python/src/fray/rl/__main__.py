"""Hosts roles of a run: `python -m fray.rl ROLE[:INDEX] ... [--config FILE]`."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence

from fray._termination import record
from fray.rl.config import VARIABLE, ConfigError, load
from fray.rl.ended import end_of
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


def reject(why: str) -> int:
    """Report why each further attempt of this process would fail, so that none is made; return its status.

    For the program of a role with a command, where a package or a value of the configuration is missing.
    """
    from fray.cluster.types import TerminationCause

    sys.stderr.write(f"fray.rl: {why}\n")
    record(TerminationCause.FINAL, why)
    return 2


def main(arguments: Sequence[str]) -> int:
    """Host roles until the run has ended, SIGTERM or Ctrl-C, and return the exit status.

    It is 0 once the run has ended, also of a run that failed, which the controller's process shows; 2 if the
    configuration is at fault, so that each further attempt would fail, and 1 if the actors cannot be
    registered. SIGTERM before the end is 143, and Ctrl-C 130: the process is to be started again.
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
        places = places_of(given.roles, config)
        if (end := end_of(config)) is not None:
            sys.stderr.write(f"fray.rl: the run has ended before: {end.reason}\n")
            return 0
        hosting = Hosting(config, places, current_cluster())
    except (ConfigError, ImportError) as err:
        return reject(str(err))
    signals: list[int] = []

    def interrupted(number: int, _: object) -> None:
        signals.append(number)
        hosting.end()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, interrupted)
    sys.stderr.write(f"fray.rl: {', '.join(hosting.names)} at {hosting.address}\n")
    hosting.wait()
    if hosting.has_ended:
        return 0
    return 128 + signals[0] if signals else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
