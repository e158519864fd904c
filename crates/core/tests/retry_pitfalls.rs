//! What goes wrong with retries elsewhere, and does not here. The names are those of the pitfalls and cases.

use core::{cell::RefCell, time::Duration};

use evenkeel_core::{
    Advice, Asker, BreakerRules, Class, Criticality, Dependency, DependencyDraft, Exclusive, Failed, Lane,
    Mono, NoRetry, Outage, Reason, RetryRules, State, Steering,
};

struct Alone<T>(RefCell<T>);

impl<T> Exclusive<T> for Alone<T> {
    fn guard(value: T) -> Self {
        Self(RefCell::new(value))
    }

    fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.0.borrow_mut())
    }
}

const MS: Duration = Duration::from_millis(1);
const NOW: Mono = Mono::ORIGIN;
const LANE: Lane = Lane::new(0);
const DOWN: Failed = Failed {
    class: Class::OUTAGE,
    advice: Advice::Whenever,
};

fn dependency(retry: RetryRules, trips_after: Option<u32>) -> Dependency<Alone<Steering>> {
    let draft = DependencyDraft {
        name: "d".into(),
        concurrency: Some(100),
        breaker: trips_after.map(|failures| BreakerRules {
            consecutive: Some(failures),
            ..BreakerRules::NONE
        }),
        retry: Some(retry),
        ..DependencyDraft::default()
    };
    Dependency::new(draft.check().expect("the draft is valid"), Vec::new(), 1)
}

/// Makes a call whose every attempt is an outage, and returns how many there were and when the last one started.
fn call(dependency: &Dependency<Alone<Steering>>, began: Mono, ends: Option<Mono>) -> (u32, Mono, NoRetry) {
    let (mut made, mut now) = (0, began);
    let (mut pass, _) = dependency.admit(now, Asker::Traffic, false);
    loop {
        made += 1;
        let admitted = pass.expect("admitted");
        dependency.settle(admitted, Class::OUTAGE, true, LANE, now);
        dependency.release();
        let retry = match dependency.retry(DOWN, made, ends, now) {
            Ok(retry) => retry,
            Err(why) => return (made, now, why),
        };
        now = retry.at();
        (pass, _) = dependency.admit_again(Criticality::Critical, retry, now, false);
    }
}

#[test]
fn r02_under_total_failure_a_thousand_calls_make_at_most_a_tenth_more_attempts_and_the_free_ones() {
    let dependency = dependency(RetryRules::DEFAULT, None);
    let attempts: u32 = (0..1000).map(|_| call(&dependency, NOW, None).0).sum();
    assert_eq!(attempts, 1000 + 100 + 3);
}

#[test]
fn e23_each_attempt_is_counted_where_it_happens() {
    let rules = RetryRules {
        attempts: 3,
        budget_ppm: 1_000_000,
        floor: 10,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, Some(3));
    let (made, _, why) = call(&dependency, NOW, None);
    assert_eq!((made, why), (3, NoRetry::NoAttempts));
    assert_eq!(
        dependency.state(),
        Some(State::Open),
        "three failures, by one call"
    );
}

#[test]
fn g34_a_pause_that_does_not_fit_before_the_deadline_is_not_begun() {
    let rules = RetryRules {
        attempts: 10,
        floor: 100,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, None);
    let busy = |said| Failed {
        class: Class::Outage(Outage::ErrorAnswer),
        advice: Advice::After(said),
    };
    let ends = NOW.after(MS * 1000);
    assert_eq!(
        dependency.retry(busy(MS * 1000), 1, Some(ends), NOW),
        Err(NoRetry::NoTime)
    );
    let retry = dependency
        .retry(busy(MS * 900), 1, Some(ends), NOW)
        .expect("it fits");
    assert!(retry.at() >= NOW.after(MS * 900) && retry.at() < ends);
    dependency.give_back(retry, NOW);
}

