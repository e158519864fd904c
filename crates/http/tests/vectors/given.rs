//! Reads what a vector gives: messages as lines of text, seconds, and the terms of the route.
//! It exists so that the expectations work on the types of the library.
//! It refuses to judge; a value it cannot read is a panic that shows it.

use std::time::Duration;

use evenkeel_http::age::{corrected_initial_age, current_age};
use evenkeel_http::dates::HttpDate;
use evenkeel_http::decide::{Origin, RequestSay, Terms};
use evenkeel_http::facts::{RequestFacts, ResponseHead, Sharing};
use evenkeel_http::lifetime::Heuristic;
use evenkeel_http::reuse::Prohibition;
use http::header::{HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode};
use toml::{Table, Value};

/// The keys that describe a situation.
pub(crate) const KEYS: &[&str] = &[
    "name",
    "rule",
    "sharing",
    "targets",
    "ignored_cookies",
    "heuristic",
    "fetched_by",
    "response",
    "delay",
    "elapsed",
    "length",
    "expired",
    "request",
    "origin",
    "requests",
    "stale_age",
    "age_cap",
    "stale_while_revalidate",
    "set_aside",
    "copies",
    "reply",
    "stored_after",
    "collapsed",
    "detail",
];

/// When every stored response arrives: Sun, 06 Nov 1994 08:49:37 GMT.
pub(crate) const RECEIVED: HttpDate = HttpDate::from_unix_seconds(784_111_777);

/// A message: the method or status, and its fields.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) start: String,
    pub(crate) headers: HeaderMap,
}

impl Message {
    pub(crate) fn of(value: &Value) -> Self {
        let mut lines = value
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line.as_str().unwrap());
        let start = lines.next().unwrap().to_owned();
        let mut headers = HeaderMap::new();
        for line in lines {
            let (name, value) = line
                .split_once(':')
                .unwrap_or_else(|| panic!("{line:?} is no field"));
            let name: HeaderName = name.trim().parse().unwrap();
            headers.append(name, HeaderValue::from_bytes(value.trim().as_bytes()).unwrap());
        }
        Self { start, headers }
    }

    pub(crate) fn method(&self) -> Method {
        Method::from_bytes(self.start.as_bytes()).unwrap()
    }

    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.start.parse().unwrap()).unwrap()
    }
}

/// One of several stored copies, oldest first.
#[derive(Clone, Debug)]
pub(crate) struct CopyGiven {
    pub(crate) fetched_by: Message,
    pub(crate) response: Message,
}

/// The situation a vector describes.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) sharing: Sharing,
    pub(crate) targets: Vec<HeaderName>,
    pub(crate) ignored_cookies: Vec<String>,
    pub(crate) heuristic: Heuristic,
    pub(crate) fetched_by: Message,
    pub(crate) response: Option<Message>,
    pub(crate) delay: Duration,
    pub(crate) elapsed: Duration,
    pub(crate) length: u64,
    pub(crate) expired: bool,
    pub(crate) request: Message,
    pub(crate) origin: Origin,
    pub(crate) requests: RequestSay,
    pub(crate) stale_age: Option<Duration>,
    pub(crate) age_cap: Option<Duration>,
    pub(crate) stale_while_revalidate: Option<Duration>,
    pub(crate) set_aside: Vec<Prohibition>,
    pub(crate) copies: Vec<CopyGiven>,
    pub(crate) reply: Option<Message>,
    /// The status of the dependency's answer, if one came.
    pub(crate) received_status: Option<StatusCode>,
    pub(crate) stored_after: bool,
    pub(crate) collapsed: Option<bool>,
    pub(crate) detail: Option<String>,
}

