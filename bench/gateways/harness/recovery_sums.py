"""Decides how a recovery is summed up: counts by tenths of a second become the figures of rows 5a and 5b.

It exists so that "back" means one thing for everybody: from then on, every second is good. It
refuses to round a bad second away: seconds begin at each tenth.
"""

from .figures import NEVER

STEP_MS = 100
STEPS = 10
"""Steps of a second."""

GOOD = 0.95


def share(counts, asked, start, end):
    """Returns the share of what was asked in steps `start` to `end` (excluded), or None when nothing was."""
    total = sum(asked[start:end])
    return sum(counts[start:end]) / total if total else None


def back_after(current, asked, start, end):
    """Returns the seconds from step `start` until every whole second up to `end` is good; NEVER if the last is not."""
    first = None
    for step in range(end - STEPS, start - 1, -1):
        # Exactly at the limit is good; counts keep the comparison exact.
        if sum(current[step : step + STEPS]) < GOOD * sum(asked[step : step + STEPS]):
            break
        first = step
    return NEVER if first is None else (first - start) / STEPS


def figures(told, hung_ms, healed_ms, record, after_secs):
    """Returns a row's figures.

    `told` is what the load printed, `record` the origin's since it healed; the times are ms since 1970.
    """
    asked, served, current = told["asked"], told["served"], told["current"]
    # The first step that lies whole behind an event.
    hung, healed = (-((told["started_ms"] - event) // STEP_MS) for event in (hung_ms, healed_ms))
    end = min(healed + after_secs * STEPS, len(asked))
    peak = record["peak"][: after_secs * STEPS]
    return {
        "before": share(current, asked, 0, hung - STEPS),
        "in_outage": share(served, asked, hung, healed - 1),
        "hits_first": sum(record["arrived"][:STEPS]),
        "peak_first": max(peak[:STEPS], default=0),
        "peak_later": max(peak[STEPS:], default=0),
        "current_1_4": share(current, asked, healed + STEPS, min(healed + 5 * STEPS, end)),
        "current_6_9": share(current, asked, healed + 6 * STEPS, min(healed + 10 * STEPS, end)),
        "back_secs": back_after(current, asked, healed, end),
    }


def by_second(told, healed_ms):
    """Returns the share of current answers in each second since the origin healed."""
    healed = -((told["started_ms"] - healed_ms) // STEP_MS)
    return [
        round(share(told["current"], told["asked"], step, step + STEPS), 3)
        for step in range(healed, len(told["asked"]) - STEPS + 1, STEPS)
    ]
