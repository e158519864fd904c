//! Whoever gets a request may read it more generously than the gateway: no such reading leads past a door.

use std::time::Duration;

use crate::{
    kit::{Answer, Bench, Client, Origin, Reply, until},
    protect::authority,
};

/// A contract whose address is open but for what stands behind doors.
fn contract(origin: &Origin, sso: &Origin) -> String {
    let (origin, sso) = (origin.address, sso.address);
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n\
         [dependencies.d]\nurls = [\"http://{origin}\"]\nbreaker = \"off\"\nlearned_limit = \"off\"\n\
         [dependencies.sso]\nurls = [\"http://{sso}\"]\nbreaker = \"off\"\nlearned_limit = \"off\"\n\
         [authorities.sso]\nfrom = \"sso\"\npath = \"/verify\"\nheaders = [\"authorization\", \"x-account\", \"x-key\"]\n\
         consume = [\"x-key\"]\n\
         [[routes]]\nname = \"admin\"\nmatch = {{ path = \"/admin/{{rest..}}\" }}\nclass = \"pass\"\nfrom = \"d\"\nauthorize = \"sso\"\n\
         [[routes]]\nname = \"one\"\nmatch = {{ path = \"/one/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\nauthorize = \"sso\"\n\
         [[routes]]\nname = \"write\"\nmatch = {{ path = \"/m/{{id}}\", method = [\"POST\"] }}\nclass = \"pass\"\nfrom = \"d\"\nauthorize = \"sso\"\n\
         [[routes]]\nname = \"host\"\nmatch = {{ path = \"/{{rest..}}\", host = [\"admin.example\"] }}\nclass = \"pass\"\nfrom = \"d\"\nauthorize = \"sso\"\n\
         [[routes]]\nname = \"large\"\nmatch = {{ path = \"/One/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\n\
         [[routes]]\nname = \"public\"\nmatch = {{ path = \"/admin/public/{{rest..}}\" }}\nclass = \"pass\"\nfrom = \"d\"\n\
         [[routes]]\nname = \"open\"\nmatch = {{ path = \"/{{rest..}}\" }}\nclass = \"pass\"\nfrom = \"d\"\n"
    )
}

async fn bench() -> (Origin, Origin, Bench) {
    let origin = Origin::always(Reply::ok("secret")).await;
    let sso = Origin::start(authority).await;
    let bench = Bench::start(&contract(&origin, &sso)).await;
    (origin, sso, bench)
}

async fn raw(bench: &Bench, line: &str, host: &str) -> Answer {
    let mut client = Client::connect(bench.address()).await;
    let sent = format!("{line} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n\r\n");
    client.send(&sent).await;
    client.answer(line.starts_with("HEAD")).await
}

