//! The keys of alternates and exercises are flipped, and something else happens.

use std::net::SocketAddr;

use crate::kit::{Bench, NO_LIMITS, Origin, Reply, until};

fn contract((first, spare): (SocketAddr, SocketAddr), route: &str) -> String {
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [dependencies.d]\nurls = [\"http://{first}\"]\n{NO_LIMITS}\n\
         [dependencies.spare]\nurls = [\"http://{spare}\"]\n{NO_LIMITS}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n{route}\n\
         [[routes]]\nname = \"s\"\nmatch = {{ path = \"/s\" }}\nclass = \"read\"\nfrom = \"spare\"\n"
    )
}

pub(crate) async fn alternate() {
    let (first, spare) = (
        Origin::always(Reply::status(503).body("first")).await,
        Origin::always(Reply::ok("spare")).await,
    );
    for (ladder, body) in [("", "first"), ("ladder = [ { alternate = \"spare\" } ]", "spare")] {
        let bench = Bench::start(&contract((first.address, spare.address), ladder)).await;
        assert_eq!(bench.get("/r/1").await.text(), body);
    }
}

pub(crate) async fn exercise() {
    let first = Origin::always(Reply::ok("first").header("content-type", "text/plain")).await;
    for (exercise, reply, hits, result) in [
        ("", Reply::ok("spare"), 0, None),
        (
            "exercise = \"100%\"",
            Reply::ok("spare").header("content-type", "text/plain; charset=utf-8"),
            1,
            Some("agreed"),
        ),
        ("exercise = \"100%\"", Reply::ok("spare"), 1, Some("differed")),
        ("exercise = \"100%\"", Reply::status(500), 1, Some("failed")),
    ] {
        let spare = Origin::always(reply).await;
        let ladder = format!("ladder = [ {{ alternate = \"spare\" }} ]\n{exercise}");
        let bench = Bench::start(&contract((first.address, spare.address), &ladder)).await;
        let answer = bench.get("/r/1").await;
        assert_eq!((answer.text().as_str(), answer.freshness()), ("first", "fresh"));
        until("the spare is tried, or never", || spare.hits() == hits).await;
        let Some(result) = result else { continue };
        let series =
            format!("evenkeel_exercises_total{{route=\"r\",rung=\"alternate\",result=\"{result}\"}}");
        loop {
            let told = bench.metric(&series).await;
            assert!(told.is_some(), "it is there from the start");
            if told == Some(1) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
    }
}
