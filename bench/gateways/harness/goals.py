"""Decides whether our gateway met its goals: the must and ambitious columns, as data.

It exists so that every figure stands next to what was promised. It refuses to judge by
peers that this bench does not measure, and names them instead.
"""

from dataclasses import dataclass
from statistics import median

from .rows import OWN_HIT, TUNED
from .stats import cheapest, paired

BEST_PEER = "best peer"
MUST, AMBITIOUS, ALSO = "must", "ambitious", "also"
LEVELS = (MUST, AMBITIOUS, ALSO)


@dataclass(frozen=True)
class Goal:
    """`who` does at least `factor` times the work per CPU second that `other` does."""

    row: str
    level: str
    who: str
    other: str
    factor: float


@dataclass(frozen=True)
class Tries:
    """`who` makes at most `per_second` connection attempts to a dead origin."""

    row: str
    level: str
    who: str
    per_second: float


@dataclass(frozen=True)
class Verdict:
    """What was wanted, what was seen, and whether that is enough (None: not measured)."""

    level: str
    who: str
    wanted: str
    seen: str
    met: bool | None


GOALS = (
    Goal("1", MUST, "evenkeel", "relay_hyper*", 0.90),
    Goal("1", MUST, "evenkeel", "ats", 1.25),
    Goal("1", AMBITIOUS, "evenkeel", BEST_PEER, 1.00),
    Goal("1", MUST, "evenkeel, answers kept", "relay_hyper*", 0.90),
    Goal("1", AMBITIOUS, "evenkeel, answers kept", BEST_PEER, 1.00),
    Goal("2", MUST, "evenkeel", BEST_PEER, 1.00),
    Goal("2", MUST, "evenkeel", "nginx", 2.00),
    Goal("2", MUST, "evenkeel", "ats", 1.50),
    Goal("2", AMBITIOUS, "evenkeel", "haproxy", 1.12),
    Goal("2", AMBITIOUS, "evenkeel", "hello_hyper*", 0.92),
    Goal("3", MUST, "evenkeel", BEST_PEER, 1.60),
    # 1.6 and 2.0 x pingora, which took 2.38 times hello_hyper's CPU when both were measured.
    Goal("3", MUST, "evenkeel", "hello_hyper*", 0.67),
    Goal("3", MUST, "evenkeel", OWN_HIT, 0.90),
    Goal("3", AMBITIOUS, "evenkeel", BEST_PEER, 2.00),
    Goal("3", AMBITIOUS, "evenkeel", "hello_hyper*", 0.84),
    Goal("3", AMBITIOUS, "evenkeel", OWN_HIT, 0.97),
    # One probe each 0.5 s, 20 % sooner at most: what the contract's breaker may try.
    Tries("3", AMBITIOUS, "evenkeel", 2.5),
    # The goals were set before anybody tuned nginx; the bare server itself is about 1.5 x this one.
    Goal("3", ALSO, "evenkeel", TUNED, 1.00),
)

# The translations use CPU per request relative to the limit from the one run that had all of them.
UNMEASURED = {
    "1": "not measured here: 1.25 x pingora, 1.7 x Envoy; 0.75 x relay_hyper* stands for both",
    "2": "not measured here: 1.5 x pingora; 0.77 x hello_hyper* stands for it",
    "3": "not measured here: pingora, the leader; 0.67 and 0.84 x hello_hyper* stand for 1.6 and 2.0 x pingora",
}


def by_name(slices):
    """Returns slices grouped by who was measured."""
    groups = {}
    for piece in slices:
        groups.setdefault(piece.who, []).append(piece)
    return groups


def best_peer(result):
    """Returns the peer with the lowest median CPU per request, or None."""
    peers = [entrant.who for entrant in result.row.entrants if entrant.kind == "peer"]
    return cheapest(by_name(result.slices), peers)


def judge(result, goals=GOALS):
    """Returns the verdicts on one row, must before ambitious before also."""
    chosen = [goal for goal in goals if goal.row == result.row.number]
    chosen.sort(key=lambda goal: LEVELS.index(goal.level))
    return [(judge_tries if isinstance(goal, Tries) else judge_ratio)(goal, result) for goal in chosen]


def judge_ratio(goal, result):
    """Returns the verdict on a ratio, by its median."""
    groups = by_name(result.slices)
    other = best_peer(result) if goal.other == BEST_PEER else goal.other
    named = f"{goal.other} ({other})" if goal.other == BEST_PEER and other else goal.other
    wanted = f">= {goal.factor:.2f} x {named}"
    ratio = paired(groups.get(goal.who, []), groups.get(other, []))
    if ratio is None:
        return Verdict(goal.level, goal.who, wanted, "not measured", None)
    return Verdict(goal.level, goal.who, wanted, str(ratio), ratio.median >= goal.factor)


def judge_tries(goal, result):
    """Returns the verdict on attempts at a dead origin, by the median of the slices."""
    wanted = f"<= {goal.per_second} tries of the origin per second"
    seen = [piece.tries_s for piece in result.slices if piece.who == goal.who]
    if not seen:
        return Verdict(goal.level, goal.who, wanted, "not measured", None)
    return Verdict(goal.level, goal.who, wanted, f"{median(seen):.1f}", median(seen) <= goal.per_second)
