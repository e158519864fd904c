"""Decides what a reader gets: one table and the verdicts for each row, or the same as JSON.

It exists so that a figure never stands alone: its spread, its ratios and its goal are
beside it. It refuses to hide rounds that other programs disturbed.
"""

from dataclasses import asdict
from statistics import median

from .goals import UNMEASURED, best_peer, by_name, judge
from .stats import paired

HEAD = ("who", "req/s", "CPU µs/req (min–max)", "x best peer", "x limit", "p50 ms", "p99 ms", "noisy")
TRIES = "tries/s"
DEAD_ORIGIN_ROW = 3


def ratio_text(ratio):
    """Returns a ratio with its middle half."""
    return f"{ratio.median:.2f} ({ratio.low:.2f}–{ratio.high:.2f})" if ratio else "–"


def line(who, groups, best, row):
    """Returns the cells of one entrant that was measured."""
    pieces = groups[who]
    costs = [piece.cpu_us for piece in pieces]
    cells = [
        who,
        f"{median(piece.req_s for piece in pieces) / 1e3:.1f}k",
        f"{median(costs):.2f} ({min(costs):.2f}–{max(costs):.2f})",
        "1.00" if who == best else ratio_text(paired(pieces, groups.get(best, []))),
        "1.00" if who == row.limit else ratio_text(paired(pieces, groups.get(row.limit, []))),
        f"{median(piece.p50_ms for piece in pieces):.2f}",
        f"{median(piece.p99_ms for piece in pieces):.2f}",
        f"{sum(not piece.quiet for piece in pieces)}/{len(pieces)}",
    ]
    if row.number == DEAD_ORIGIN_ROW:
        cells.append(f"{median(piece.tries_s for piece in pieces):.1f}")
    return cells


def columns(lines):
    """Returns lines of cells as text, the first column to the left and the others to the right."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return [
        "  ".join(cell.rjust(width) if place else cell.ljust(width) for place, (cell, width) in enumerate(zip(cells, widths)))
        for cells in lines
    ]


def table(result):
    """Returns one row's table with its goals."""
    row, groups, best = result.row, by_name(result.slices), best_peer(result)
    head = HEAD + ((TRIES,) if row.number == DEAD_ORIGIN_ROW else ())
    lines = [head] + [line(e.who, groups, best, row) for e in row.entrants if e.who in groups]
    text = [f"Row {row.number}: {row.title}", *columns(lines)]
    text += [f"{who}: {reason}" for who, reason in result.absent.items()]
    marks = {True: "pass", False: "miss", None: "–"}
    verdicts = judge(result)
    text += columns([(v.level, v.who, v.wanted, v.seen, marks[v.met]) for v in verdicts])
    return "\n".join([*text, UNMEASURED[row.number]])


def as_json(results, machine, mode):
    """Returns everything measured, ready for json.dump."""
    return {
        "mode": mode,
        "machine": machine,
        "rows": [
            {
                "row": result.row.number,
                "title": result.row.title,
                "best_peer": best_peer(result),
                "limit": result.row.limit,
                "absent": result.absent,
                "verdicts": [asdict(verdict) for verdict in judge(result)],
                "slices": [asdict(piece) for piece in result.slices],
            }
            for result in results
        ],
    }
