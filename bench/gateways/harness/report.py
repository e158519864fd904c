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


NOTHING = "–"
MARKS = {True: "pass", False: "miss", None: NOTHING}


def line(who, groups, best, row):
    """Returns the cells of one entrant that was measured."""
    pieces = groups[who]
    costs = [piece.cpu_us for piece in pieces]
    cells = [
        who,
        f"{median(piece.req_s for piece in pieces) / 1e3:.1f}k",
        f"{median(costs):.2f} ({min(costs):.2f}–{max(costs):.2f})",
        "1.00" if who == best else str(paired(pieces, groups.get(best, [])) or NOTHING),
        "1.00" if who == row.limit else str(paired(pieces, groups.get(row.limit, [])) or NOTHING),
        f"{median(piece.p50_ms for piece in pieces):.2f}",
        f"{median(piece.p99_ms for piece in pieces):.2f}",
        f"{sum(not piece.quiet for piece in pieces)}/{len(pieces)}",
    ]
    if row.number == DEAD_ORIGIN_ROW:
        cells.append(f"{median(piece.tries_s for piece in pieces):.1f}")
    return cells


def columns(lines, left=1):
    """Returns lines of cells as text, the first columns to the left and the others to the right."""
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]

    def placed(number, cell):
        return cell.ljust(widths[number]) if number < left else cell.rjust(widths[number])

    return ["  ".join(placed(*numbered) for numbered in enumerate(cells)) for cells in lines]


def reasons(absent):
    """Returns why entrants are missing, one line for each reason."""
    names = {}
    for who, reason in absent.items():
        names.setdefault(reason, []).append(f'"{who}"')
    return [f"{' and '.join(missing)}: {reason}" for reason, missing in names.items()]


def table(result):
    """Returns one row's table, the entrants it lacks, and its goals."""
    row, groups, best = result.row, by_name(result.slices), best_peer(result)
    head = HEAD + ((TRIES,) if row.number == DEAD_ORIGIN_ROW else ())
    lines = [head] + [line(e.who, groups, best, row) for e in row.entrants if e.who in groups]
    goals = [(v.level, v.who, v.wanted, v.seen, MARKS[v.met]) for v in judge(result)]
    text = [f"Row {row.number}: {row.title}", "", *columns(lines), "", *reasons(result.absent)]
    text += [*columns(goals, left=len(goals[0])), UNMEASURED[row.number]]
    return "\n".join(piece.rstrip() for piece in text)


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
