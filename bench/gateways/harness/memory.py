"""Decides row 7: what a gateway takes when idle, and what it takes for an answer beyond its body.

It exists because memory decides how much can be kept for an outage. It refuses entrants that
forgot keys, and shows no overhead where all memory is taken at the start.
"""

import os
import time

from . import client
from .figures import Column, FigureRow, Figures, Most
from .filling import fill
from .goals import AMBITIOUS, MUST
from .measure import start_server
from .process import Stage
from .rows import Entrant
from .servers import ATS, EVENKEEL_FRESH, HAPROXY, HELLO, NGINX, ORIGIN, VARNISH

OBJECTS = 100_000
PATH = "/max-age/3600/memory-"
SETTLE_SECS = 1
FORGOTTEN_MAX = 0.01
MIB = 1 << 20


def run(row, settings):
    """Measures each entrant alone, since memory that programs share is split between them."""
    result = Figures(row)
    for entrant in row.entrants:
        with Stage() as stage:
            stage.start(ORIGIN, settings.load_cpu)
            child, reason = start_server(stage, entrant.server, settings)
            if child:
                reason = measure(entrant, child, settings, result)
            if reason:
                result.absent[entrant.who] = reason
                settings.say(f"row {row.number}  {entrant.who}: {reason}")
            else:
                idle = result.value(entrant.who, "idle_mib")
                settings.say(f"row {row.number}  {entrant.who:<24}{idle:7.1f} MiB idle")
    return result


def measure(entrant, child, settings, result):
    """Adds the figures of one entrant; returns None, or why there are none."""
    time.sleep(SETTLE_SECS)
    idle = taken(child, entrant.server)
    if not entrant.fills:
        result.add(entrant.who, {"idle_mib": idle / MIB, "full_mib": None, "overhead": None}, 0)
        return None
    reason = fill(entrant.port, PATH, OBJECTS, settings)
    if reason:
        return reason
    time.sleep(SETTLE_SECS)
    full = taken(child, entrant.server)
    asked = client.origin_requests()
    reason = fill(entrant.port, PATH, OBJECTS, settings)
    forgotten = (client.origin_requests() - asked) / OBJECTS
    if forgotten > FORGOTTEN_MAX:
        return f"asks the origin again for {forgotten:.0%} of the keys it was to keep"
    figures = {"idle_mib": idle / MIB, "full_mib": full / MIB, "overhead": overhead(idle, full)}
    # Bytes do not depend on what others do.
    result.add(entrant.who, figures, 0)
    return reason


def overhead(idle, full):
    """Returns the bytes beyond its body that one object takes, or None where there was no growth to tell it by."""
    beyond = (full - idle) / OBJECTS - client.BODY_LEN
    return beyond if beyond > 0 else None


def taken(child, server):
    """Returns the bytes that a server takes: its processes' memory, and files of answers, which lie in memory, too."""
    kept = os.path.join(child.directory, server.kept) if server.kept else None
    return child.memory_bytes() + (file_bytes(kept) if kept else 0)


def file_bytes(directory):
    """Returns the bytes that the files below a directory take up, whole blocks each."""
    unit = 512  # Of st_blocks, by POSIX, whatever a file system's own blocks are.
    files = (os.path.join(folder, name) for folder, _, names in os.walk(directory) for name in names)
    return sum(os.stat(file).st_blocks * unit for file in files)


ROW = FigureRow(
    "7",
    f"memory (PSS of all processes, and files of answers): idle, and with {OBJECTS // 1000}k objects of 1 KiB",
    (
        Entrant("hello_hyper*", "limit", HELLO, 21011, PATH, fills=False),
        Entrant("nginx", "peer", NGINX, 21101, PATH),
        Entrant("haproxy", "peer", HAPROXY, 21301, PATH),
        Entrant("varnish", "peer", VARNISH, 21201, PATH),
        Entrant("ats", "peer", ATS, 21500, PATH),
        Entrant("evenkeel", "own", EVENKEEL_FRESH, 21710, PATH),
    ),
    (
        Column("idle_mib", "idle MiB", "{:.1f}"),
        Column("full_mib", "filled MiB", "{:.1f}"),
        Column("overhead", "bytes per object over 1024", "{:.0f}"),
    ),
    (
        Most(MUST, "evenkeel", "idle_mib", 12),
        Most(MUST, "evenkeel", "overhead", 0.70, of_best_peer=True),
        Most(AMBITIOUS, "evenkeel", "idle_mib", 6),
        Most(AMBITIOUS, "evenkeel", "overhead", 0.45, of_best_peer=True),
    ),
    run,
    "haproxy takes its whole cache at the start, so nothing tells what an object takes",
)
