"""Decides rows 5a and 5b: what becomes of an origin that hung for a while and could work again.

It exists because an origin that has healed can be kept down by the load that piled up. It
refuses to help: the load goes on at its rate, and retries as clients do.
"""

import time
from dataclasses import dataclass

from . import load
from .figures import FOREIGN, Column, FigureRow, Figures, Least, Most
from .filling import fill
from .foreign import Watch, wait_for_quiet
from .goals import AMBITIOUS, MUST
from .measure import start_server
from .process import Stage
from .recovery_sums import GOOD, by_second, figures
from .rows import Entrant
from .servers import (
    EVENKEEL_CAPPED,
    EVENKEEL_RECOVERY,
    EVENKEEL_RECOVERY_CACHED,
    HAPROXY,
    HAPROXY_SLOWSTART,
    NGINX,
    VARNISH,
    congested,
)

AT_ONCE = 20
ORIGIN = congested(AT_ONCE, 20)
KEYS = 1000
TRIES_MAX = 3
"""Runs of an entrant that is not well even before the outage; the last one counts, and shows it."""

FILL_RATE = 250
"""Keys filled per second, so that they do not all expire at once."""


@dataclass(frozen=True)
class Plan:
    """Seconds of load before the outage, in it, and after it."""

    before: int
    outage: int
    after: int


FULL = Plan(before=4, outage=10, after=10)
BRIEF = Plan(before=3, outage=6, after=10)

CACHED_LOAD = {"path": "/max-age/4/", "rate": 2000, "retries": 0, "pause_ms": 0, "current_ms": 6000}
PLAIN_LOAD = {"path": "/no-store/", "rate": 600, "retries": 3, "pause_ms": 50, "current_ms": 5000}

BRIEF_WHO = {"nginx", "nginx, cap 20", "evenkeel", "evenkeel, cap 20"}


def run(row, settings):
    """Runs each entrant alone, with an origin of its own."""
    result = Figures(row)
    for entrant in row.entrants:
        if settings.brief and entrant.who not in BRIEF_WHO:
            result.absent[entrant.who] = "left out of the quick run"
            continue
        for _ in range(TRIES_MAX):
            seen, reason = recover(row, entrant, settings)
            if reason or seen["before"] >= GOOD:
                break
            settings.say(f"row {row.number}  {entrant.who}: only {seen['before']:.2f} before the outage")
        if reason:
            result.absent[entrant.who] = reason
            settings.say(f"row {row.number}  {entrant.who}: {reason}")
            continue
        result.add(entrant.who, seen, seen[FOREIGN])
        current = " ".join(f"{share:.2f}" for share in seen["by_second"])
        settings.say(f"row {row.number}  {entrant.who:<41}current in each second after it: {current}")
    return result


def recover(row, entrant, settings):
    """Returns the figures of one entrant and None, or None and why there are none."""
    with Stage() as stage:
        stage.start(ORIGIN, settings.load_cpu)
        if entrant.server != ORIGIN:
            _, reason = start_server(stage, entrant.server, settings)
            if reason:
                return None, reason
        if row is CACHED:
            reason = fill(entrant.port, CACHED_LOAD["path"], KEYS, settings, rate=FILL_RATE)
            if reason:
                return None, reason
        wait_for_quiet(settings)
        watch = Watch(stage, settings)
        told, hung_ms, healed_ms, record = outage(row, entrant, settings)
        foreign = watch.cores()
    seen = figures(told, hung_ms, healed_ms, record, plan(settings).after)
    return {**seen, "by_second": by_second(told, healed_ms), FOREIGN: foreign}, None


def plan(settings):
    """Returns how long a run takes."""
    return BRIEF if settings.brief else FULL