impl Given {
    pub(crate) fn of(vector: &Table) -> Self {
        let get = Message {
            start: "GET".to_owned(),
            headers: HeaderMap::new(),
        };
        let message = |key: &str| vector.get(key).map(Message::of);
        let word = |key: &str, default: &str| vector.get(key).map_or_else(|| default.to_owned(), text);
        let flag = |key: &str| vector.get(key).map(|flag| flag.as_bool().unwrap());
        let words = |key: &str| vector.get(key).map_or_else(Vec::new, lines);
        Self {
            sharing: match word("sharing", "shared").as_str() {
                "shared" => Sharing::Shared,
                "private" => Sharing::Private,
                other => panic!("sharing {other:?}"),
            },
            targets: words("targets")
                .iter()
                .map(|name| name.parse().unwrap())
                .collect(),
            ignored_cookies: words("ignored_cookies"),
            heuristic: seconds(vector, "heuristic").map_or(Heuristic::OFF, Heuristic::a_tenth_up_to),
            fetched_by: message("fetched_by").unwrap_or_else(|| get.clone()),
            response: message("response"),
            delay: seconds(vector, "delay").unwrap_or_default(),
            elapsed: seconds(vector, "elapsed").unwrap_or_default(),
            length: vector
                .get("length")
                .map_or(0, |length| length.as_integer().unwrap().try_into().unwrap()),
            expired: flag("expired").unwrap_or(false),
            request: message("request").unwrap_or(get),
            origin: match word("origin", "not-asked").as_str() {
                "not-asked" => Origin::NotAsked,
                "no-answer" => Origin::NoAnswer,
                code => Origin::answered(StatusCode::from_u16(code.parse().unwrap()).unwrap()),
            },
            requests: match word("requests", "before-asking").as_str() {
                "ignored" => RequestSay::Ignored,
                "before-asking" => RequestSay::BeforeAsking,
                "always" => RequestSay::Always,
                other => panic!("requests {other:?}"),
            },
            stale_age: seconds(vector, "stale_age"),
            age_cap: seconds(vector, "age_cap"),
            stale_while_revalidate: seconds(vector, "stale_while_revalidate"),
            set_aside: words("set_aside").iter().map(|word| prohibition(word)).collect(),
            copies: vector.get("copies").map_or_else(Vec::new, copies),
            reply: message("reply"),
            received_status: word("origin", "").parse().ok(),
            stored_after: flag("stored_after").unwrap_or(false),
            collapsed: flag("collapsed"),
            detail: vector.get("detail").map(text),
        }
    }

    pub(crate) fn terms(&self) -> Terms<'_> {
        Terms {
            sharing: self.sharing,
            requests: self.requests,
            stale_age: self.stale_age,
            age_cap: self.age_cap,
            stale_while_revalidate: self.stale_while_revalidate,
            set_aside: &self.set_aside,
        }
    }

    pub(crate) fn head(&self) -> ResponseHead<'_> {
        let response = self.response.as_ref().expect("the vector needs a response");
        ResponseHead::targeted(response.status(), &response.headers, &self.targets)
    }

    pub(crate) fn age(&self) -> Duration {
        let on_receipt = corrected_initial_age(self.head().headers, RECEIVED, self.delay);
        current_age(on_receipt, self.elapsed)
    }

    pub(crate) fn facts(&self, message: &Message) -> RequestFacts {
        RequestFacts::of(&message.method(), &message.headers, &self.ignored_cookies)
    }
}

/// Writes any value as one text: lists joined by " | ".
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(_) => lines(value).join(" | "),
        Value::Integer(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => panic!("{value:?} is no value of a vector"),
    }
}

fn lines(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(text).collect()
}

fn seconds(vector: &Table, key: &str) -> Option<Duration> {
    let value = vector.get(key)?;
    let fraction = value.as_float().map(Duration::from_secs_f64);
    Some(fraction.unwrap_or_else(|| Duration::from_secs(value.as_integer().unwrap().try_into().unwrap())))
}

fn prohibition(word: &str) -> Prohibition {
    Prohibition::ALL
        .into_iter()
        .find(|prohibition| prohibition.as_str() == word)
        .unwrap_or_else(|| panic!("{word:?} is no prohibition"))
}

fn copies(value: &Value) -> Vec<CopyGiven> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|copy| {
            let copy = copy.as_table().unwrap();
            CopyGiven {
                fetched_by: Message::of(&copy["fetched_by"]),
                response: Message::of(&copy["response"]),
            }
        })
        .collect()
}
