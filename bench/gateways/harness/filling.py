"""Decides when a cache counts as filled: when each key has been answered by 200 in one go.

It exists because a gateway may go easy on its origin at first. It refuses to try for ever, and to
try again where a request got no answer at all.
"""

import time

from . import load

TRIES_MAX = 20
PAUSE_SECS = 0.5
CONNECTIONS = 16
ANSWER_SECS_MAX = 5


def fill(port, prefix, keys, settings, rate=0):
    """Asks keys until all have been answered; returns None, or what came instead."""
    for _ in range(TRIES_MAX):
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
        if told["statuses"] == {"200": keys}:
            return None
        if told["late"]:
            return f"does not answer: {told['late']} of {keys} requests had nothing after {ANSWER_SECS_MAX} s"
        time.sleep(PAUSE_SECS)
    return f"is not filled after {TRIES_MAX} tries: {load.off(told, keys) or 'a few answers are missing'}"
