"""Claims about loads that run beside the script."""

import os
import tempfile
import unittest
from unittest import mock

from harness import load
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
