"""Decides what the machine must offer, and reads from it what a slice has to know.

It exists so that a fresh Debian 12 is enough: missing packages are installed, with their
services kept from starting. It refuses to leave the guard file behind that it put down.
"""

import contextlib
import os
import platform
import re
import shutil
import subprocess

PACKAGES = {
    "nginx": "nginx",
    "haproxy": "haproxy",
    "varnishd": "varnish",
    "traffic_server": "trafficserver",
    "wrk": "wrk",
    "taskset": "util-linux",
    "setpriv": "util-linux",
}
POLICY = "/usr/sbin/policy-rc.d"
TICKS = os.sysconf("SC_CLK_TCK")

# A user's PATH leaves out where Debian keeps daemons.
os.environ["PATH"] += os.pathsep + "/usr/sbin" + os.pathsep + "/sbin"


class Unfit(Exception):
    """The machine cannot run this; the text says what to do."""


def cpus():
    """Returns two CPUs that this process may use: the gateway's, and the one of load and origin."""
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        raise Unfit(f"CPUs {allowed} allowed, want 2 or more: one for the gateway, one for the load")
    return allowed[0], allowed[1]


@contextlib.contextmanager
def services_kept_from_starting():
    """Answers "do not start" to Debian's packages meanwhile; a file that was there stays as it is."""
    try:
        descriptor = os.open(POLICY, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o755)
    except FileExistsError:
        yield
        return
    try:
        with os.fdopen(descriptor, "w") as policy:
            policy.write("#!/bin/sh\nexit 101\n")
        yield
    finally:
        os.remove(POLICY)


def install_missing(say):
    """Installs by apt what PACKAGES lists and PATH lacks."""
    missing = sorted({package for program, package in PACKAGES.items() if not shutil.which(program)})
    if not missing:
        return
    words = " ".join(missing)
    if os.geteuid() != 0:
        raise Unfit(f"not installed: {words}; run this as root once, or install them yourself")
    say(f"install {words}")
    # Without a terminal apt must not ask, and another apt may hold the lock for a while.
    apt = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=300"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    quiet = {"env": environment, "stdout": subprocess.DEVNULL, "check": True}
    with services_kept_from_starting():
        subprocess.run([*apt, "update"], **quiet)
        subprocess.run([*apt, "install", "-y", "--no-install-recommends", *missing], **quiet)


def busy_seconds(wanted):
    """Returns the seconds that the wanted CPUs have spent on work or had stolen, since boot."""
    total = 0
    with open("/proc/stat") as lines:
        for line in lines:
            name, *fields = line.split()
            if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in wanted:
                user, nice, system, _idle, _wait, irq, softirq, steal = map(int, fields[:8])
                total += user + nice + system + irq + softirq + steal
    return total / TICKS


def refused_connects():
    """Returns how many TCP connection attempts of this machine have failed since boot."""
    with open("/proc/net/snmp") as lines:
        names, values = (line.split() for line in lines if line.startswith("Tcp:"))
    return int(values[names.index("AttemptFails")])


def described():
    """Returns what a reader needs in order to judge absolute figures."""
    with open("/proc/cpuinfo") as lines:
        models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cpus": os.cpu_count(),
        "kernel": platform.release(),
        "nginx": version("nginx", "-v"),
        "haproxy": version("haproxy", "-v"),
        "varnish": version("varnishd", "-V"),
        "ats": version("traffic_server", "-V"),
        "wrk": version("wrk", "-v"),
        "rustc": version("rustc", "--version"),
    }


def version(*command):
    """Returns the version number that a program prints about itself, or "unknown"."""
    told = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    number = re.search(r"\d+\.\d+\S*", told.stdout)
    return number[0] if number else "unknown"
