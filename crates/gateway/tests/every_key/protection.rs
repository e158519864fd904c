//! The keys of authorities and identity: each is flipped, and something else happens; and what a bad value is told.

use evenkeel_gateway::config;

use crate::kit::{Bench, NO_LIMITS, Origin, Reply, Seen};

/// Names whoever comes, and lets in who brings a token.
fn authority(seen: &Seen) -> Reply {
    match seen.header("authorization").or_else(|| seen.header("x-key")) {
        Some(token) => Reply::ok("")
            .header("x-user", token)
            .header("x-tenant", "t")
            .header("x-roles", "r"),
        None => Reply::status(401),
    }
}

fn text(top: &str, origin: &Origin, sso: &Origin, authority: &str, route: &str) -> String {
    let (origin, sso) = (origin.address, sso.address);
    let authority = [
        "path = \"/verify\"",
        "headers = [\"authorization\"]",
        "from = \"sso\"",
    ]
    .iter()
    .filter(|line| !authority.contains(line.split(" =").next().unwrap()))
    .fold(authority.to_owned(), |text, line| format!("{text}\n{line}"));
    format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\nadmin = \"127.0.0.1:0\"\n{top}\n\
         [dependencies.d]\nurls = [\"http://{origin}\"]\n{NO_LIMITS}\n\
         [dependencies.sso]\nurls = [\"http://{sso}\"]\n{NO_LIMITS}\n\
         [authorities.sso]\n{authority}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r/{{id}}\" }}\nclass = \"read\"\nfrom = \"d\"\nauthorize = \"sso\"\n{route}\n"
    )
}

async fn bench(origin: &Origin, sso: &Origin, authority: &str, route: &str) -> Bench {
    Bench::start(&text("", origin, sso, authority, route)).await
}

async fn pair() -> (Origin, Origin) {
    let origin = Origin::always(Reply::ok("data")).await;
    (origin, Origin::start(authority).await)
}

const TOKEN: &[(&str, &str)] = &[("authorization", "ana")];

fn problems(authority: &str, route: &str) -> String {
    problems_with("", authority, route)
}

fn problems_with(top: &str, authority: &str, route: &str) -> String {
    let head = "path = \"/verify\"\nheaders = [\"authorization\"]\n";
    let text = format!(
        "[gateway]\nlisten = \"127.0.0.1:0\"\n{top}\n[resources.db]\nconcurrency = 9\n\
         [dependencies.d]\nurls = [\"http://a\"]\nuses = [\"db\"]\n[dependencies.sso]\nurls = [\"http://b\"]\n\
         [authorities.sso]\nfrom = \"sso\"\n{head}{authority}\n\
         [[routes]]\nname = \"r\"\nmatch = {{ path = \"/r\" }}\nclass = \"read\"\nfrom = \"d\"\nauthorize = \"sso\"\n{route}\n"
    );
    config::parse("contract.toml", &text).map_or_else(|problems| problems.to_string(), |_| String::new())
}

fn refused(shown: &str, said: &str) {
    assert!(shown.contains(said), "{said} is missing from\n{shown}");
    assert!(shown.contains("= mend: "), "{shown}");
}

pub(crate) async fn authorize() {
    let (origin, sso) = pair().await;
    let protected = bench(&origin, &sso, "", "").await;
    assert_eq!(protected.get("/r/1").await.status, 401);
    let open = Bench::start(&crate::kit::contract(origin.address, NO_LIMITS, "")).await;
    assert_eq!(open.get("/r/1").await.status, 200);
    for (authority, route, said) in [
        (
            "",
            "ladder = [ { stale = \"60s\" } ]",
            "routes[0] \"r\".ladder: shared copies on an authenticated route",
        ),
        (
            "",
            "coalesce = true",
            ".coalesce: shared copies on an authenticated route",
        ),
        (
            "",
            "freshness = \"origin\"",
            ".freshness: shared copies on an authenticated route",
        ),
    ] {
        refused(&problems(authority, route), said);
    }
    let unknown = "[gateway]\nlisten = \"127.0.0.1:0\"\n[dependencies.d]\nurls = [\"http://a\"]\n\
         [[routes]]\nname = \"r\"\nmatch = { path = \"/r\" }\nclass = \"read\"\nfrom = \"d\"\nauthorize = \"ldap\"\n";
    let shown = config::parse("c", unknown).unwrap_err().to_string();
    refused(&shown, "authorize: \"ldap\"");
    refused(&shown, "names of authorities; the contract has none");
    refused(
        &config::parse("c", &unknown.replace("class = \"read\"", "class = \"protect\""))
            .unwrap_err()
            .to_string(),
        "authorize = \"sso\"` beside it",
    );
    // Nothing that is personal goes on, so copies may be shared.
    assert_eq!(
        problems(
            "consume = [\"authorization\"]",
            "ladder = [ { stale = \"60s\" } ]"
        ),
        ""
    );
}

