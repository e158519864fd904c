"""Claims about verdicts and tables."""

import json
import unittest

from harness.goals import GOALS, Goal, best_peer, judge
from harness.report import as_json, table
from harness.rows import ROWS, TUNED
from tests.made import result, slices


def verdicts(measured):
    """Returns what came of evenkeel's goals, by level and wish."""
    return {(v.level, v.wanted): v.met for v in judge(measured) if v.who == "evenkeel"}


class Goals(unittest.TestCase):
    def test_a_goal_is_met_exactly_at_its_factor(self):
        at = verdicts(result("1", slices("evenkeel", [10.0] * 3), slices("relay_hyper*", [9.0] * 3)))
        above = verdicts(result("1", slices("evenkeel", [10.01] * 3), slices("relay_hyper*", [9.0] * 3)))
        goal = ("must", ">= 0.90 x relay_hyper*")
        self.assertEqual((at[goal], above[goal]), (True, False))

    def test_the_best_peer_is_the_cheapest_one_and_named(self):
        measured = result("2", slices("nginx", [11]), slices("haproxy", [7]), slices("evenkeel", [7]))
        self.assertIs(verdicts(measured)["must", ">= 1.00 x best peer (haproxy)"], True)

    def test_a_limit_or_a_tuned_peer_is_never_the_best_peer(self):
        measured = result("2", slices("hello_hyper*", [1]), slices(TUNED, [2]), slices("nginx", [9]))
        self.assertEqual(best_peer(measured), "nginx")

    def test_what_was_not_measured_is_neither_pass_nor_miss(self):
        self.assertEqual({verdict.met for verdict in judge(result("3"))}, {None})

    def test_too_many_tries_at_a_dead_origin_miss_the_goal(self):
        goal = ("ambitious", "<= 2.5 tries of the origin per second")
        for tries, met in ((2.5, True), (2.6, False)):
            self.assertIs(verdicts(result("3", slices("evenkeel", [1], tries_s=tries)))[goal], met)

    def test_every_goal_names_entrants_of_its_row(self):
        for goal in GOALS:
            names = {entrant.who for row in ROWS if row.number == goal.row for entrant in row.entrants}
            self.assertIn(goal.who, names)
            if isinstance(goal, Goal):
                self.assertIn(goal.other, names | {"best peer"})


class Report(unittest.TestCase):
    def test_a_table_shows_figures_reasons_and_goals(self):
        measured = result(
            "1",
            slices("nginx", [12.0] * 3, noisy=[1]),
            slices("evenkeel", [10.0] * 3),
            absent={"haproxy": "went home"},
        )
        lines = [" ".join(line.split()) for line in table(measured).splitlines()]
        self.assertIn("nginx 1.0k 12.00 (12.00–12.00) 1.00 – 1.00 2.00 1/3", lines)
        self.assertIn("evenkeel 1.0k 10.00 (10.00–10.00) 1.20 (1.20–1.20) noisy – 1.00 2.00 0/3", lines)
        self.assertIn('"haproxy": went home', lines)
        self.assertIn("ambitious evenkeel >= 1.00 x best peer (nginx) 1.20 (1.20–1.20) noisy pass", lines)

    def test_one_reason_is_said_once_for_all_it_concerns(self):
        text = table(result("1", absent={"evenkeel": "no program", "evenkeel, answers kept": "no program"}))
        self.assertIn('"evenkeel" and "evenkeel, answers kept": no program', text)

    def test_tries_are_shown_where_the_origin_is_dead(self):
        self.assertIn("tries/s", table(result("3")))
        self.assertNotIn("tries/s", table(result("2")))

    def test_json_carries_every_slice_and_verdict(self):
        measured = result("1", slices("nginx", [12.0] * 3))
        row = json.loads(json.dumps(as_json([measured], {"cpu": "x"}, "quick")))["rows"][0]
        self.assertEqual((row["best_peer"], len(row["slices"]), len(row["verdicts"])), ("nginx", 3, 5))
