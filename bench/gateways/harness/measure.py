"""Decides how a row is measured: rounds of short slices whose order rotates.

It exists because one CPU's speed changes by the second: within a round everybody meets
about the same machine, and nobody always goes first. It refuses to wait for a quiet
machine beyond its budget; slices that stayed noisy say so.
"""

import os
from dataclasses import dataclass, field

from . import client, machine
from .foreign import CORES_MAX, Watch, wait_for_quiet
from .process import NotStarted, Stage, spent
from .servers import ORIGIN, OWN, OWN_ENV, own_binary
from .stats import Slice

TRIES_MAX = 3
WARM_SECS = 1
OWN_WARM_SECS = 3
"""Longer than the ramp that a gateway of ours goes through when it starts cold under load."""

OFF_MAX = 0.01
"""Share of wrong answers above which a slice measured something else and is dropped."""


@dataclass
class Settings:
    """How long and how often; `patience_secs` is what may be spent on noise, all rows together.

    `rounds` and `secs` are those of slices, `repeats` how often rows of single figures run.
    `brief` makes the recovery rows shorter and leaves out most of their peers.
    """

    rounds: int
    secs: int
    patience_secs: float
    repeats: int
    brief: bool
    gateway_cpu: int
    load_cpu: int
    say: object


@dataclass
class Result:
    """A row's slices, and why entrants are missing."""

    row: object
    slices: list[Slice] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)


def run_row(row, settings):
    """Starts what the row needs, measures it, and ends it."""
    result = Result(row)
    with Stage() as stage:
        stage.start(ORIGIN, settings.load_cpu)
        running = start_servers(row, stage, settings, result)
        entrants = [e for e in row.entrants if e.server.name in running]
        for who, reason in row.prepare(entrants).items():
            result.absent[who] = reason
            settings.say(f"row {row.number}  {who}: {reason}")
        entrants = [e for e in entrants if e.who not in result.absent]
        for entrant in entrants:
            secs = OWN_WARM_SECS if entrant.kind == "own" else WARM_SECS
            client.run_load(entrant.port, entrant.path, secs, settings.load_cpu)
        dropped = {}
        for number in range(settings.rounds):
            first = number % max(1, len(entrants))
            for entrant in entrants[first:] + entrants[:first]:
                piece = quiet_slice(row, number, entrant, running[entrant.server.name], stage, settings)
                settings.say(progress(row, piece, settings))
                if piece.off <= OFF_MAX:
                    result.slices.append(piece)
                else:
                    dropped.setdefault(entrant.who, []).append(piece.off)
    for entrant in entrants:
        shares = dropped.get(entrant.who, [])
        if len(shares) == settings.rounds:
            result.absent[entrant.who] = f"wrong answers in every slice, {min(shares):.1%} to {max(shares):.1%}"
    return result


def start_servers(row, stage, settings, result):
    """Starts each server once, as `start_server`; says and keeps why entrants are left out."""
    running = {}
    for server in dict.fromkeys(entrant.server for entrant in row.entrants):
        child, reason = start_server(stage, server, settings)
        if child:
            running[server.name] = child
        else:
            settings.say(f"row {row.number}  {server.name}: {reason}")
            result.absent.update({e.who: reason for e in row.entrants if e.server == server})
    return running


def start_server(stage, server, settings):
    """Returns a server and None, or None and why a gateway of our own does not start; a peer is an error."""
    if server in OWN and not os.access(own_binary(), os.X_OK):
        return None, f"skipped: no program at {own_binary()} (build it, or set {OWN_ENV})"
    try:
        return stage.start(server, settings.gateway_cpu), None
    except NotStarted as error:
        if server not in OWN:
            raise
        return None, f"not measurable yet: {error}"


def quiet_slice(row, number, entrant, gateway, stage, settings):
    """Measures until nothing else ran meanwhile, as often as tries and patience allow."""
    for _ in range(TRIES_MAX):
        piece = measure(row, number, entrant, gateway, stage, settings)
        if piece.quiet or settings.patience_secs <= 0:
            break
        wait_for_quiet(settings)
        # The repetition itself is what noise costs, too.
        settings.patience_secs -= settings.secs
    return piece


def measure(row, number, entrant, gateway, stage, settings):
    """Puts load on one entrant and returns what it cost."""
    asked, tries = client.origin_requests(), machine.refused_connects()
    watch, cost = Watch(stage, settings), gateway.cpu_seconds()
    load = client.run_load(entrant.port, entrant.path, settings.secs, settings.load_cpu)
    foreign, cost = watch.cores(), spent(cost, gateway.cpu_seconds())
    tries = (machine.refused_connects() - tries) / load.micros * 1e6
    asked = client.origin_requests() - asked
    astray = max(0, load.requests - asked) if row.asks_origin else asked
    requests = max(1, load.requests)
    return Slice(
        round=number,
        who=entrant.who,
        requests=load.requests,
        req_s=load.requests / load.micros * 1e6,
        cpu_us=cost / requests * 1e6,
        p50_ms=load.p50_us / 1e3,
        p99_ms=load.p99_us / 1e3,
        off=(load.not_2xx + load.broken + astray) / requests,
        tries_s=tries,
        foreign=foreign,
        quiet=foreign <= CORES_MAX,
    )


def progress(row, piece, settings):
    """Returns the line that tells how far a run has come."""
    notes = "" if piece.quiet else f"  noisy: {piece.foreign:.2f} cores of others"
    if piece.off > OFF_MAX:
        notes += f"  dropped: {piece.off:.1%} wrong answers"
    return (
        f"row {row.number}  round {piece.round + 1}/{settings.rounds}  {piece.who:<24}"
        f"{piece.cpu_us:7.2f} µs/req {piece.req_s:9.0f} req/s{notes}"
    )
