//! What a Protect guard says, whatever goes wrong: never "allow", never "deny" but what its authority said to this call.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod support;

use std::{
    future::pending,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::Poll,
    time::Duration,
};

use evenkeel::{
    Class, Decided, Decision, HeldProtection, Hold, HoldMode, Protect, ProtectBuilder, Protection, Reason,
    RetryRules, State, Unavailable,
};
use support::{Fail, MS, SECOND, engine, poll};

type Door = Protect<u32, &'static str, Fail>;
type Came = Decided<u32, &'static str, Fail>;

fn classified(engine: &evenkeel::Engine) -> ProtectBuilder<u32, &'static str, evenkeel::Classifier<Fail>> {
    engine.protect("sso").classify(Fail::class)
}

async fn says(door: &Door, said: Result<Decision<u32, &'static str>, Fail>) -> Came {
    door.decide(|_| async move { said }).await
}

fn why(came: &Came) -> Option<Reason> {
    match came {
        Decided::Unavailable(nobody) => Some(nobody.reason),
        Decided::Allow(_) | Decided::Deny(_) => None,
    }
}

const YES: Result<Decision<u32, &'static str>, Fail> = Ok(Decision::Allow(7));
const NO: Result<Decision<u32, &'static str>, Fail> = Ok(Decision::Deny("no"));

#[tokio::test]
async fn e63_every_error_is_unavailable_whatever_its_class_and_none_opens_or_denies() {
    let (_, engine) = engine();
    let door = classified(&engine).build().unwrap();
    assert_eq!(says(&door, YES).await, Decided::Allow(7));
    assert_eq!(says(&door, NO).await, Decided::Deny("no"));
    for (fail, reason) in [
        (Fail::Down, Reason::DependencyFailed),
        (Fail::Late, Reason::TimedOut),
        (Fail::No, Reason::Fault),
        (Fail::Gone, Reason::Fault),
        (Fail::Busy, Reason::Busy),
        (Fail::Bug, Reason::Fault),
    ] {
        let came = says(&door, Err(fail)).await;
        let expected = Unavailable {
            reason,
            retry_after: None,
            cause: Some(fail),
            misuse: None,
        };
        assert_eq!(came, Decided::Unavailable(expected), "{fail:?}");
        assert_eq!(came.protection(), Protection::Unavailable);
        assert_eq!(came.allowed(), None);
    }
    let counts = door.counts();
    assert_eq!(Protection::ALL.map(|what| counts.total(what)), [1, 1, 6]);
    assert_eq!(counts.unavailable(Reason::Fault), 3);
}

#[tokio::test]
async fn e63_an_open_breaker_no_permit_and_a_spent_deadline_are_unavailable() {
    let (clock, engine) = engine();
    let door = classified(&engine)
        .timeout(SECOND)
        .concurrency(1)
        .breaker(|breaker| breaker.consecutive(1))
        .build()
        .unwrap();
    {
        let mut first = pin!(door.decide(|_| pending()));
        assert!(poll(first.as_mut()).is_pending());
        assert_eq!(why(&says(&door, YES).await), Some(Reason::AtCapacity));
        clock.advance(SECOND);
        let late = first.await;
        assert_eq!(why(&late), Some(Reason::TimedOut));
    }
    let open = says(&door, YES).await;
    assert_eq!(why(&open), Some(Reason::BreakerOpen));
    let Decided::Unavailable(open) = open else {
        panic!()
    };
    assert!(open.retry_after.is_some(), "the next probe is known");
    assert_eq!(door.counts().calls(), 3);
}

#[tokio::test]
async fn a_denial_is_a_sign_of_health_and_closes_the_breaker_as_an_allowance_does() {
    for said in [YES, NO] {
        let (clock, engine) = engine();
        let door = classified(&engine)
            .breaker(|breaker| breaker.consecutive(1))
            .build()
            .unwrap();
        assert_eq!(says(&door, Err(Fail::Down)).await.allowed(), None);
        assert_eq!(door.dependency().status().state, Some(State::Open));
        clock.advance(SECOND);
        let probe = says(&door, said).await;
        assert_ne!(probe.protection(), Protection::Unavailable);
        assert_eq!(door.dependency().status().state, Some(State::Closed), "{said:?}");
    }
}