#[test]
fn case_031_attempts_and_deadline_hold_both() {
    let rules = RetryRules {
        attempts: 3,
        floor: 1000,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, None);
    for began in (0..200).map(|number| NOW.after(MS * 5000 * number)) {
        let ends = began.after(MS * 60);
        let (made, last, why) = call(&dependency, began, Some(ends));
        assert!(made <= 3 && last < ends, "{made} {last:?}");
        assert!(matches!(why, NoRetry::NoAttempts | NoRetry::NoTime), "{why:?}");
    }
}

#[test]
fn an_open_breaker_ends_retries_and_no_retry_becomes_a_probe() {
    let rules = RetryRules {
        floor: 10,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, Some(2));
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
    dependency.settle(pass.expect("closed"), Class::OUTAGE, true, LANE, NOW);
    dependency.release();
    let granted = dependency.retry(DOWN, 1, None, NOW).expect("closed");
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
    dependency.settle(pass.expect("closed"), Class::OUTAGE, true, LANE, NOW);
    dependency.release();
    assert_eq!(dependency.retry(DOWN, 1, None, NOW), Err(NoRetry::BreakerOpen));
    // Long after its open period a probe is due. It is for the traffic, not for a retry.
    let later = NOW.after(MS * 60_000);
    let (refused, _) = dependency.admit_again(Criticality::Critical, granted, later, false);
    assert_eq!(
        refused.map_err(|refusal| refusal.reason),
        Err(Reason::BreakerOpen)
    );
    let (probe, _) = dependency.admit(later, Asker::Traffic, false);
    assert!(probe.expect("due").is_probe());
}

#[test]
fn e68_a_retry_that_is_refused_has_its_cost_back() {
    let rules = RetryRules {
        budget_ppm: 0,
        floor: 1,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, Some(1));
    let granted = dependency.retry(DOWN, 1, None, NOW).expect("one is free");
    let (pass, _) = dependency.admit(NOW, Asker::Traffic, false);
    dependency.settle(pass.expect("closed"), Class::OUTAGE, true, LANE, NOW);
    dependency.release();
    assert!(
        dependency
            .admit_again(Criticality::Critical, granted, NOW, false)
            .0
            .is_err()
    );
    dependency.reset(NOW);
    let again = dependency.retry(DOWN, 1, None, NOW).expect("it was given back");
    dependency.give_back(again, NOW);
}

#[test]
fn e68_who_was_granted_a_retry_is_not_asked_again_and_one_that_is_not_made_costs_nothing() {
    let rules = RetryRules {
        budget_ppm: 0,
        floor: 1,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, None);
    let granted = dependency.retry(DOWN, 1, None, NOW).expect("one is free");
    assert_eq!(dependency.retry(DOWN, 1, None, NOW), Err(NoRetry::NoBudget));
    let (pass, _) = dependency.admit_again(Criticality::Critical, granted, NOW, false);
    dependency.settle(pass.expect("it was granted"), Class::Answer, true, LANE, NOW);
    dependency.release();
    let second = NOW.after(MS * 1000);
    for _ in 0..5 {
        let granted = dependency
            .retry(DOWN, 1, None, second)
            .expect("given back each time");
        dependency.give_back(granted, second);
    }
}

#[test]
fn a_429_holds_up_the_retries_of_everybody_until_its_time_and_holds_up_no_call() {
    let rules = RetryRules {
        floor: 10,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, None);
    dependency.heed(Class::Busy, Advice::After(MS * 3000), NOW);
    let until = NOW.after(MS * 3000);
    assert_eq!(dependency.hushed_until(NOW), Some(until));
    let retry = dependency.retry(DOWN, 1, None, NOW).expect("later");
    assert!(retry.at() >= until);
    dependency.give_back(retry, NOW);
    assert_eq!(
        dependency.retry(DOWN, 1, Some(until), NOW),
        Err(NoRetry::NoTime),
        "and of a call that ends before that there is none"
    );
    assert!(dependency.admit(NOW, Asker::Traffic, false).0.is_ok());
    dependency.release();
    assert_eq!(dependency.hushed_until(until), None);
}

