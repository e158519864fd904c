"""Decides what each row compares: who takes part, what is asked, and what proves the answer right.

It exists so that a row measures what its title says: every entrant is asked once before
the load, and the origin's counter is read after it. It refuses entrants that do not
answer as the row demands, with the reason.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from . import client
from .servers import ATS, EVENKEEL, EVENKEEL_FRESH, HAPROXY, HELLO, NGINX, RELAY, VARNISH, Server

EXPIRY_SECS = 2.5
"""How long after its last refresh a key with max-age=1 is surely past it."""

PASS, KEPT = "/no-store/key", "/max-age/60/key"
HIT, STALE = "/max-age/3600/key", "/max-age/1/key"


@dataclass(frozen=True)
class Entrant:
    """One line of a table: `kind` is "peer", "tuned" (shown, but not what goals mean), "limit" or "own"."""

    who: str
    kind: str
    server: Server
    port: int
    path: str
    fills: bool = True
    """Whether an answer comes from the origin at first; False for servers without one."""


@dataclass(frozen=True)
class Row:
    """One comparison. `prepare` returns the reason why an entrant cannot take part, by name."""

    number: str
    title: str
    entrants: tuple[Entrant, ...]
    limit: str
    asks_origin: bool
    prepare: Callable[[list[Entrant]], dict[str, str]]


def shortcoming(entrant):
    """Asks once; returns None for a whole answer, else what came instead."""
    try:
        status, body = client.fetch(entrant.port, entrant.path)
    except client.Unreached as error:
        return f"no answer: {error}"
    if status != 200:
        return f"answers {status}"
    return None if len(body) == client.BODY_LEN else f"answers {len(body)} bytes, want {client.BODY_LEN}"


def reaches_origin(entrant):
    """Asks once; returns the shortcoming, if any, and whether the origin was asked."""
    before = client.origin_requests()
    short = shortcoming(entrant)
    return short, client.origin_requests() > before


def prepare_pass(entrants):
    """Row 1: every answer is the origin's."""
    absent = {}
    for entrant in entrants:
        short, asked = reaches_origin(entrant)
        if short or not asked:
            absent[entrant.who] = short or "answers without asking the origin"
    return absent


def prepare_hit(entrants):
    """Row 2: the second answer is the first one's copy."""
    absent = {}
    for entrant in entrants:
        shortcoming(entrant)
        short, asked = reaches_origin(entrant)
        if short or asked:
            absent[entrant.who] = short or "asks the origin although it has a fresh answer"
    return absent


def prepare_stale(entrants):
    """Row 3: keys are filled and expire, then the origin dies; the fresh hit beside them is filled too."""
    absent = {}
    for entrant in entrants:
        short, asked = reaches_origin(entrant)
        if short or asked != entrant.fills:
            absent[entrant.who] = short or "does not fill from the origin"
    time.sleep(EXPIRY_SECS)
    client.set_origin("refuse")
    for entrant in entrants:
        short = shortcoming(entrant)
        if short and entrant.who not in absent:
            absent[entrant.who] = f"serves no stale answer: {short}"
    return absent


# Directives that few caches have, but that make a hit of nginx's a third cheaper.
TUNED = "nginx, tuned"
OWN_HIT = "evenkeel, own fresh hit"

ROWS = (
    Row(
        "1",
        "pass-through, all policies on",
        (
            Entrant("relay_hyper*", "limit", RELAY, 21012, PASS),
            Entrant("nginx", "peer", NGINX, 21100, PASS),
            Entrant("haproxy", "peer", HAPROXY, 21300, PASS),
            Entrant("varnish", "peer", VARNISH, 21200, PASS),
            Entrant("ats", "peer", ATS, 21500, PASS),
            Entrant("evenkeel", "own", EVENKEEL, 21700, PASS),
            Entrant("evenkeel, answers kept", "own", EVENKEEL, 21700, KEPT),
        ),
        "relay_hyper*",
        asks_origin=True,
        prepare=prepare_pass,
    ),
    Row(
        "2",
        "fresh hit",
        (
            Entrant("hello_hyper*", "limit", HELLO, 21011, HIT),
            Entrant("nginx", "peer", NGINX, 21101, HIT),
            Entrant(TUNED, "tuned", NGINX, 21102, HIT),
            Entrant("haproxy", "peer", HAPROXY, 21301, HIT),
            Entrant("varnish", "peer", VARNISH, 21201, HIT),
            Entrant("ats", "peer", ATS, 21500, HIT),
            Entrant("evenkeel", "own", EVENKEEL_FRESH, 21710, HIT),
        ),
        "hello_hyper*",
        asks_origin=False,
        prepare=prepare_hit,
    ),
    Row(
        "3",
        "stale hit, origin dead (connections refused)",
        (
            Entrant("hello_hyper*", "limit", HELLO, 21011, STALE, fills=False),
            Entrant("nginx", "peer", NGINX, 21101, STALE),
            Entrant(TUNED, "tuned", NGINX, 21102, f"{STALE}/tuned"),
            Entrant("haproxy", "peer", HAPROXY, 21301, STALE),
            Entrant("varnish", "peer", VARNISH, 21201, STALE),
            Entrant("ats", "peer", ATS, 21500, STALE),
            Entrant("evenkeel", "own", EVENKEEL, 21700, STALE),
            Entrant(OWN_HIT, "own", EVENKEEL_FRESH, 21710, HIT),
        ),
        "hello_hyper*",
        asks_origin=False,
        prepare=prepare_stale,
    ),
)
