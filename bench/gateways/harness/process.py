"""Decides how servers are started, measured and ended.

It exists so that nothing outlives a run: each server leads a session of its own, and a
stage ends all that it started. It refuses to signal anything else.
"""

import os
import select
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_SECS_MAX = 15
STOP_SECS_MAX = 5
HOST = "127.0.0.1"


class NotStarted(Exception):
    """A server ended, or opened no port in time; the text ends with what it said first."""


def is_open(port):
    """Tells whether something accepts connections on a loopback port."""
    try:
        socket.create_connection((HOST, port), 0.5).close()
    except OSError:
        return False
    return True


def pinned(cpu, command):
    """Returns the command bound to one CPU, and ended by the kernel should this script be killed."""
    return ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", str(cpu), *command]


class Child:
    """One running server with its descendants."""

    def __init__(self, name, command, cpu, directory):
        self.name = name
        self.directory = directory
        self._log = os.path.join(directory, "log")
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                pinned(cpu, command),
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_until_open(self, ports):
        """Returns once all ports accept connections."""
        until = time.monotonic() + START_SECS_MAX
        while not all(map(is_open, ports)):
            if self._process.poll() is not None:
                status = self._process.returncode
                raise NotStarted(f"{self.name} ended with status {status}: {self.said_first()}")
            if time.monotonic() > until:
                raise NotStarted(f"{self.name}: no {ports} after {START_SECS_MAX} s: {self.said_first()}")
            time.sleep(0.02)

    def said_first(self):
        """Returns the beginning of what the server printed, on one line."""
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return " ".join(log.read(4000).split())[:300] or "it said nothing"

    def pids(self):
        """Returns the living processes of the session, the first one being the one started."""
        found, todo = [], [self._process.pid]
        while todo:
            pid = todo.pop()
            found.append(pid)
            try:
                for thread in os.listdir(f"/proc/{pid}/task"):
                    with open(f"/proc/{pid}/task/{thread}/children") as children:
                        todo += map(int, children.read().split())
            except OSError:
                pass  # It ended meanwhile.
        return found

    def cpu_seconds(self):
        """Returns CPU seconds by process id, all threads included, exact to the nanosecond."""
        seconds = {}
        for pid in self.pids():
            try:
                seconds[pid] = time.clock_gettime(cpu_clock(pid))
            except OSError:
                pass  # It ended meanwhile.
        return seconds

    def memory_bytes(self):
        """Returns the proportional set size: what is shared counts by its share."""
        total = 0
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/smaps_rollup") as lines:
                    total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
            except (FileNotFoundError, ProcessLookupError):
                pass  # It ended meanwhile.
        return total * 1024

    def stop(self):
        """Ends the server, politely at first."""
        family = self.pids()
        self._process.terminate()
        try:
            self._process.wait(STOP_SECS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for pid in family[1:]:
            end_survivor(pid, self._process.pid)


def end_survivor(pid, session):
    """Ends a process of the session that outlived its parent, and returns when it is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # The number may have been given to a stranger before the handle held it: only our session is ended.
        if os.getsid(pid) == session:
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            select.select([handle], [], [], STOP_SECS_MAX)
    except ProcessLookupError:
        pass
    finally:
        os.close(handle)


def cpu_clock(pid):
    """Returns Linux's number for the clock of a process's CPU time (clock_getcpuclockid(3))."""
    scheduler_clock = 2
    return (~pid << 3) | scheduler_clock


def spent(before, after):
    """Returns the CPU seconds between two readings; processes that ended between them count not at all."""
    return sum(seconds - before.get(pid, 0.0) for pid, seconds in after.items())


def in_memory():
    """Returns a place for files that lie in memory, or None for the usual one.

    Varnish loads its compiled configuration from there, so one that forbids programs is of no use.
    """
    place = "/dev/shm"
    if not os.access(place, os.W_OK) or os.statvfs(place).f_flag & os.ST_NOEXEC:
        return None
    return place


class Stage:
    """The servers of one comparison and the directory they write to; leaving it removes both."""

    def __enter__(self):
        self._root = tempfile.mkdtemp(prefix="gateway-bench-", dir=in_memory())
        self._children = {}
        return self

    def __exit__(self, *_):
        try:
            for child in reversed(self._children.values()):
                child.stop()
        finally:
            shutil.rmtree(self._root)

    def cpu_seconds(self):
        """Returns CPU seconds by process id, those of all servers."""
        return {pid: secs for child in self._children.values() for pid, secs in child.cpu_seconds().items()}

    def start(self, server, cpu):
        """Starts a server in a directory of its own, or raises NotStarted and leaves nothing of it."""
        taken = [port for port in server.ports if is_open(port)]
        if taken:
            raise NotStarted(f"{server.name}: {HOST}:{taken[0]} is in use by another program")
        # Of its own: a gateway may fall back to the last good contract that it kept beside the file.
        directory = os.path.join(self._root, server.name)
        os.mkdir(directory)
        child = Child(server.name, server.command(directory), cpu, directory)
        try:
            child.wait_until_open(server.ports)
        except BaseException:
            child.stop()
            raise
        self._children[server.name] = child
        return child