pub(crate) async fn from() {
    let (origin, sso) = pair().await;
    bench(&origin, &sso, "", "").await.get_with("/r/1", TOKEN).await;
    assert_eq!((origin.hits(), sso.hits()), (1, 1));
    let text = text("", &origin, &sso, "", "");
    let shown =
        |text: &str| config::parse("c", text).map_or_else(|problems| problems.to_string(), |_| String::new());
    let own = text.replace("from = \"sso\"", "from = \"d\"");
    refused(&shown(&own), "whose dependency \"d\" is the route's own");
    let unknown = text.replace("from = \"sso\"", "from = \"ldap\"");
    refused(&shown(&unknown), "authorities.sso.from: \"ldap\"");
    let shared = text
        .replace(
            "[dependencies.d]\n",
            "[resources.db]\nconcurrency = 9\n[dependencies.d]\nuses = [\"db\"]\n",
        )
        .replace("[dependencies.sso]\n", "[dependencies.sso]\nuses = [\"db\"]\n");
    refused(&shown(&shared), "draws on \"db\" as \"d\" does");
    let unused = text.replace("authorize = \"sso\"\n", "");
    refused(&shown(&unused), "authorities.sso: asked by no route");
    // A timeout that no deadline of a decision lets happen is one here too.
    let slow = text
        .replace("[authorities.sso]\n", "[authorities.sso]\ndeadline = \"100ms\"\n")
        .replace("[dependencies.sso]\n", "[dependencies.sso]\ntimeout = \"1s\"\n")
        .replace("breaker = \"off\"", "");
    refused(&shown(&slow), "dependencies.sso.timeout");
}

pub(crate) async fn method() {
    for (method, line) in [
        ("GET", "GET /verify"),
        ("HEAD", "HEAD /verify"),
        ("POST", "POST /verify"),
    ] {
        let (origin, sso) = pair().await;
        let bench = bench(&origin, &sso, &format!("method = \"{method}\""), "").await;
        assert_eq!(bench.get_with("/r/1", TOKEN).await.status, 200);
        assert!(sso.seen()[0].line.starts_with(line), "{method}");
    }
    refused(
        &problems("method = \"PUT\"", ""),
        "authorities.sso.method: \"PUT\"",
    );
}

pub(crate) async fn path() {
    for path in ["/verify", "/a/b?c=d"] {
        let (origin, sso) = pair().await;
        let bench = bench(&origin, &sso, &format!("path = \"{path}\""), "").await;
        bench.get_with("/r/1?x=y", TOKEN).await;
        assert_eq!(sso.seen()[0].line, format!("GET {path} HTTP/1.1"));
        assert_eq!(sso.seen()[0].header("x-forwarded-uri"), Some("/r/1?x=y"));
    }
    let (origin, sso) = pair().await;
    let text = text("", &origin, &sso, "path = \"verify\"", "");
    refused(
        &config::parse("c", &text).unwrap_err().to_string(),
        "authorities.sso.path: \"verify\"",
    );
}

