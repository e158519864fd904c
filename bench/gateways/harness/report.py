"""Decides what a reader gets: one table and the verdicts for each row, or the same as JSON.

It exists so that a figure never stands alone: its spread, its ratios and its goal are
beside it. It refuses to hide rounds that other programs disturbed.
"""

from dataclasses import asdict
from statistics import median

from . import figures
from .figures import Figures
from .goals import LEVELS, UNMEASURED, best_peer, by_name, judge
from .stats import paired

HEAD = ("who", "req/s", "CPU µs/req (min–max)", "x best peer", "x limit", "p50 ms", "p99 ms", "noisy")
TRIES = "tries/s"
DEAD_ORIGIN_ROW = "3"


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
    if isinstance(result, Figures):
        lines, note = figure_lines(result), result.row.note
    else:
        lines, note = slice_lines(result), UNMEASURED[result.row.number]
    goals = [(v.level, v.who, v.wanted, v.seen, MARKS[v.met]) for v in verdicts(result)]
    text = [f"Row {result.row.number}: {result.row.title}", "", *columns(lines), "", *reasons(result.absent)]
    text += [*columns(goals, left=len(goals[0])), note]
    return "\n".join(piece.rstrip() for piece in text)


def slice_lines(result):
    """Returns the cells of a row of slices."""
    row, groups, best = result.row, by_name(result.slices), best_peer(result)
    head = HEAD + ((TRIES,) if row.number == DEAD_ORIGIN_ROW else ())
    return [head] + [line(e.who, groups, best, row) for e in row.entrants if e.who in groups]


def figure_lines(result):
    """Returns the cells of a row of figures, each the median of its runs."""
    row = result.row
    lines = [("who", *(column.heading for column in row.columns), "noisy")]
    for entrant in row.entrants:
        if entrant.who in result.runs:
            cells = (column.written(result.value(entrant.who, column.name)) for column in row.columns)
            noisy = f"{result.noisy(entrant.who)}/{len(result.runs[entrant.who])}"
            lines.append((entrant.who, *cells, noisy))
    return lines


def verdicts(result):
    """Returns the verdicts on a result of either kind."""
    return figures.judge(result) if isinstance(result, Figures) else judge(result)


def summary(results):
    """Returns all rows in few lines: how many goals of each level were met, and which were not."""
    lines = [("row", *LEVELS, "missed")]
    for result in results:
        judged = verdicts(result)
        cells = [level_cell([v for v in judged if v.level == level]) for level in LEVELS]
        missed = [f"{v.who}: {v.wanted}, seen {v.seen}" for v in judged if v.met is False]
        lines.append((result.row.number, *cells, missed[0] if missed else ""))
        lines += [("",) * (len(LEVELS) + 1) + (text,) for text in missed[1:]]
    return "\n".join(text.rstrip() for text in columns(lines, left=len(lines[0])))


def level_cell(judged):
    """Returns goals met of goals measured, and how many were not measured."""
    if not judged:
        return ""
    met = sum(v.met is True for v in judged)
    open_ones = sum(v.met is None for v in judged)
    return f"{met}/{len(judged) - open_ones}" + (f", {open_ones} not measured" if open_ones else "")


def as_json(results, machine, mode):
    """Returns everything measured, ready for json.dump."""
    return {"mode": mode, "machine": machine, "rows": [row_as_json(result) for result in results]}


def row_as_json(result):
    """Returns one row: what both kinds have, and slices or runs."""
    row = {
        "row": result.row.number,
        "title": result.row.title,
        "absent": result.absent,
        "verdicts": [asdict(verdict) for verdict in verdicts(result)],
    }
    if isinstance(result, Figures):
        # JSON has no infinity: what never came is null.
        runs = {
            who: [{name: None if value == figures.NEVER else value for name, value in run.items()} for run in seen]
            for who, seen in result.runs.items()
        }
        return {**row, "runs": runs}
    slices = [asdict(piece) for piece in result.slices]
    return {**row, "best_peer": best_peer(result), "limit": result.row.limit, "slices": slices}
