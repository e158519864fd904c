"""Decides row 4: how soon a stale answer comes while the origin is silent.

It exists because a timeout that every first caller waits for is an outage, too, only shorter.
It refuses entrants that have not kept all keys, and answers other than 200.
"""

import time

from . import load
from .figures import Column, FigureRow, Figures, Most
from .filling import fill
from .foreign import Watch, wait_for_quiet
from .goals import AMBITIOUS, MUST
from .measure import start_servers
from .process import Stage
from .rows import EXPIRY_SECS, Entrant
from .servers import ATS, EVENKEEL_FRESH, EVENKEEL_PATIENT, HAPROXY, NGINX, VARNISH, congested

KEYS = 150
RATE = 50
CONNECTIONS = 64
PATH = "/max-age/1/hang-"
PATIENT_MS = 50
PATIENT = f"evenkeel, waits {PATIENT_MS} ms first"
READY = congested(1000, 1)


def run(row, settings):
    """Fills keys, lets them expire, silences the origin, and asks each key once."""
    result = Figures(row)
    with Stage() as stage:
        stage.start(READY, settings.load_cpu)
        running = start_servers(row, stage, settings, result)
        for repeat in range(settings.repeats):
            entrants = [e for e in row.entrants if e.server.name in running and e.who not in result.absent]
            once(row, entrants, f"{PATH}{repeat}-", stage, settings, result)
    return result


def once(row, entrants, prefix, stage, settings, result):
    """Runs everybody once on keys of their own."""
    ready = []
    for entrant in entrants:
        short = fill(entrant.port, prefix, KEYS, settings)
        if short:
            result.absent[entrant.who] = short
            settings.say(f"row {row.number}  {entrant.who}: {short}")
        else:
            ready.append(entrant)
    time.sleep(EXPIRY_SECS)
    load.steer("hang")
    try:
        for entrant in ready:
            wait_for_quiet(settings)
            watch = Watch(stage, settings)
            told, foreign = ask(entrant, prefix, settings), watch.cores()
            short = load.off(told, KEYS)
            if short:
                result.absent[entrant.who] = f"serves no stale answer: {short}"
                settings.say(f"row {row.number}  {entrant.who}: {result.absent[entrant.who]}")
                continue
            figures = {"p50_ms": told["p50_us"] / 1e3, "p99_ms": told["p99_us"] / 1e3}
            result.add(entrant.who, figures, foreign)
            settings.say(f"row {row.number}  {entrant.who:<24}{figures['p50_ms']:8.2f} {figures['p99_ms']:8.2f} ms")
    finally:
        load.steer("heal")


def ask(entrant, prefix, settings):
    """Asks each key once over connections that are kept, the one used last first."""
    return load.run(
        "each",
        settings.load_cpu,
        port=entrant.port,
        path=prefix,
        keys=KEYS,
        connections=CONNECTIONS,
        rate=RATE,
        timeout_ms=5000,
    )


ROW = FigureRow(
    "4",
    f"first stale answer, the origin hangs: {KEYS} expired keys, each once, {RATE}/s, connections kept",
    (
        Entrant("nginx", "peer", NGINX, 21101, PATH),
        Entrant("haproxy", "peer", HAPROXY, 21301, PATH),
        Entrant("varnish", "peer", VARNISH, 21201, PATH),
        Entrant("ats", "peer", ATS, 21500, PATH),
        Entrant("evenkeel", "own", EVENKEEL_FRESH, 21710, PATH),
        Entrant(PATIENT, "own", EVENKEEL_PATIENT, 21750, PATH),
    ),
    (Column("p50_ms", "p50 ms", "{:.2f}"), Column("p99_ms", "p99 ms", "{:.2f}")),
    (
        Most(MUST, "evenkeel", "p50_ms", 1.20, of_best_peer=True),
        Most(MUST, "evenkeel", "p99_ms", 2.00),
        Most(MUST, PATIENT, "p99_ms", PATIENT_MS + 5),
        Most(AMBITIOUS, "evenkeel", "p50_ms", 1.00, of_best_peer=True),
        Most(AMBITIOUS, "evenkeel", "p99_ms", 1.00, of_best_peer=True),
        Most(AMBITIOUS, PATIENT, "p99_ms", PATIENT_MS + 2),
    ),
    run,
    "nginx holds a connection until its update of the key before has ended, and clients use the last one first",
)
