//! Decides what is held about the tracker of degradations: begin, change, end, and that flapping is one of each.
//! It exists apart because these are stories of minutes, told in a line per second.
//! It refuses real time: a second is a call of `look`.

use super::*;
use evenkeel::Rung;

const LIVE: Ending = Ending::Answered(Rung::Live);
const STALE: Ending = Ending::Answered(Rung::Stale);

/// The counters of a route and the tracker that looks at them each second.
#[derive(Default)]
struct Story {
    second: u64,
    counts: Vec<(Ending, Option<Reason>, u64)>,
    tracker: Degradation,
}

impl Story {
    fn now(&self) -> Mono {
        Mono::ORIGIN.after(Duration::from_secs(self.second))
    }

    /// Lets a second pass in which calls ended so.
    fn second(&mut self, came: &[(Ending, Option<Reason>, u64)]) -> Option<Turn> {
        self.second += 1;
        self.counts.extend_from_slice(came);
        let counts = &self.counts;
        let now = Mono::ORIGIN.after(Duration::from_secs(self.second));
        self.tracker.look(now, |ending, reason| {
            let same = counts
                .iter()
                .filter(|count| (count.0, count.1) == (ending, reason));
            same.map(|count| count.2).sum()
        })
    }

    fn seconds(&mut self, many: u64, came: &[(Ending, Option<Reason>, u64)]) -> Vec<Turn> {
        (0..many).filter_map(|_| self.second(came)).collect()
    }
}

fn live(count: u64) -> (Ending, Option<Reason>, u64) {
    (LIVE, None, count)
}

fn stale(count: u64) -> (Ending, Option<Reason>, u64) {
    (STALE, Some(Reason::BreakerOpen), count)
}

fn refused(count: u64) -> (Ending, Option<Reason>, u64) {
    (Ending::Refused, Some(Reason::BreakerOpen), count)
}

#[test]
fn an_outage_begins_changes_and_ends_once_each_with_its_counts() {
    let mut story = Story::default();
    assert_eq!(story.seconds(100, &[live(10)]), []);
    let began = story.seconds(60, &[stale(9), live(1)]);
    let [Turn::Began(episode)] = &began[..] else {
        panic!("{began:?}")
    };
    assert_eq!(episode.since, Mono::ORIGIN.after(Duration::from_secs(101)));
    assert_eq!(episode.mostly, STALE);
    assert_eq!(story.tracker.current().unwrap().came.of(STALE), 540);
    let changed = story.seconds(60, &[refused(10)]);
    let [Turn::Changed { from, episode }] = &changed[..] else {
        panic!("{changed:?}")
    };
    assert_eq!((*from, episode.mostly), (STALE, Ending::Refused));
    let ended = story.seconds(60, &[live(10)]);
    let [Turn::Ended { episode, at, well }] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert!(well);
    assert_eq!(
        at.since(episode.since),
        Duration::from_secs(129),
        "ten seconds without one"
    );
    assert_eq!(
        (episode.came.of(STALE), episode.came.of(Ending::Refused)),
        (540, 600)
    );
    assert_eq!(episode.came.why(STALE), Some(Reason::BreakerOpen));
    assert_eq!(story.tracker.current(), None);
}

/// Case 067: five minutes of coming and going every five seconds.
#[test]
fn case_067_a_route_that_comes_and_goes_is_told_of_once() {
    let mut story = Story::default();
    let mut turns = Vec::new();
    for _ in 0..30 {
        turns.extend(story.seconds(5, &[stale(10)]));
        turns.extend(story.seconds(5, &[live(10)]));
    }
    turns.extend(story.seconds(30, &[live(10)]));
    assert!(
        matches!(turns[..], [Turn::Began(_), Turn::Ended { .. }]),
        "{turns:?}"
    );
}

#[test]
fn a_few_in_a_thousand_are_no_degradation_and_one_in_a_hundred_is() {
    let mut story = Story::default();
    assert_eq!(story.seconds(60, &[live(991), stale(9)]), []);
    let turns = story.seconds(60, &[live(990), stale(10)]);
    assert!(matches!(turns[..], [Turn::Began(_)]), "{turns:?}");
    let turns = story.seconds(60, &[live(992), stale(8)]);
    assert_eq!(turns, [], "it does not end at the same edge");
}

#[test]
fn a_refresh_behind_a_stale_answer_and_a_caller_who_leaves_are_no_degradation() {
    let mut story = Story::default();
    let fine = [
        (STALE, Some(Reason::Revalidating), 10),
        (Ending::Abandoned, None, 10),
        (Ending::Answered(Rung::Fresh), None, 10),
    ];
    assert_eq!(story.seconds(60, &fine), []);
    assert_eq!(story.tracker.last_minute(story.now()).calls, 30 * 60);
}

#[test]
fn without_calls_nothing_is_said_to_be_well_and_after_minutes_nothing_is_known() {
    let mut story = Story::default();
    assert!(story.second(&[stale(1)]).is_some());
    assert_eq!(story.seconds(299, &[]), []);
    let turns = story.seconds(10, &[]);
    let [Turn::Ended { well: false, .. }] = &turns[..] else {
        panic!("{turns:?}")
    };
}

#[test]
fn the_last_minute_is_a_minute_and_what_is_remembered_is_bounded() {
    let mut story = Story::default();
    story.seconds(500, &[stale(1), live(1)]);
    let minute = story.tracker.last_minute(story.now());
    assert_eq!((minute.calls, minute.degraded()), (120, 60));
    assert!(story.tracker.slots.len() <= 60);
    // However often it is looked at.
    let now = story.now();
    for nanos in 0..1000 {
        story
            .tracker
            .look(now.after(Duration::from_nanos(nanos)), |_, _| 0);
    }
    assert!(story.tracker.slots.len() <= 61);
}

#[test]
fn counters_that_begin_anew_are_no_calls() {
    let mut tracker = Degradation::default();
    let now = Mono::ORIGIN;
    assert_eq!(tracker.look(now, |_, _| 0), None);
    let refused = |ending: Ending, _| u64::from(ending == Ending::Refused) * 100;
    assert!(tracker.look(now, refused).is_some());
    let before = tracker.last_minute(now).calls;
    assert_eq!(tracker.look(now, |_, _| 0), None);
    assert_eq!(tracker.last_minute(now).calls, before);
}
