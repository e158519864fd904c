"""Decides how much of the CPUs others used while something was measured.

It exists because figures taken on a busy machine mean little, and nobody should have to guess
whether it was. It refuses to blame the bench's own servers and loads.
"""

import resource
import time

from . import machine
from .process import spent

CORES_MAX = 0.25
"""Other programs' share of the two CPUs, above which a measurement is noisy."""

QUIET_CORES_MAX = 0.12
WINDOW_SECS = 0.5


class Watch:
    """Readings taken at the start of a measurement."""

    def __init__(self, stage, settings):
        self._stage = stage
        self._wanted = {settings.gateway_cpu, settings.load_cpu}
        self._started = time.monotonic()
        self._busy = machine.busy_seconds(self._wanted)
        self._servers = stage.cpu_seconds()
        self._loads = ended_children_secs()

    def cores(self):
        """Returns the cores that others have used since then, loads that still run included."""
        known = spent(self._servers, self._stage.cpu_seconds()) + ended_children_secs() - self._loads
        busy = machine.busy_seconds(self._wanted) - self._busy
        return (busy - known) / (time.monotonic() - self._started)


def ended_children_secs():
    """Returns the CPU seconds of the children that have ended so far, which is what loads are."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def wait_for_quiet(settings):
    """Returns when both CPUs are idle enough, or the patience for all rows together ends."""
    wanted = {settings.gateway_cpu, settings.load_cpu}
    started = time.monotonic()
    while time.monotonic() - started < settings.patience_secs:
        before = machine.busy_seconds(wanted)
        time.sleep(WINDOW_SECS)
        if (machine.busy_seconds(wanted) - before) / WINDOW_SECS < QUIET_CORES_MAX:
            break
    settings.patience_secs -= time.monotonic() - started
