"""Decides how the bench sends single requests at chosen times, and steers the congested origin.

It exists because first answers, collapsing and recovery are no matter of throughput. It refuses
to leave a load running: leaving the block ends it.
"""

import json
import os
import subprocess
from contextlib import contextmanager

from .client import CONTROL_PORT, fetch
from .places import TOOLS
from .process import pinned

class Stuck(Exception):
    """A load did not end in time, because its requests did not; the text says so."""


RUN_SECS_MAX = 120
"""Longer than any load here may take."""


def command(kind, cpu, wanted):
    """Returns the command line of a load: `wanted` are its words by name."""
    words = [f"{name}={value}" for name, value in wanted.items()]
    return pinned(cpu, [os.path.join(TOOLS, "target", "release", "load"), kind, *words])


def run(kind, cpu, **wanted):
    """Runs a load to its end and returns what it printed, or raises Stuck."""
    with running(kind, cpu, **wanted) as told:
        return told()


@contextmanager
def running(kind, cpu, **wanted):
    """Starts a load; the block gets a function that waits for its end and returns what it printed."""
    process = subprocess.Popen(command(kind, cpu, wanted), stdout=subprocess.PIPE, start_new_session=True)

    def told():
        try:
            printed, _ = process.communicate(timeout=RUN_SECS_MAX)
        except subprocess.TimeoutExpired as error:
            raise Stuck(f"{kind} load not at its end after {RUN_SECS_MAX} s") from error
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)
        return json.loads(printed)

    try:
        yield told
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def steer(word):
    """Sends the congested origin a word: "hang", "heal" or "record". Returns its record, before which it obeyed."""
    return json.loads(fetch(CONTROL_PORT, f"/{word}")[1])


def off(told, count):
    """Returns None when at least 99 % of the answers are 200, else what came how often, in words."""
    statuses = dict(told["statuses"])
    if statuses.pop("200", 0) >= 0.99 * count:
        return None
    parts = [f"{number} x {status}" for status, number in statuses.items()]
    parts += [f"{told[word]} {word}" for word in ("late", "broken") if told[word]]
    return f"{count} requests came to " + ", ".join(parts)