#[tokio::test]
async fn e34_a_panic_is_unavailable_and_a_failure_of_the_authority_and_gives_its_permit_back() {
    let (_, engine) = engine();
    let door = classified(&engine).concurrency(1).build().unwrap();
    let broken = door.decide(|_| async { panic!("broken on purpose") }).await;
    assert_eq!(why(&broken), Some(Reason::Fault));
    let again = door
        .decide_repeatable(|_| async { panic!("broken on purpose") })
        .await;
    assert_eq!(why(&again), Some(Reason::Fault));
    assert_eq!(door.dependency().status().in_use, 0);
    assert_eq!(door.dependency().attempts(Class::Fault), 2);
    assert_eq!(says(&door, YES).await, Decided::Allow(7), "and it works on");
}

#[tokio::test]
async fn no_hold_opens_it_whatever_the_authority_would_say() {
    for mode in HoldMode::ALL {
        for said in [YES, NO, Err(Fail::Down), Err(Fail::Bug)] {
            let (_, engine) = engine();
            let door = classified(&engine)
                .breaker(|breaker| breaker.consecutive(1))
                .build()
                .unwrap();
            let asked = AtomicU32::new(0);
            let hold = Hold {
                mode,
                by: "ana".into(),
                why: "migration".into(),
                lasts: None,
            };
            let put = door.hold(hold.clone());
            let ask = door.decide(|_| async {
                asked.fetch_add(1, Ordering::Relaxed);
                said
            });
            let came = ask.await;
            match mode.on_protect() {
                None => {
                    let refused = put.unwrap_err().to_string();
                    assert!(refused.contains("no hold lets anybody through"), "{refused}");
                    assert_eq!(door.held(), None);
                    assert_eq!(asked.into_inner(), 1, "{mode:?}: as usual");
                }
                Some(HeldProtection::Unavailable) => {
                    put.unwrap();
                    assert_eq!(why(&came), Some(Reason::Held), "{mode:?}");
                    assert_eq!(asked.into_inner(), 0, "{mode:?}");
                    assert_eq!(door.release("ana"), Some(hold));
                    continue;
                }
                Some(HeldProtection::AsUsual) => put.unwrap(),
            }
            let expected = match said {
                Ok(Decision::Allow(_)) => Protection::Allowed,
                Ok(Decision::Deny(_)) => Protection::Denied,
                Err(_) => Protection::Unavailable,
            };
            assert_eq!(came.protection(), expected, "{mode:?} {said:?}");
        }
    }
}

#[tokio::test]
async fn a_hold_on_the_authority_is_one_on_its_door() {
    let (_, engine) = engine();
    let sso = engine.dependency("sso").build().unwrap();
    let door = engine
        .protect::<u32, &'static str>("door")
        .from(&sso)
        .classify(Fail::class)
        .build()
        .unwrap();
    sso.hold(Hold {
        mode: HoldMode::ForcedOff,
        by: "ana".into(),
        why: "migration".into(),
        lasts: Some(SECOND),
    })
    .unwrap();
    let Decided::Unavailable(held) = says(&door, YES).await else {
        panic!("it let somebody through")
    };
    assert_eq!((held.reason, held.retry_after), (Reason::Held, Some(SECOND)));
}

#[tokio::test]
async fn a_question_that_may_be_repeated_is_asked_again_after_an_outage_and_never_after_a_decision() {
    let (clock, engine) = engine();
    let rules = RetryRules {
        pause: MS,
        pause_max: MS,
        ..RetryRules::DEFAULT
    };
    let door = classified(&engine).retry(rules).build().unwrap();
    for (first, asked) in [(Err(Fail::Down), 2), (NO, 1), (YES, 1), (Err(Fail::No), 1)] {
        let count = Arc::new(AtomicU32::new(0));
        let counting = Arc::clone(&count);
        let mut call = pin!(door.decide_repeatable(move |_| {
            let before = counting.fetch_add(1, Ordering::Relaxed);
            async move { if before == 0 { first } else { YES } }
        }));
        let came = loop {
            if let Poll::Ready(came) = poll(call.as_mut()) {
                break came;
            }
            clock.advance(MS);
            tokio::task::yield_now().await;
        };
        assert_eq!(count.load(Ordering::Relaxed), asked, "{first:?}: {came:?}");
    }
}

