"""Decides how the bench speaks HTTP: single requests, the origin's control port, and wrk.

It exists so that each row can prove what it measures before and while it does. It refuses
hosts other than loopback.
"""

import http.client
import json
import os
import subprocess
from dataclasses import dataclass

from .places import CONF
from .process import HOST, pinned
from .servers import ORIGIN

CONNECTIONS = 64
BODY_LEN = 1024
CONTROL_PORT = ORIGIN.ports[1]
ANSWER_SECS_MAX = 5


class Unreached(Exception):
    """A single request got no HTTP answer."""


def fetch(port, path):
    """Returns status and body of one GET on a connection of its own."""
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_SECS_MAX)
    try:
        connection.request("GET", path, headers={"Host": "bench.test"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Unreached(f"{HOST}:{port}{path}: {error!r}") from error
    finally:
        connection.close()


def set_origin(mode):
    """Puts the origin into a mode, which holds when this returns."""
    fetch(CONTROL_PORT, f"/mode/{mode}")


def origin_requests():
    """Returns how many requests the origin has read so far."""
    return json.loads(fetch(CONTROL_PORT, "/counters")[1])["requests"]


@dataclass(frozen=True)
class Load:
    """What wrk saw. Times in µs."""

    requests: int
    micros: int
    not_2xx: int
    broken: int
    p50_us: int
    p99_us: int


def run_load(port, path, secs, cpu):
    """Sends requests over kept-alive connections, each as soon as the one before is answered."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{secs}s", "-H", "Host: bench.test"]
    command += ["-s", os.path.join(CONF, "wrk.lua"), f"http://{HOST}:{port}{path}"]
    told = subprocess.run(
        pinned(cpu, command),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=secs + 30,
        start_new_session=True,
    )
    figures = json.loads(told.stdout.strip().rpartition("\n")[2])
    return Load(**figures)

