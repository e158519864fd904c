"""Claims about how a recovery is summed up."""

import unittest

from harness.figures import NEVER
from harness.recovery_sums import back_after, by_second, figures, share

START_MS = 1_000_000
EMPTY = {"arrived": [], "peak": []}


def told(current, served=None, asked=100):
    """Returns what a load prints, from counts by tenths of a second."""
    return {
        "started_ms": START_MS,
        "asked": [asked] * len(current),
        "served": served or current,
        "current": current,
    }


class Back(unittest.TestCase):
    def back(self, current, asked=100):
        return back_after(current, [asked] * len(current), 0, len(current))

    def test_a_load_that_is_always_answered_is_back_at_once(self):
        self.assertEqual(self.back([100] * 50), 0.0)

    def test_a_second_is_good_at_95_percent_exactly(self):
        self.assertEqual(self.back([95] * 50), 0.0)
        self.assertEqual(self.back([94] + [95] * 49), 0.1)

    def test_a_bad_second_at_the_end_means_never(self):
        self.assertEqual(self.back([100] * 49 + [0]), NEVER)

    def test_back_is_after_the_last_bad_second_not_the_first_good_one(self):
        self.assertEqual(self.back([0] * 10 + [100] * 10 + [0] * 10 + [100] * 20), 3.0)

    def test_a_short_dip_counts_by_what_it_costs_a_whole_second(self):
        half = [100] * 20 + [50] + [100] * 29
        whole = [100] * 20 + [40] + [100] * 29
        self.assertEqual((self.back(half), self.back(whole)), (0.0, 2.1))

    def test_fewer_steps_than_a_second_tell_nothing(self):
        self.assertEqual(self.back([100] * 9), NEVER)


class Figures(unittest.TestCase):
    def test_seconds_are_counted_from_the_first_step_behind_the_event(self):
        # 2 s before, 1 s of outage, 11 s after; the origin healed inside step 30, so step 31 is the first.
        current = [100] * 20 + [0] * 11 + [100] * 109
        seen = figures(told(current), START_MS + 2000, START_MS + 3001, EMPTY, 10)
        self.assertEqual((seen["before"], seen["in_outage"]), (1.0, 0.0))
        self.assertEqual((seen["current_1_4"], seen["current_6_9"], seen["back_secs"]), (1.0, 1.0, 0.0))

    def test_an_event_on_the_edge_of_a_step_begins_with_that_step(self):
        seen = by_second(told([0] * 10 + [100] * 10), START_MS + 1000)
        self.assertEqual(seen, [1.0])

    def test_what_is_served_in_the_outage_need_not_be_current(self):
        seen = figures(told([0] * 60, served=[100] * 60), START_MS + 2000, START_MS + 4000, EMPTY, 2)
        self.assertEqual((seen["in_outage"], seen["back_secs"]), (1.0, NEVER))

    def test_the_first_second_of_the_origin_is_told_from_the_later_ones(self):
        record = {"arrived": [5] * 10 + [9] * 200, "peak": [3] * 9 + [8] + [20] * 90 + [999]}
        seen = figures(told([100] * 140), START_MS + 2000, START_MS + 3000, record, 10)
        self.assertEqual((seen["hits_first"], seen["peak_first"], seen["peak_later"]), (50, 8, 20))

    def test_nothing_asked_is_no_share(self):
        self.assertIsNone(share([], [], 0, 10))
