"""Decides how rows of single figures are described, summed up and judged.

It exists because latencies, counts and bytes are no work per CPU second: each figure has a
column of its own and a goal of its own. It refuses to judge what was not measured.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from .foreign import CORES_MAX
from .goals import BEST_PEER, LEVELS, Verdict
from .rows import Entrant

FOREIGN = "foreign"
"""Name of what each run has beside its row's figures: cores that others used meanwhile."""

NEVER = math.inf
"""A time that never came."""


@dataclass(frozen=True)
class Column:
    """One figure: its name in JSON, its heading, and how it is written."""

    name: str
    heading: str
    form: str

    def written(self, value):
        """Returns a value as text; None was not measured."""
        if value is None:
            return "–"
        return "never" if value == NEVER else self.form.format(value)


@dataclass(frozen=True)
class Most:
    """`who` has at most `limit` of a figure, or `limit` times what the best peer has."""

    level: str
    who: str
    figure: str
    limit: float
    of_best_peer: bool = False


@dataclass(frozen=True)
class Least:
    """`who` has at least `limit` of a figure."""

    level: str
    who: str
    figure: str
    limit: float


@dataclass(frozen=True)
class FigureRow:
    """One comparison. `run` measures it; `note` says what stays unmeasured, or why the row is as it is."""

    number: str
    title: str
    entrants: tuple[Entrant, ...]
    columns: tuple[Column, ...]
    goals: tuple[Most | Least, ...]
    run: Callable
    note: str

    def column(self, name):
        """Returns the column of a figure."""
        return next(column for column in self.columns if column.name == name)


@dataclass
class Figures:
    """A row's runs by entrant, each a figure by name, and why entrants are missing."""

    row: FigureRow
    runs: dict[str, list[dict]] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)

    def add(self, who, figures, foreign):
        """Adds one run, during which others used so many cores."""
        self.runs.setdefault(who, []).append({**figures, FOREIGN: foreign})

    def noisy(self, who):
        """Returns how many runs others disturbed."""
        return sum(run[FOREIGN] > CORES_MAX for run in self.runs[who])

    def value(self, who, figure):
        """Returns the median of the runs, or None when there is none."""
        seen = [run[figure] for run in self.runs.get(who, []) if run[figure] is not None]
        return median(seen) if seen else None

    def best_peer(self, figure):
        """Returns the peer with the least of a figure, or None."""
        peers = [entrant.who for entrant in self.row.entrants if entrant.kind == "peer"]
        seen = {who: self.value(who, figure) for who in peers}
        seen = {who: value for who, value in seen.items() if value is not None}
        return min(seen, key=seen.get, default=None)


def judge(result):
    """Returns the verdicts on one row, must before ambitious before also."""
    goals = sorted(result.row.goals, key=lambda goal: LEVELS.index(goal.level))
    return [verdict(goal, result) for goal in goals]


def verdict(goal, result):
    """Returns what was wanted, what was seen, and whether that is enough."""
    column = result.row.column(goal.figure)
    seen = result.value(goal.who, goal.figure)
    if isinstance(goal, Least):
        wanted, limit = f"{column.heading} >= {column.written(goal.limit)}", goal.limit
        met = None if seen is None else seen >= limit
    elif goal.of_best_peer:
        best = result.best_peer(goal.figure)
        named = f"{BEST_PEER} ({best}: {column.written(result.value(best, goal.figure))})" if best else BEST_PEER
        wanted = f"{column.heading} <= {goal.limit:.2f} x {named}"
        met = None if seen is None or best is None else seen <= goal.limit * result.value(best, goal.figure)
    else:
        wanted = f"{column.heading} <= {column.written(goal.limit)}"
        met = None if seen is None else seen <= goal.limit
    return Verdict(goal.level, goal.who, wanted, "not measured" if seen is None else column.written(seen), met)
