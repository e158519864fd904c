"""Claims about figures and ratios."""

import unittest

from harness.stats import cheapest, middle, paired
from tests.made import slices


class Stats(unittest.TestCase):
    def test_a_cheaper_server_has_a_ratio_above_one(self):
        ratio = paired(slices("a", [5, 5, 5]), slices("b", [10, 10, 10]))
        self.assertEqual((ratio.low, ratio.median, ratio.high, ratio.rounds), (2, 2, 2, 3))

    def test_a_slow_phase_that_hits_both_leaves_the_ratio_alone(self):
        ratio = paired(slices("a", [10, 20, 10]), slices("b", [12, 24, 12]))
        self.assertAlmostEqual(ratio.median, 1.2)

    def test_a_round_that_one_side_lacks_is_left_out(self):
        ratio = paired(slices("a", [10, 99])[1:], slices("b", [1, 99]))
        self.assertEqual((ratio.median, ratio.rounds), (1, 1))

    def test_noisy_rounds_are_left_out_when_three_quiet_ones_remain(self):
        ratio = paired(slices("a", [10, 10, 10, 80], noisy=[3]), slices("b", [10] * 4))
        self.assertEqual((ratio.high, ratio.rounds, ratio.noisy), (1, 3, False))

    def test_too_few_quiet_rounds_use_all_and_say_so(self):
        ratio = paired(slices("a", [10, 10, 10], noisy=[0]), slices("b", [10] * 3))
        self.assertEqual((ratio.rounds, ratio.noisy), (3, True))
        self.assertTrue(str(ratio).endswith("noisy"))

    def test_without_a_common_round_there_is_no_ratio(self):
        self.assertIsNone(paired(slices("a", [1]), []))

    def test_the_middle_half_lies_between_neighbours_in_proportion(self):
        self.assertEqual(middle([4, 1, 3, 2]), (1.75, 2.5, 3.25))

    def test_the_cheapest_is_found_among_those_measured(self):
        groups = {"a": slices("a", [9]), "b": slices("b", [8])}
        self.assertEqual(cheapest(groups, ["a", "b", "absent"]), "b")
        self.assertIsNone(cheapest({}, ["a"]))