pub(crate) async fn headers() {
    for (headers, status) in [("[\"authorization\"]", 401), ("[\"x-key\"]", 200), ("[]", 401)] {
        let (origin, sso) = pair().await;
        let bench = bench(&origin, &sso, &format!("headers = {headers}"), "").await;
        assert_eq!(
            bench.get_with("/r/1", &[("x-key", "1")]).await.status,
            status,
            "{headers}"
        );
    }
    let (origin, sso) = pair().await;
    for (headers, said) in [
        ("[\"host\"]", "headers: \"host\""),
        ("[\"x-forwarded-for\"]", "headers: \"x-forwarded-for\""),
        ("[\"a b\"]", "headers: \"a b\""),
        ("[\"x_key\"]", "names with hyphens"),
        ("[\"a\", \"A\"]", "headers: \"a\" twice"),
        ("\"a\"", "a list of texts"),
    ] {
        let text = text("", &origin, &sso, &format!("headers = {headers}"), "");
        refused(&config::parse("c", &text).unwrap_err().to_string(), said);
    }
    let many: Vec<String> = (0..33).map(|n| format!("\"x-{n}\"")).collect();
    let text = text("", &origin, &sso, &format!("headers = [{}]", many.join(", ")), "");
    refused(&config::parse("c", &text).unwrap_err().to_string(), "at most 32");
}

pub(crate) async fn consume() {
    for (consume, seen) in [("", Some("ana")), ("consume = [\"authorization\"]", None)] {
        let (origin, sso) = pair().await;
        bench(&origin, &sso, consume, "")
            .await
            .get_with("/r/1", TOKEN)
            .await;
        assert_eq!(origin.seen()[0].header("authorization"), seen, "{consume}");
        assert_eq!(sso.seen()[0].header("authorization"), Some("ana"));
    }
    refused(
        &problems("consume = [\"cookie\"]", ""),
        "\"cookie\", which the authority is not told",
    );
}

pub(crate) async fn copy() {
    for (copy, seen) in [("", Some("evil")), ("copy = [\"x-user\"]", Some("ana"))] {
        let (origin, sso) = pair().await;
        let bench = bench(&origin, &sso, copy, "").await;
        bench
            .get_with("/r/1", &[("authorization", "ana"), ("x-user", "evil")])
            .await;
        assert_eq!(origin.seen()[0].header("x-user"), seen, "{copy}");
    }
    let (origin, sso) = pair().await;
    let never = text("", &origin, &sso, "copy = [\"x-user\"]", "");
    let never = never.replace(
        "path = \"/r/{id}\" }",
        "path = \"/r/{id}\", header = { x-user = \"ana\" } }",
    );
    let shown = config::parse("c", &never).unwrap_err().to_string();
    refused(&shown, "match.header: \"x-user\", which only an authority says");
    refused(
        &problems("copy = [\"authorization\"]", ""),
        "\"authorization\", which an authority is told of the client's request",
    );
}

/// Whether what is kept for one is given to another when the dependency is down.
async fn shares(authority: &str, scope: &str, users: [&str; 2]) -> bool {
    let (origin, sso) = pair().await;
    let route = format!("scope = [{scope}]\nladder = [ {{ stale = \"60s\" }} ]");
    let authority = format!("consume = [\"authorization\"]\n{authority}");
    let bench = bench(&origin, &sso, &authority, &route).await;
    let get = |user| [("authorization", user)];
    assert_eq!(bench.get_with("/r/1", &get(users[0])).await.status, 200);
    origin.stop().await;
    bench.get_with("/r/1", &get(users[1])).await.status == 200
}

pub(crate) async fn identity() {
    let both =
        "copy = [\"x-user\", \"x-tenant\"]\nidentity = { tenant = \"x-tenant\", subject = \"x-user\" }";
    let users = ["ana", "ben"];
    assert!(shares(both, "\"subject\"", ["ana", "ana"]).await);
    assert!(!shares(both, "\"subject\"", users).await);
    let tenant = "copy = [\"x-tenant\"]\nidentity = { tenant = \"x-tenant\" }";
    assert!(
        shares(tenant, "\"tenant\"", users).await,
        "they are of one tenant"
    );
    let roles = "copy = [\"x-roles\"]\nidentity = { entitlements = \"x-roles\" }";
    assert!(
        shares(roles, "\"entitlements\"", users).await,
        "they may do the same"
    );
    // What the dependency is told beside the scope might be in its answers.
    assert!(!shares(both, "\"tenant\"", users).await);
    for (authority, route, said) in [
        (
            "",
            "scope = [\"subject\"]",
            "\"subject\", which authority \"sso\" does not say",
        ),
        (
            "identity = { subject = \"x-user\" }",
            "",
            "subject = \"x-user\", which is not copied",
        ),
        (
            "identity = {}",
            "",
            "at least one of tenant, subject and entitlements",
        ),
        (
            "identity = { user = \"x-user\" }",
            "",
            "identity.user: an unknown key",
        ),
        (
            "copy = [\"x-a\"]\nidentity = { tenant = \"x-a\", subject = \"x-a\" }",
            "",
            "a field of its own",
        ),
        ("", "scope = [\"owner\"]", "tenant, subject, entitlements"),
    ] {
        refused(&problems(authority, route), said);
    }
}