def outage(row, entrant, settings):
    """Puts load on an entrant, lets the origin hang and heal meanwhile, and returns what was seen."""
    times = plan(settings)
    wanted = {
        **(CACHED_LOAD if row is CACHED else PLAIN_LOAD),
        "port": entrant.port,
        "keys": KEYS,
        "timeout_ms": 1000,
        # The second beyond makes the last one whole, wherever in a tenth the origin heals.
        "secs": times.before + times.outage + times.after + 1,
    }
    with load.running("open", settings.load_cpu, **wanted) as told:
        time.sleep(times.before)
        hung = load.steer("hang")
        time.sleep(times.outage)
        healed = load.steer("heal")
        printed = told()
        record = load.steer("record")
    return printed, hung["now_ms"], healed["now_ms"], record


COLUMNS = (
    Column("before", "before", "{:.2f}"),
    Column("in_outage", "200s in outage", "{:.3f}"),
    Column("hits_first", "origin hits, 1st s", "{:.0f}"),
    Column("peak_first", "in flight, 1st s", "{:.0f}"),
    Column("peak_later", "later", "{:.0f}"),
    Column("current_1_4", "current, s 1–4", "{:.2f}"),
    Column("current_6_9", "s 6–9", "{:.2f}"),
    Column("back_secs", "back after s", "{:.1f}"),
)

COMMON_GOALS = (
    Most(MUST, "evenkeel", "back_secs", 4),
    Most(MUST, "evenkeel", "peak_first", 2 * AT_ONCE),
    Least(MUST, "evenkeel", "current_6_9", 0.95),
    Most(AMBITIOUS, "evenkeel", "back_secs", 2),
    Most(AMBITIOUS, "evenkeel", "peak_first", 1.25 * AT_ONCE),
)

ORIGIN_WORDS = f"good for {AT_ONCE} at once x 20 ms, hangs for {FULL.outage} s ({BRIEF.outage} s in the quick run)"

CACHED = FigureRow(
    "5a",
    f"recovery, cached: {KEYS} keys, max-age 4 s, {CACHED_LOAD['rate']}/s; the origin is {ORIGIN_WORDS}",
    (
        Entrant("nginx", "peer", NGINX, 21101, ""),
        Entrant("nginx, cap 20", "peer", NGINX, 21104, ""),
        Entrant("haproxy", "peer", HAPROXY, 21301, ""),
        Entrant("haproxy, cap 20", "peer", HAPROXY, 21303, ""),
        Entrant("varnish", "peer", VARNISH, 21201, ""),
        Entrant("varnish, cap 20", "peer", VARNISH, 21202, ""),
        Entrant("evenkeel", "own", EVENKEEL_RECOVERY_CACHED, 21720, ""),
    ),
    COLUMNS,
    (*COMMON_GOALS, Least(MUST, "evenkeel", "in_outage", 0.995)),
    run,
    "current: 200 and at most 6 s old. Evenkeel runs on shipped defaults, without a word about the origin's capacity",
)

PLAIN = FigureRow(
    "5b",
    f"recovery, uncacheable: {PLAIN_LOAD['rate']}/s, clients wait 1 s and retry 3 times; the origin is {ORIGIN_WORDS}",
    (
        Entrant("no gateway", "limit", ORIGIN, 21000, ""),
        Entrant("nginx", "peer", NGINX, 21100, ""),
        Entrant("nginx, cap 20", "peer", NGINX, 21103, ""),
        Entrant("haproxy", "peer", HAPROXY, 21300, ""),
        Entrant("haproxy, cap 20 and queue", "peer", HAPROXY, 21302, ""),
        Entrant("haproxy, cap, queue, check and slowstart", "peer", HAPROXY_SLOWSTART, 21310, ""),
        Entrant("evenkeel", "own", EVENKEEL_RECOVERY, 21730, ""),
        Entrant("evenkeel, cap 20", "own", EVENKEEL_CAPPED, 21740, ""),
    ),
    COLUMNS,
    (*COMMON_GOALS, Most(AMBITIOUS, "evenkeel, cap 20", "back_secs", 1)),
    run,
    "current: 200. Evenkeel runs on shipped defaults, which know nothing of the capacity, but for the last line",
)
