"""Claims about starting, measuring and ending servers; they start real ones on a free port."""

import os
import socket
import sys
import tempfile
import unittest

from harness import machine
from harness.process import HOST, NotStarted, Stage, is_open, spent
from harness.servers import Server

LISTEN = """
import os, signal, socket, sys
port, fork = int(sys.argv[1]), sys.argv[2] == "fork"
listener = socket.socket()
listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
listener.bind(("127.0.0.1", port))
# The child is there, and holds the port, before anybody can connect.
if fork and os.fork() == 0:
    signal.pause()
listener.listen()
while True:
    listener.accept()
"""
CPU = min(os.sched_getaffinity(0))


def free_port():
    """Returns a port that was free a moment ago."""
    with socket.create_server((HOST, 0)) as listener:
        return listener.getsockname()[1]


def listener(port, mode="alone"):
    """Returns a server that accepts connections and does nothing with them."""
    return Server("listener", (port,), lambda _: [sys.executable, "-c", LISTEN, str(port), mode])


class Processes(unittest.TestCase):
    def test_leaving_a_stage_ends_servers_with_their_children_and_removes_the_directory(self):
        port = free_port()
        with Stage() as stage:
            child = stage.start(listener(port, "fork"), CPU)
            directory = stage._root
            family = child.pids()
            self.assertEqual(len(family), 2)
        self.assertFalse(is_open(port))
        self.assertFalse(os.path.exists(directory))
        self.assertFalse(any(os.path.exists(f"/proc/{pid}") and alive(pid) for pid in family))

    def test_a_server_that_ends_at_once_is_reported_with_its_words(self):
        failing = Server("failing", (free_port(),), lambda _: ["sh", "-c", "echo no such key; exit 3"])
        with Stage() as stage, self.assertRaisesRegex(NotStarted, "failing ended with status 3: no such key"):
            stage.start(failing, CPU)

    def test_a_port_in_use_is_named_before_anything_starts(self):
        with socket.create_server((HOST, 0)) as other, Stage() as stage:
            port = other.getsockname()[1]
            with self.assertRaisesRegex(NotStarted, f"127.0.0.1:{port} is in use"):
                stage.start(listener(port), CPU)

    def test_cpu_time_of_a_server_only_grows(self):
        with Stage() as stage:
            child = stage.start(listener(free_port()), CPU)
            before = child.cpu_seconds()
            # Accepting is the kernel's work at first: the listener gets its turn when it gets it.
            while spent(before, child.cpu_seconds()) == 0:
                socket.create_connection((HOST, child_port(child)), 1).close()
            self.assertGreater(spent(before, child.cpu_seconds()), 0)

    def test_memory_of_a_server_covers_its_children(self):
        with Stage() as stage:
            alone = stage.start(listener(free_port()), CPU).memory_bytes()
        with Stage() as stage:
            pair = stage.start(listener(free_port(), "fork"), CPU)
            self.assertEqual(len(pair.pids()), 2)
            self.assertGreater(pair.memory_bytes(), alone)

    def test_a_process_born_between_two_readings_counts_in_full(self):
        self.assertEqual(spent({1: 2.0, 2: 5.0}, {1: 3.5, 3: 0.5}), 2.0)


class Machine(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, machine, "POLICY", machine.POLICY)
        machine.POLICY = os.path.join(folder.name, "policy-rc.d")

    def test_the_guard_against_starting_services_is_executable_and_taken_away(self):
        with machine.services_kept_from_starting():
            self.assertTrue(os.access(machine.POLICY, os.X_OK))
        self.assertFalse(os.path.exists(machine.POLICY))

    def test_a_guard_that_was_there_stays_as_it_is(self):
        with open(machine.POLICY, "w") as policy:
            policy.write("theirs")
        with machine.services_kept_from_starting():
            pass
        with open(machine.POLICY) as policy:
            self.assertEqual(policy.read(), "theirs")

    def test_a_refused_connection_is_counted(self):
        before = machine.refused_connects()
        self.assertFalse(is_open(free_port()))
        self.assertGreater(machine.refused_connects(), before)


def alive(pid):
    """Tells whether a process still runs; one that ended but was not yet reaped does not."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def child_port(child):
    """Returns the port from the command line of a listener."""
    with open(f"/proc/{child.pids()[0]}/cmdline") as line:
        return int(line.read().split("\0")[3])
