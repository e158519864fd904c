"""Decides which rows there are, and in which order.

It exists so that one more row is one more entry. It refuses to know how a row is measured.
"""

from . import collapse, hang, measure, memory, recovery, rows
from .figures import FigureRow

ROWS = (*rows.ROWS, hang.ROW, recovery.CACHED, recovery.PLAIN, collapse.ROW, memory.ROW)


def measured(row, settings):
    """Returns the result of a row."""
    return row.run(row, settings) if isinstance(row, FigureRow) else measure.run_row(row, settings)
