"""Claims about loads that run beside the script."""

import os
import tempfile
import unittest
from unittest import mock

from harness import filling, load
from tests.test_process import alive


class Loads(unittest.TestCase):
    def started(self, script):
        """Returns a stand-in for the load's command line."""
        return mock.patch.object(load, "command", lambda *_: ["sh", "-c", script])

    def test_leaving_the_block_ends_a_load_that_still_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            told = os.path.join(folder, "pid")
            with self.started(f"echo $$ > {told}.part && mv {told}.part {told}; exec sleep 600"):
                with self.assertRaises(KeyboardInterrupt), load.running("open", 0):
                    while not os.path.exists(told):
                        pass
                    with open(told) as file:
                        pid = int(file.read())
                    raise KeyboardInterrupt
            self.assertFalse(os.path.exists(f"/proc/{pid}") and alive(pid))

    def test_what_a_load_prints_is_read(self):
        with self.started("echo '{\"asked\": [1]}'"), load.running("open", 0) as told:
            self.assertEqual(told(), {"asked": [1]})

    def test_a_load_that_fails_is_an_error(self):
        with self.started("exit 3"), load.running("open", 0) as told:
            with self.assertRaisesRegex(load.subprocess.CalledProcessError, "exit status 3"):
                told()

    def test_a_load_that_does_not_end_is_ended_and_said(self):
        with self.started("exec sleep 600"), mock.patch.object(load, "RUN_SECS_MAX", 0.05):
            with self.assertRaisesRegex(load.Stuck, "open load not at its end after 0.05 s"):
                load.run("open", 0)


class Filling(unittest.TestCase):
    def filled(self, *told):
        """Returns what filling 3 keys says when the loads print `told`, and how many ran."""
        loads = mock.Mock(side_effect=told)
        settings = mock.Mock(load_cpu=0)
        with mock.patch.object(load, "run", loads), mock.patch.object(filling, "PAUSE_SECS", 0):
            return filling.fill(1, "/", 3, settings), loads.call_count

    def test_a_cache_is_filled_once_all_keys_are_answered_in_one_go(self):
        partly = {"statuses": {"200": 2, "503": 1}, "late": 0, "broken": 0}
        whole = {"statuses": {"200": 3}, "late": 0, "broken": 0}
        self.assertEqual(self.filled(partly, whole), (None, 2))

    def test_silence_is_not_asked_again(self):
        silent = {"statuses": {"200": 1}, "late": 2, "broken": 0}
        self.assertEqual(self.filled(silent), ("does not answer: 2 of 3 requests had nothing after 5 s", 1))
        self.assertEqual(self.filled(load.Stuck("stuck")), ("does not answer: stuck", 1))

    def test_refusals_are_named_when_the_time_is_used_up(self):
        refused = {"statuses": {"503": 3}, "late": 0, "broken": 0}
        with mock.patch.object(filling, "SECS_MAX", -1):
            self.assertEqual(self.filled(refused), ("is not filled after -1 s: 3 requests came to 3 x 503", 1))
