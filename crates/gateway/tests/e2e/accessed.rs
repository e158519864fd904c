//! The line that is written about each request, and when.

use std::path::PathBuf;

use crate::kit::{Bench, Client, NO_BREAKER, Origin, Reply, STALE, Then, contract_with, until};

struct Written(PathBuf);

impl Written {
    fn lines(&self) -> Vec<serde_json::Value> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    async fn wait_for(&self, count: usize) -> Vec<serde_json::Value> {
        until("the lines are written", || self.lines().len() >= count).await;
        let lines = self.lines();
        assert_eq!(lines.len(), count, "one line for each request");
        lines
    }
}

async fn bench(name: &str, reply: Reply, route: &str) -> (Origin, Bench, Written) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("access-{name}.log"));
    // What an earlier run has left.
    drop(std::fs::remove_file(&path));
    let origin = Origin::always(reply).await;
    let top = format!("access_log = \"{}\"", path.display());
    let bench = Bench::start(&contract_with(origin.address, &top, NO_BREAKER, route)).await;
    (origin, bench, Written(path))
}

#[tokio::test]
async fn each_request_has_one_line_with_what_it_came_to() {
    let route = format!("{STALE}\nother_methods = \"pass\"");
    let (origin, bench, written) = bench("endings", Reply::ok("body"), &route).await;
    bench.get("/r/1?secret=1").await;
    Client::connect(bench.address())
        .await
        .request("POST", "/r/1?secret=1", &[])
        .await;
    bench.get("/r/2").await;
    origin.stop().await;
    bench.get("/r/2").await;
    bench.get("/r/3").await;
    bench.get("/nowhere").await;
    let lines = written.wait_for(6).await;
    let told: Vec<[String; 6]> = lines
        .iter()
        .map(|line| ["method", "path", "status", "ending", "rung", "reason"].map(|key| line[key].to_string()))
        .collect();
    let expected = [
        ["\"GET\"", "\"/r/1\"", "200", "\"answered\"", "\"live\"", "null"],
        ["\"POST\"", "\"/r/1\"", "200", "\"answered\"", "\"live\"", "null"],
        ["\"GET\"", "\"/r/2\"", "200", "\"answered\"", "\"live\"", "null"],
        [
            "\"GET\"",
            "\"/r/2\"",
            "200",
            "\"answered\"",
            "\"stale\"",
            "\"dependency-failed\"",
        ],
        [
            "\"GET\"",
            "\"/r/3\"",
            "502",
            "\"refused\"",
            "null",
            "\"dependency-failed\"",
        ],
        ["\"GET\"", "\"/nowhere\"", "404", "null", "null", "null"],
    ];
    assert_eq!(told, expected.map(|line| line.map(str::to_owned)));
    assert_eq!(
        (&lines[0]["route"], &lines[5]["route"]),
        (&"r".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&lines[0]["bytes"], &lines[3]["age_seconds"]),
        (&4.into(), &0.into())
    );
    assert_eq!(
        (&lines[0]["host"], &lines[0]["peer"]),
        (&"shop.example".into(), &"127.0.0.1".into())
    );
    assert!(!lines[0].to_string().contains("secret"), "queries are nobody's");
}

#[tokio::test]
async fn a_body_that_is_cut_and_a_client_that_leaves_are_told_as_such() {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nonly this";
    let (origin, bench, written) = bench("cut", Reply::raw(cut, Then::Close), "").await;
    assert!(!bench.get("/r/1").await.complete);
    let lines = written.wait_for(1).await;
    assert_eq!(
        (&lines[0]["status"], &lines[0]["ending"]),
        (&200.into(), &"cut".into())
    );
    assert_eq!(lines[0]["bytes"], 9);

    origin.now(Reply::raw(cut, Then::Hang));
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/2 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the body flows", || {
        bench.gateway.app().requests_in_flight() == 0 && origin.hits() == 2
    })
    .await;
    drop(client);
    let lines = written.wait_for(2).await;
    assert_eq!(
        (&lines[1]["status"], &lines[1]["ending"]),
        (&200.into(), &"abandoned".into())
    );

    origin.now(Reply::hang());
    let mut client = Client::connect(bench.address()).await;
    client.send("GET /r/3 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    until("the request is at the origin", || origin.hits() == 3).await;
    drop(client);
    let lines = written.wait_for(3).await;
    assert_eq!(
        (&lines[2]["status"], &lines[2]["ending"]),
        (&serde_json::Value::Null, &"abandoned".into())
    );
}
