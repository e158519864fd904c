"""Slices and results made up for tests."""

from dataclasses import replace

from harness.measure import Result
from harness.rows import ROWS
from harness.stats import Slice

BLANK = Slice(
    round=0,
    who="",
    requests=1,
    req_s=1000.0,
    cpu_us=1.0,
    p50_ms=1.0,
    p99_ms=2.0,
    off=0.0,
    tries_s=0.0,
    foreign=0.0,
    quiet=True,
)


def slices(who, costs, noisy=(), tries_s=0.0):
    """Returns one slice for each cost, in rounds counted from 0."""
    return [
        replace(BLANK, who=who, round=number, cpu_us=cost, quiet=number not in noisy, tries_s=tries_s)
        for number, cost in enumerate(costs)
    ]


def result(number, *groups, absent=None):
    """Returns a result of one row."""
    row = next(row for row in ROWS if row.number == number)
    return Result(row, [piece for group in groups for piece in group], absent or {})
