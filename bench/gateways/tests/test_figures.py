"""Claims about rows of single figures: medians, goals and tables."""

import json
import unittest

from harness import catalog, collapse, hang, memory, recovery
from harness.figures import NEVER, FigureRow, Figures, Least, judge
from harness.load import off
from harness.report import as_json, summary, table


def measured(row, **runs):
    """Returns a result from the runs of each entrant."""
    result = Figures(row)
    for who, figures in runs.items():
        for run in figures:
            result.add(who, run, 0.0)
    return result


def answers(*times):
    """Returns runs of row 4 from pairs of p50 and p99."""
    return [{"p50_ms": p50, "p99_ms": p99} for p50, p99 in times]


def met(result, level):
    """Returns what came of the goals of a level, in their order."""
    return [verdict.met for verdict in judge(result) if verdict.level == level]


def recovered(**changed):
    """Returns a run of row 5a that meets every goal but for what is changed."""
    run = {
        "before": 1.0,
        "in_outage": 1.0,
        "hits_first": 100,
        "peak_first": 25,
        "peak_later": 20,
        "current_1_4": 1.0,
        "current_6_9": 1.0,
        "back_secs": 2.0,
    }
    return [{**run, **changed}]


class Judging(unittest.TestCase):
    def test_a_figure_is_the_median_of_its_runs(self):
        result = measured(hang.ROW, nginx=answers((1, 9), (3, 7), (2, 8)))
        self.assertEqual((result.value("nginx", "p50_ms"), result.value("nginx", "p99_ms")), (2, 8))

    def test_the_best_peer_is_found_for_each_figure_and_never_ourselves(self):
        result = measured(hang.ROW, nginx=answers((1, 9)), varnish=answers((2, 8)), evenkeel=answers((0, 0)))
        self.assertEqual((result.best_peer("p50_ms"), result.best_peer("p99_ms")), ("nginx", "varnish"))

    def test_a_goal_beside_the_best_peer_is_met_exactly_at_its_factor(self):
        at = measured(hang.ROW, varnish=answers((0.5, 1.0)), evenkeel=answers((0.6, 2.0)))
        above = measured(hang.ROW, varnish=answers((0.5, 1.0)), evenkeel=answers((0.61, 2.01)))
        self.assertEqual((met(at, "must"), met(above, "must")), ([True, True, None], [False, False, None]))
        self.assertEqual(met(at, "ambitious"), [False, False, None])

    def test_without_a_peer_or_without_us_nothing_is_judged(self):
        alone = measured(hang.ROW, evenkeel=answers((0.6, 1.0)))
        self.assertEqual(met(alone, "must"), [None, True, None])
        self.assertEqual(met(measured(hang.ROW), "must"), [None, None, None])

    def test_one_request_too_many_at_the_origin_misses(self):
        run = {
            "cold_hits": 1,
            "cold_p50_ms": 101,
            "cold_max_ms": 104,
            "expired_hits": 2,
            "expired_p50_ms": 1,
            "expired_max_ms": 2,
        }
        result = measured(collapse.ROW, varnish=[{**run, "expired_p50_ms": 1}], evenkeel=[run])
        self.assertEqual((met(result, "must"), met(result, "ambitious")), ([True, False, True, True], [True, True]))

    def test_a_recovery_is_judged_by_each_of_its_figures(self):
        good = measured(recovery.CACHED, evenkeel=recovered())
        self.assertEqual((met(good, "must"), met(good, "ambitious")), ([True] * 4, [True] * 2))
        for name, bad in (("back_secs", NEVER), ("peak_first", 41), ("current_6_9", 0.94), ("in_outage", 0.99)):
            judged = met(measured(recovery.CACHED, evenkeel=recovered(**{name: bad})), "must")
            self.assertEqual(judged.count(False), 1, name)

    def test_a_cache_taken_whole_at_the_start_has_no_overhead_and_is_no_best_peer(self):
        mib = memory.MIB
        self.assertIsNone(memory.overhead(500 * mib, 501 * mib))
        self.assertEqual(memory.overhead(0, memory.OBJECTS * 2024), 1000)
        runs = {"haproxy": None, "varnish": 1000}
        result = measured(
            memory.ROW, **{who: [{"idle_mib": 5, "full_mib": 9, "overhead": seen}] for who, seen in runs.items()}
        )
        self.assertEqual(result.best_peer("overhead"), "varnish")

    def test_every_goal_names_an_entrant_and_a_column_of_its_row(self):
        for row in catalog.ROWS:
            if isinstance(row, FigureRow):
                for goal in row.goals:
                    self.assertIn(goal.who, [entrant.who for entrant in row.entrants])
                    self.assertIn(goal.figure, [column.name for column in row.columns])

    def test_least_is_met_exactly_at_its_limit(self):
        goal = next(goal for goal in recovery.CACHED.goals if isinstance(goal, Least) and goal.limit == 0.95)
        result = measured(recovery.CACHED, evenkeel=recovered(**{goal.figure: 0.95}))
        self.assertNotIn(False, met(result, "must"))


class Noise(unittest.TestCase):
    def test_runs_that_others_disturbed_are_counted(self):
        result = Figures(hang.ROW)
        for foreign in (0.25, 0.26):
            result.add("nginx", answers((1, 2))[0], foreign)
        self.assertEqual(result.noisy("nginx"), 1)


class Answers(unittest.TestCase):
    def told(self, late=0, broken=0, **statuses):
        return {"statuses": {name[1:]: count for name, count in statuses.items()}, "late": late, "broken": broken}

    def test_one_of_a_hundred_may_be_off(self):
        self.assertIsNone(off(self.told(_200=99, _504=1), 100))

    def test_more_are_named_by_what_they_were(self):
        words = off(self.told(_200=90, _504=7, late=2, broken=1), 100)
        self.assertEqual(words, "100 requests came to 7 x 504, 2 late, 1 broken")


class Report(unittest.TestCase):
    def test_a_table_shows_figures_reasons_and_goals(self):
        result = measured(recovery.CACHED, nginx=recovered(back_secs=NEVER), evenkeel=recovered())
        result.absent["varnish"] = "went home"
        lines = [" ".join(line.split()) for line in table(result).splitlines()]
        self.assertIn("nginx 1.00 1.000 100 25 20 1.00 1.00 never 0/1", lines)
        self.assertIn('"varnish": went home', lines)
        self.assertIn("must evenkeel back after s <= 4.0 2.0 pass", lines)

    def test_the_summary_counts_goals_and_names_those_missed(self):
        missed = measured(hang.ROW, varnish=answers((0.5, 1.0)), evenkeel=answers((0.6, 2.01)))
        lines = [" ".join(line.split()) for line in summary([missed, measured(memory.ROW)]).splitlines()]
        self.assertEqual(lines[1], "4 1/2, 1 not measured 0/2, 1 not measured evenkeel: p99 ms <= 2.00, seen 2.01")
        self.assertEqual(lines[-1], "7 0/0, 2 not measured 0/0, 2 not measured")

    def test_json_has_null_for_what_never_came(self):
        result = measured(recovery.CACHED, nginx=recovered(back_secs=NEVER))
        text = json.dumps(as_json([result], {}, "quick"), allow_nan=False)
        self.assertIsNone(json.loads(text)["rows"][0]["runs"]["nginx"][0]["back_secs"])