#[test]
fn case_033_after_a_429_nobody_comes_back_before_the_first_pause_whatever_it_said() {
    let rules = RetryRules {
        pause: MS * 1000,
        pause_max: MS * 1000,
        ..RetryRules::DEFAULT
    };
    for advice in [
        Advice::Whenever,
        Advice::After(Duration::ZERO),
        Advice::After(MS),
        Advice::Never,
    ] {
        let dependency = dependency(rules, None);
        dependency.heed(Class::Busy, advice, NOW);
        assert_eq!(dependency.hushed_until(NOW), Some(NOW.after(MS * 1000)));
    }
}

#[test]
fn r05_a_thousand_who_fail_together_do_not_come_back_together() {
    let rules = RetryRules {
        floor: 1000,
        pause: MS * 1000,
        ..RetryRules::DEFAULT
    };
    let dependency = dependency(rules, None);
    let mut tenths = [0_u32; 10];
    for _ in 0..1000 {
        let retry = dependency.retry(DOWN, 1, None, NOW).expect("a thousand are free");
        let tenth = retry.at().since(NOW).as_millis() / 100;
        tenths[usize::try_from(tenth.min(9)).expect("below ten")] += 1;
        drop(dependency.admit_again(Criticality::Critical, retry, NOW, false));
        dependency.release();
    }
    assert!(tenths.iter().all(|count| (50..200).contains(count)), "{tenths:?}");
}

#[test]
fn what_is_no_outage_is_not_retried_nor_is_anything_without_rules() {
    let with = dependency(RetryRules::DEFAULT, None);
    let failed = |class| Failed {
        class,
        advice: Advice::Whenever,
    };
    for class in [
        Class::Answer,
        Class::Refusal,
        Class::Gone,
        Class::Fault,
        Class::Local,
        Class::Cancelled,
    ] {
        assert_eq!(
            with.retry(failed(class), 1, None, NOW),
            Err(NoRetry::NotRetryable)
        );
    }
    let draft = DependencyDraft {
        name: "d".into(),
        ..DependencyDraft::default()
    };
    let without = Dependency::<Alone<Steering>>::new(draft.check().expect("valid"), Vec::new(), 1);
    assert_eq!(without.retry(DOWN, 1, None, NOW), Err(NoRetry::NotRetryable));
}

/// A gateway in front of a gateway: what the inner one has retried, the outer one leaves.
#[test]
fn r02_two_layers_that_tell_each_other_retry_no_more_than_one() {
    let (outer, inner) = (
        dependency(RetryRules::DEFAULT, None),
        dependency(RetryRules::DEFAULT, None),
    );
    let mut asked = 0;
    for _ in 0..1000 {
        let (pass, _) = outer.admit(NOW, Asker::Traffic, false);
        let (made, ..) = call(&inner, NOW, None);
        asked += made;
        // The inner layer marks what comes of its own retries.
        let marked = Failed {
            class: Class::of_status(502),
            advice: Advice::Never,
        };
        assert_eq!(outer.retry(marked, 1, None, NOW), Err(NoRetry::NotRetryable));
        outer.settle(pass.expect("closed"), Class::of_status(502), true, LANE, NOW);
        outer.release();
    }
    assert_eq!(asked, 1000 + 100 + 3);
}

/// Two layers that know nothing of each other are bounded by both budgets, not by attempts to the power of layers.
#[test]
fn r02_two_layers_of_which_neither_knows_are_bounded_by_their_budgets() {
    let rules = RetryRules {
        attempts: 3,
        ..RetryRules::DEFAULT
    };
    let (outer, inner) = (dependency(rules, None), dependency(rules, None));
    let mut asked = 0;
    for _ in 0..1000 {
        let (mut pass, _) = outer.admit(NOW, Asker::Traffic, false);
        for made in 1.. {
            asked += call(&inner, NOW, None).0;
            outer.settle(pass.expect("closed"), Class::of_status(502), true, LANE, NOW);
            outer.release();
            let Ok(retry) = outer.retry(DOWN, made, None, NOW) else {
                break;
            };
            (pass, _) = outer.admit_again(Criticality::Critical, retry, NOW, false);
        }
    }
    // 1000 × 1.1 × 1.1, and the three free ones of each; without budgets it would be 9000.
    assert!(asked <= 1210 + 3 + 4, "{asked}");
}
