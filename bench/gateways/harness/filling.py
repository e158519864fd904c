"""Decides when a cache counts as filled: when 99 % of the keys have been answered by 200 in one go.

It exists because a gateway may go easy on its origin at first. It refuses to try for ever, and to
try again where a request got no answer at all.
"""

import time

from . import load

SECS_MAX = 60
"""How long a gateway may go easy on its origin; a try that has begun goes on to its end."""

PAUSE_SECS = 0.5
CONNECTIONS = 16
ANSWER_SECS_MAX = 5


def fill(port, prefix, keys, settings, rate=0):
    """Asks keys until nearly all have been answered; returns None, or what came instead."""
    until = time.monotonic() + SECS_MAX
    while True:
        try:
            told = load.run(
                "each",
                settings.load_cpu,
                port=port,
                path=prefix,
                keys=keys,
                connections=CONNECTIONS,
                rate=rate,
                timeout_ms=1000 * ANSWER_SECS_MAX,
            )
        except load.Stuck as error:
            return f"does not answer: {error}"
        short = load.off(told, keys)
        if short is None:
            return None
        if told["late"]:
            return f"does not answer: {told['late']} of {keys} requests had nothing after {ANSWER_SECS_MAX} s"
        if time.monotonic() > until:
            return f"is not filled after {SECS_MAX} s: {short}"
        time.sleep(PAUSE_SECS)
