"""Decides how slices become figures: medians, and ratios paired inside one round.

It exists because the host has fast and slow phases of seconds, so that only what was
measured in the same round may be compared. It refuses to compare across rounds.
"""

from dataclasses import dataclass
from statistics import median

QUIET_ROUNDS_MIN = 3
"""Rounds without foreign load that a ratio needs before it leaves noisy rounds out."""


@dataclass(frozen=True)
class Slice:
    """One measured span of one server. Times of answers in ms, CPU in µs per request."""

    round: int
    who: str
    requests: int
    req_s: float
    cpu_us: float
    p50_ms: float
    p99_ms: float
    off: float
    """Share of answers that were not what the row asks for; see README.md."""
    tries_s: float
    """Refused connection attempts per second on the whole machine."""
    foreign: float
    """Cores used by anything else on the two measured CPUs."""
    quiet: bool


@dataclass(frozen=True)
class Ratio:
    """Work per CPU second, one server's over another's: above 1 is better."""

    median: float
    low: float
    high: float
    rounds: int
    noisy: bool

    def __str__(self):
        return f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})" + (" noisy" if self.noisy else "")


def quantile(values, share):
    """Returns the value at `share` (0 to 1) of the sorted values, between neighbours in proportion."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def middle(values):
    """Returns lower quartile, median and upper quartile."""
    return quantile(values, 0.25), median(values), quantile(values, 0.75)


def paired(own, other):
    """Returns the ratio of two servers from the rounds that both have, or None without any."""
    theirs = {piece.round: piece for piece in other}
    pairs = [(piece, theirs[piece.round]) for piece in own if piece.round in theirs]
    quiet = [pair for pair in pairs if pair[0].quiet and pair[1].quiet]
    chosen = quiet if len(quiet) >= QUIET_ROUNDS_MIN else pairs
    if not chosen:
        return None
    low, mid, high = middle([their.cpu_us / mine.cpu_us for mine, their in chosen])
    return Ratio(mid, low, high, len(chosen), noisy=len(quiet) < len(chosen))


def cheapest(slices_by_name, names):
    """Returns the name with the lowest median CPU per request, or None when none was measured."""
    measured = [name for name in names if slices_by_name.get(name)]
    costs = {name: median(piece.cpu_us for piece in slices_by_name[name]) for name in measured}
    return min(costs, key=costs.get, default=None)