pub(crate) async fn identity_from_peers() {
    let origin = Origin::always(Reply::ok("data")).await;
    for (top, status, seen) in [
        (
            "trusted_peers = [\"127.0.0.1\"]\nidentity_from_peers = { subject = \"x-user\" }",
            200,
            Some("ana"),
        ),
        (
            "trusted_peers = [\"10.0.0.1\"]\nidentity_from_peers = { subject = \"x-user\" }",
            400,
            None,
        ),
    ] {
        let route = "scope = [\"subject\"]\nladder = [ { stale = \"60s\" } ]";
        let bench = Bench::start(&crate::kit::contract_with(origin.address, top, NO_LIMITS, route)).await;
        let answer = bench.get_with("/r/1", &[("x-user", "ana")]).await;
        assert_eq!(answer.status, status, "{}", answer.text());
        if let Some(seen) = seen {
            assert_eq!(origin.seen().pop().unwrap().header("x-user"), Some(seen));
        }
    }
    assert_eq!(origin.hits(), 1);
    refused(
        &problems_with("identity_from_peers = { subject = \"x-user\" }", "", ""),
        "gateway.identity_from_peers: set without `trusted_peers`",
    );
    let none = crate::kit::contract(origin.address, "", "scope = [\"subject\"]");
    refused(
        &config::parse("c", &none).unwrap_err().to_string(),
        "\"subject\", which nobody says",
    );
}

pub(crate) async fn deny() {
    for (deny, status) in [("", 503), ("deny = [302, 404]", 302)] {
        let (origin, sso) = pair().await;
        sso.now(Reply::status(302).header("location", "/login"));
        let answer = bench(&origin, &sso, deny, "").await.get("/r/1").await;
        assert_eq!(answer.status, status, "{deny}");
        assert_eq!(answer.header("location"), (status == 302).then_some("/login"));
    }
    for deny in ["[304]", "[407]", "[200]", "[500]", "302"] {
        refused(&problems(&format!("deny = {deny}"), ""), "authorities.sso.deny");
    }
}

pub(crate) async fn deadline() {
    for (deadline, reason) in [("", "dependency-failed"), ("deadline = \"50ms\"", "timed-out")] {
        let (origin, sso) = pair().await;
        // The pause before the answer is longer than one deadline and shorter than the other.
        sso.now(Reply::raw("", crate::kit::Then::Close).wait(std::time::Duration::from_millis(400)));
        let bench = bench(&origin, &sso, deadline, "").await;
        assert_eq!(bench.get("/r/1").await.status, 503);
        let series = format!(
            "evenkeel_protect_total{{route=\"r\",authority=\"sso\",decision=\"unavailable\",reason=\"{reason}\"}}"
        );
        assert_eq!(bench.metric(&series).await, Some(1), "{deadline}");
    }
}

#[test]
fn a_ladder_in_an_authority_is_told_why_it_cannot_be() {
    for key in [
        "ladder",
        "stale",
        "default",
        "alternate",
        "freshness",
        "coalesce",
        "fresh_for",
        "soft_timeout",
    ] {
        let shown = problems(&format!("{key} = 1"), "");
        refused(
            &shown,
            &format!("authorities.sso.{key}: something to stand in for a decision"),
        );
        refused(&shown, "anything else opens the door");
        refused(&shown, "error[protect-with-ladder]");
    }
    refused(
        &problems("timeout = \"1s\"", ""),
        "authorities.sso.timeout: an unknown key",
    );
}

#[test]
fn cookies_are_not_kept_for_anybody_on_a_protected_route() {
    let shown = problems(
        "copy = [\"x-user\"]\nidentity = { subject = \"x-user\" }",
        "scope = [\"subject\"]\nfreshness = \"origin\"\nkeep_set_cookie = true",
    );
    refused(&shown, "keep_set_cookie: set on an authenticated route");
}
