"""Decides row 6: how many times an origin is asked when many ask for one key at once, and how long they wait.

It exists because a popular key that expires is where caches hurt their origin. It refuses
rounds in which an answer is missing.
"""

import time

from . import load
from .figures import Column, FigureRow, Figures, Most
from .foreign import Watch, wait_for_quiet
from .goals import AMBITIOUS, MUST
from .measure import start_servers
from .process import Stage
from .rows import Entrant
from .servers import ATS, EVENKEEL_FRESH, HAPROXY, NGINX, VARNISH, congested

COUNT = 200
ORIGIN_MS = 100
PATH = "/max-age/2/collapse-"
EXPIRY_SECS = 3.5
AFTERMATH_SECS = 0.3
"""Longer than a background fetch takes that begins with the burst."""


def run(row, settings):
    """Asks for a key that nobody has, and again once it has expired."""
    result = Figures(row)
    with Stage() as stage:
        stage.start(congested(10 * COUNT, ORIGIN_MS), settings.load_cpu)
        running = start_servers(row, stage, settings, result)
        for repeat in range(settings.repeats):
            entrants = [e for e in row.entrants if e.server.name in running]
            cold = {e.who: burst(e, f"{PATH}{repeat}", stage, settings) for e in entrants}
            time.sleep(EXPIRY_SECS)
            expired = {e.who: burst(e, f"{PATH}{repeat}", stage, settings) for e in entrants}
            for entrant in entrants:
                keep(row, entrant, cold[entrant.who], expired[entrant.who], settings, result)
    return result


def burst(entrant, path, stage, settings):
    """Returns what came of all requests at once, how often the origin was asked, and what others used meanwhile."""
    wait_for_quiet(settings)
    load.steer("heal")
    watch = Watch(stage, settings)
    told = load.run("burst", settings.load_cpu, port=entrant.port, path=path, count=COUNT, timeout_ms=5000)
    time.sleep(AFTERMATH_SECS)
    return told, sum(load.steer("record")["arrived"]), watch.cores()


def keep(row, entrant, cold, expired, settings, result):
    """Adds a round to the result, or why it does not count."""
    short = load.off(cold[0], COUNT) or load.off(expired[0], COUNT)
    if short:
        result.absent[entrant.who] = short
        settings.say(f"row {row.number}  {entrant.who}: {short}")
        return
    figures = {}
    for kind, (told, hits, _) in (("cold", cold), ("expired", expired)):
        figures[f"{kind}_hits"] = hits
        figures[f"{kind}_p50_ms"] = told["p50_us"] / 1e3
        figures[f"{kind}_max_ms"] = told["max_us"] / 1e3
    result.add(entrant.who, figures, max(cold[2], expired[2]))
    settings.say(
        f"row {row.number}  {entrant.who:<24}cold {cold[1]:3} hits {figures['cold_max_ms']:6.1f} ms,"
        f" expired {expired[1]:3} hits {figures['expired_p50_ms']:6.1f} ms"
    )


ROW = FigureRow(
    "6",
    f"collapsing: {COUNT} requests at once for one key, the origin takes {ORIGIN_MS} ms",
    (
        Entrant("nginx", "peer", NGINX, 21101, PATH),
        Entrant("haproxy", "peer", HAPROXY, 21301, PATH),
        Entrant("varnish", "peer", VARNISH, 21201, PATH),
        Entrant("ats", "peer", ATS, 21500, PATH),
        Entrant("evenkeel", "own", EVENKEEL_FRESH, 21710, PATH),
    ),
    tuple(
        Column(f"{kind}_{name}", f"{kind}: {heading}", form)
        for kind in ("cold", "expired")
        for name, heading, form in (
            ("hits", "origin hits", "{:.0f}"),
            ("p50_ms", "p50 ms", "{:.1f}"),
            ("max_ms", "max ms", "{:.1f}"),
        )
    ),
    (
        Most(MUST, "evenkeel", "cold_hits", 1),
        Most(MUST, "evenkeel", "expired_hits", 1),
        Most(MUST, "evenkeel", "cold_max_ms", ORIGIN_MS + 10),
        Most(MUST, "evenkeel", "expired_p50_ms", 1.50, of_best_peer=True),
        Most(AMBITIOUS, "evenkeel", "cold_max_ms", ORIGIN_MS + 4),
        Most(AMBITIOUS, "evenkeel", "expired_p50_ms", 1.00, of_best_peer=True),
    ),
    run,
    "not measured here: pingora, at 2.3 ms when expired where Varnish took 3.2",
)