#[tokio::test]
async fn two_calls_at_once_are_two_questions_and_a_decision_is_kept_for_nobody() {
    let (_, engine) = engine();
    let door = classified(&engine).build().unwrap();
    let asked = AtomicU32::new(0);
    let ask = |said| {
        asked.fetch_add(1, Ordering::Relaxed);
        async move {
            tokio::task::yield_now().await;
            said
        }
    };
    let (first, second) = tokio::join!(door.decide(|_| ask(YES)), door.decide(|_| ask(NO)));
    assert_eq!((first, second), (Decided::Allow(7), Decided::Deny("no")));
    let then = door.decide(|_| ask(Err(Fail::Down))).await;
    assert_eq!(why(&then), Some(Reason::DependencyFailed));
    assert_eq!(asked.into_inner(), 3);
}

/// A caller may leave wherever the call waits: for its permit, in its work, in the pause before another attempt.
#[tokio::test]
async fn a_caller_who_leaves_at_any_wait_is_counted_once_and_leaves_nothing_behind() {
    for polls in 0..6 {
        let (clock, engine) = engine();
        let door = classified(&engine)
            .timeout(SECOND)
            .concurrency(1)
            .queue(4, 500 * MS)
            .retry(RetryRules {
                pause: 10 * MS,
                ..RetryRules::DEFAULT
            })
            .build()
            .unwrap();
        let mut holder = Some(Box::pin(door.decide(|_| pending())));
        assert!(poll(holder.as_mut().unwrap().as_mut()).is_pending());
        {
            let mut call = pin!(door.decide_repeatable(|_| async {
                tokio::task::yield_now().await;
                Err(Fail::Down)
            }));
            for poll_number in 0..polls {
                if poll(call.as_mut()).is_ready() {
                    break;
                }
                if poll_number == 0 {
                    holder = None; // its permit goes to the one who waits
                }
                clock.advance(MS);
                tokio::task::yield_now().await;
            }
        }
        drop(holder);
        let counts = door.counts();
        // The holder, and the caller if it was polled at all.
        assert_eq!(counts.calls(), 1 + u64::from(polls > 0), "{polls}: {counts:?}");
        assert_eq!(
            counts.total(Protection::Allowed) + counts.total(Protection::Denied),
            0
        );
        assert_eq!(door.dependency().status().in_use, 0, "{polls}");
        assert_eq!(door.dependency().status().waiting, 0, "{polls}");
        assert_eq!(says(&door, YES).await, Decided::Allow(7), "{polls}");
    }
}

#[tokio::test]
async fn what_came_before_a_call_has_spent_from_its_deadline() {
    let (clock, engine) = engine();
    let door = classified(&engine).deadline(SECOND).build().unwrap();
    let arrived = engine.now().mono;
    clock.advance(900 * MS);
    let left = door.arrived_at(arrived);
    let came = left.decide(|call| async move {
        assert_eq!(call.remaining(), 100 * MS);
        Ok(Decision::Allow(1))
    });
    assert_eq!(came.await, Decided::Allow(1));
    clock.advance(100 * MS);
    let mut spent = pin!(left.decide(|_| pending()));
    let Poll::Ready(came) = poll(spent.as_mut()) else {
        panic!("nothing was left of its deadline")
    };
    assert_eq!(why(&came), Some(Reason::TimedOut));
    // A time ahead of the clock gives nobody more.
    let ahead = door.arrived_at(engine.now().mono.after(SECOND));
    let came = ahead.decide(|call| async move {
        assert_eq!(call.remaining(), SECOND);
        Ok(Decision::Allow(1))
    });
    assert_eq!(came.await, Decided::Allow(1));
}

#[test]
fn problems_of_the_contract_are_told_all_at_once() {
    let (_, engine) = engine();
    let problems = engine
        .protect::<(), ()>("a name with blanks")
        .timeout(Duration::ZERO)
        .classify(|_: &Fail| Class::OUTAGE)
        .build()
        .unwrap_err();
    assert_eq!(problems.list().len(), 2, "{problems}");
}
