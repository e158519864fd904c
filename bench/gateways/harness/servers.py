"""Decides which programs are measured and how each is started.

It exists so that one more gateway is one more entry. It refuses to know what a row asks
of them; see rows.py.
"""

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from . import peers
from .places import CONF, PROJECT, TOOLS

OWN_PACKAGE = "evenkeel-gateway"
OWN_ENV = "EVENKEEL_BIN"


@dataclass(frozen=True)
class Server:
    """A program, the ports it opens, and its command line in a working directory."""

    name: str
    ports: tuple[int, ...]
    command: Callable[[str], list[str]]
    kept: str | None = None
    """Where in its directory answers lie that are not in its own memory."""


def tool(name, *addresses):
    """Returns the command of one of our measuring tools."""
    return lambda _: [os.path.join(TOOLS, "target", "release", name), *addresses]


def contract(name):
    """Returns the gateway's command on a copy of a contract."""

    def command(directory):
        copy = shutil.copy(os.path.join(CONF, name), directory)
        return [own_binary(), "serve", copy]

    return command


def congested(at_once, millis):
    """Returns an origin that takes so long up to so many requests at once, and longer beyond."""
    command = tool("congested_origin", "127.0.0.1:21000", "127.0.0.1:21001", str(at_once), str(millis))
    return Server("origin", (21000, 21001), command)


def haproxy(name):
    """Returns HAProxy's command on a configuration."""
    return lambda _: ["haproxy", "-db", "-f", os.path.join(CONF, name)]


ORIGIN = Server("origin", (21000, 21001), tool("origin", "127.0.0.1:21000", "127.0.0.1:21001"))
HELLO = Server("hello_hyper", (21011,), tool("hello_hyper", "127.0.0.1:21011"))
RELAY = Server("relay_hyper", (21012,), tool("relay_hyper", "127.0.0.1:21012", "127.0.0.1:21000"))
NGINX = Server("nginx", (21100, 21101, 21102, 21103, 21104), peers.nginx, kept="cache")
VARNISH = Server("varnish", (21200, 21201, 21202), peers.varnish)
HAPROXY = Server("haproxy", (21300, 21301, 21302, 21303), haproxy("haproxy.cfg"))
HAPROXY_SLOWSTART = Server("haproxy-slowstart", (21310,), haproxy("haproxy-slowstart.cfg"))
ATS = Server("ats", (21500,), peers.traffic_server, kept="cache")
EVENKEEL = Server("evenkeel", (21700,), contract("evenkeel.toml"))
EVENKEEL_FRESH = Server("evenkeel-fresh", (21710,), contract("evenkeel-fresh.toml"))
EVENKEEL_PATIENT = Server("evenkeel-patient", (21750,), contract("evenkeel-patient.toml"))
EVENKEEL_RECOVERY_CACHED = Server("evenkeel-recovery-cached", (21720,), contract("evenkeel-recovery-cached.toml"))
EVENKEEL_RECOVERY = Server("evenkeel-recovery", (21730,), contract("evenkeel-recovery.toml"))
EVENKEEL_CAPPED = Server("evenkeel-recovery-capped", (21740,), contract("evenkeel-recovery-capped.toml"))
OWN = (
    EVENKEEL,
    EVENKEEL_FRESH,
    EVENKEEL_PATIENT,
    EVENKEEL_RECOVERY_CACHED,
    EVENKEEL_RECOVERY,
    EVENKEEL_CAPPED,
)


def build(say):
    """Builds the tools, and the gateway where the project has it and the environment names no other."""
    say("build the measuring tools")
    cargo_build(TOOLS, ["--locked", "--target-dir", os.path.join(TOOLS, "target")])
    if OWN_ENV not in os.environ and has_own_package():
        say(f"build {OWN_PACKAGE}")
        cargo_build(PROJECT, ["-p", OWN_PACKAGE])


def cargo_build(directory, options):
    """Runs cargo build --release, whose errors go to the terminal."""
    subprocess.run(["cargo", "build", "--release", "--quiet", *options], cwd=directory, check=True)


def project_metadata():
    """Returns what cargo knows of the workspace."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1"]
    return json.loads(subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, check=True).stdout)


def has_own_package():
    """Tells whether the workspace has the gateway."""
    return any(package["name"] == OWN_PACKAGE for package in project_metadata()["packages"])


@functools.cache
def own_binary():
    """Returns the path of the gateway under test, whether or not it exists."""
    return os.environ.get(OWN_ENV) or os.path.join(project_metadata()["target_directory"], "release", "evenkeel")