/// What servers and frameworks make one of: percent-encoding, several slashes, a backslash, parameters behind a semicolon,
/// large and small letters, a slash at the end, a dot behind a host.
#[tokio::test(flavor = "multi_thread")]
async fn e63_no_spelling_of_a_protected_target_goes_through_an_open_route() {
    let (origin, _sso, bench) = bench().await;
    let spellings = [
        ("GET /admin/x", "a.example"),
        ("GET /%61dmin/x", "a.example"),
        ("HEAD /%61dmin/x", "a.example"),
        ("OPTIONS /%61dmin/x", "a.example"),
        ("GET /%61%64%6D%69%6e/x", "a.example"),
        ("GET //admin/x", "a.example"),
        ("GET /%2fadmin/x", "a.example"),
        ("GET /admin%2Fx", "a.example"),
        ("GET /admin%5cx", "a.example"),
        ("GET /;v=1/admin/x", "a.example"),
        ("GET /admin;v=1/x", "a.example"),
        ("GET /admin%3bv=1/x", "a.example"),
        ("GET /admin%00/x", "a.example"),
        ("GET /admin%20/x", "a.example"),
        ("GET /ADMIN/x", "a.example"),
        ("GET /%41dmin/x", "a.example"),
        ("GET http://a.example/%61dmin/x", "b.example"),
        ("GET /one/1/", "a.example"),
        ("GET /ONE/1", "a.example"),
        ("GET /one//1", "a.example"),
        ("GET /one/1;x/", "a.example"),
        ("post /m/1", "a.example"),
        ("GET /x", "admin.example."),
        ("GET /x", "ADMIN.example.:80"),
    ];
    for (line, host) in spellings {
        let answer = raw(&bench, line, host).await;
        assert!(
            matches!(answer.status, 400 | 401),
            "{line} {host}: {}",
            answer.status
        );
        assert!(!answer.text().contains("secret"), "{line} {host}");
    }
    assert_eq!(origin.hits(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_open_in_every_reading_passes_as_it_was_spelled() {
    let (origin, sso, bench) = bench().await;
    let open = [
        "/",
        "/x/",
        "/X/%41/a%2Fb",
        "//x",
        "/x;v=1/y",
        "/admin/public/",
        "/admin/public/A%2fb",
        "/administration/%61",
        "/m/1",
        "/one",
        "/one/1/2",
        // A pattern of its own says that it is another place.
        "/One/1",
        "/%C3%A4/%ff",
    ];
    for path in open {
        let answer = raw(&bench, &format!("GET {path}"), "a.example").await;
        assert_eq!(answer.status, 200, "{path}");
        let seen = origin.seen().pop().unwrap();
        assert_eq!(seen.line, format!("GET {path} HTTP/1.1"));
    }
    assert_eq!(sso.hits(), 0);
    // And who is allowed gets through the door in any spelling that is the door's own.
    let bearer = ("authorization", "Bearer ana");
    let answer = bench.get_with("/admin/%61;x/B//c/", &[bearer]).await;
    assert_eq!(answer.status, 200);
}

/// The dependency must not read another word than the one that was decided about.
#[tokio::test(flavor = "multi_thread")]
async fn e63_what_an_authority_is_told_has_no_twin_that_the_dependency_alone_sees() {
    let (origin, sso, bench) = bench().await;
    let bearer = ("authorization", "Bearer ana");
    let fields = [
        bearer,
        ("x-account", "own"),
        ("x_account", "other"),
        ("X_Account", "other"),
        ("x_key", "other"),
        ("x_else", "stays"),
    ];
    let answer = bench.get_with("/admin/x", &fields).await;
    assert_eq!(answer.status, 200);
    assert_eq!(sso.seen()[0].header("x-account"), Some("own"));
    let seen = origin.seen().pop().unwrap();
    assert_eq!(seen.header("x-account"), Some("own"));
    assert_eq!(seen.header("x_account"), None);
    assert_eq!(seen.header("x_key"), None);
    assert_eq!(seen.header("x_else"), Some("stays"));
}

/// Nor in trailers: some servers put those among the fields of the head.
#[tokio::test(flavor = "multi_thread")]
async fn e63_what_an_authority_is_told_is_not_said_anew_in_trailers() {
    let (origin, _sso, bench) = bench().await;
    let mut client = Client::connect(bench.address()).await;
    client
        .send(
            "POST /m/1 HTTP/1.1\r\nhost: a.example\r\nauthorization: Bearer ana\r\nx-account: own\r\ntransfer-encoding: chunked\r\n\
             trailer: x-account, x-sum\r\n\r\n4\r\ndata\r\n0\r\nx-account: evil\r\nx_account: evil\r\nx-sum: 1\r\n\r\n",
        )
        .await;
    assert_eq!(client.answer(false).await.status, 200);
    // The origin of the kit reads a body as the next head, so what it gets of the trailers is in what it takes for one.
    let seen = || -> String { origin.seen().iter().map(|seen| format!("{seen:?}")).collect() };
    until("the trailers have come", || seen().contains("(\"x-sum\", \"1\")")).await;
    assert!(!seen().contains("evil"), "{}", seen());
}

/// Requests behind one another on one connection are decided about one by one.
#[tokio::test(flavor = "multi_thread")]
async fn e63_a_decision_is_about_one_request_of_a_connection_and_none_behind_it() {
    let (origin, sso, bench) = bench().await;
    let mut client = Client::connect(bench.address()).await;
    let with = |path: &str, who: &str| format!("GET {path} HTTP/1.1\r\nhost: a.example\r\n{who}\r\n");
    let yes = "authorization: Bearer ana\r\n";
    let all = [
        with("/admin/1", yes),
        with("/admin/2", ""),
        with("/one/3", yes),
        with("/one/3", ""),
    ];
    client.send(&all.concat()).await;
    let mut statuses = Vec::new();
    for _ in all {
        statuses.push(client.answer(false).await.status);
    }
    assert_eq!(statuses, [200, 401, 200, 401]);
    assert_eq!((origin.hits(), sso.hits()), (2, 4));
    sso.now(Reply::hang());
    let asked = tokio::time::timeout(
        Duration::from_secs(20),
        bench.get_with("/one/3", &[("authorization", "Bearer ana")]),
    );
    assert_eq!(asked.await.unwrap().status, 503);
    assert_eq!(origin.hits(), 2);
}
