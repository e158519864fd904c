"""Decides which programs are measured and how each is started.

It exists so that one more gateway is one more entry. It refuses to know what a row asks
of them; see rows.py.
"""

import functools
import getpass
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

BENCH = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROJECT = os.path.dirname(os.path.dirname(BENCH))
TOOLS = os.path.join(BENCH, "tools")
CONF = os.path.join(BENCH, "conf")
OWN_PACKAGE = "evenkeel-gateway"
OWN_ENV = "EVENKEEL_BIN"


@dataclass(frozen=True)
class Server:
    """A program, the ports it opens, and its command line in a working directory."""

    name: str
    ports: tuple[int, ...]
    command: Callable[[str], list[str]]


def tool(name, *addresses):
    """Returns the command of one of our measuring tools."""
    return lambda _: [os.path.join(TOOLS, "target", "release", name), *addresses]


def nginx(directory):
    """Returns nginx's command; its workers keep the user, who owns the directory."""
    user = ["-g", f"user {getpass.getuser()};"] if os.geteuid() == 0 else []
    return ["nginx", "-p", directory, "-e", "error.log", *user, "-c", os.path.join(CONF, "nginx.conf")]


def contract(name):
    """Returns the gateway's command on a copy of a contract."""

    def command(directory):
        copy = shutil.copy(os.path.join(CONF, name), directory)
        return [own_binary(), "serve", copy]

    return command


ORIGIN = Server("origin", (21000, 21001), tool("origin", "127.0.0.1:21000", "127.0.0.1:21001"))
HELLO = Server("hello_hyper", (21011,), tool("hello_hyper", "127.0.0.1:21011"))
RELAY = Server("relay_hyper", (21012,), tool("relay_hyper", "127.0.0.1:21012", "127.0.0.1:21000"))
NGINX = Server("nginx", (21100, 21101, 21102), nginx)
HAPROXY = Server("haproxy", (21300, 21301), lambda _: ["haproxy", "-db", "-f", f"{CONF}/haproxy.cfg"])
EVENKEEL = Server("evenkeel", (21700,), contract("evenkeel.toml"))
EVENKEEL_FRESH = Server("evenkeel-fresh", (21710,), contract("evenkeel-fresh.toml"))
OWN = (EVENKEEL, EVENKEEL_FRESH)


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
