//! Random answers: whether a second request is answered from the first one's copy, by RFC 9111 in short.
//! Ages come from `Age` and `Date`, and no limit lies within 20 seconds of an age.
//! It leaves out what a cache may choose, such as guesses on the word of `public` alone.

use std::fmt::Write as _;

use super::Dice;
use crate::script::{self, Script};

/// How many scripts are made.
pub(crate) const CASES: usize = 1500;

/// One answer, the request that fetched it, and the next one.
#[derive(Clone, Debug, Default)]
struct Case {
    status: u16,
    no_store: bool,
    private: bool,
    public: bool,
    no_cache: bool,
    must_revalidate: bool,
    must_understand: bool,
    max_age: Option<i64>,
    s_maxage: Option<i64>,
    /// Seconds after `Date`.
    expires: Option<i64>,
    age: Option<i64>,
    /// How many seconds `Date` lies back.
    date: i64,
    has_last_modified: bool,
    vary: &'static str,
    first: Asks,
    second: Asks,
}

#[derive(Clone, Debug, Default)]
struct Asks {
    authorization: bool,
    foo: bool,
    cache_control: &'static str,
    pragma: bool,
}

/// Statuses that RFC 9110 §15.1 lets a cache reuse on a guess.
const GUESSED: [u16; 6] = [200, 203, 204, 301, 404, 410];

/// Returns the scripts of a seed.
pub(crate) fn scripts(seed: u64) -> Vec<Script> {
    let mut dice = Dice(seed);
    let mut text = String::new();
    for number in 0..CASES {
        let case = Case::rolled(&mut dice);
        case.write(number, &mut text);
    }
    script::parse("model", &text).unwrap_or_else(|problem| panic!("{problem}"))
}

impl Case {
    fn rolled(dice: &mut Dice) -> Self {
        let lifetimes = [None, None, Some(0), Some(100), Some(1000)];
        let mut case = Self {
            status: dice.of(&[200, 200, 200, 203, 204, 299, 301, 302, 404, 410, 500, 599]),
            no_store: dice.one_in(12),
            private: dice.one_in(12),
            public: dice.one_in(4),
            no_cache: dice.one_in(10),
            must_revalidate: dice.one_in(5),
            must_understand: dice.one_in(10),
            max_age: dice.of(&lifetimes),
            s_maxage: dice.of(&lifetimes),
            expires: dice.of(&[None, None, Some(-100), Some(100), Some(1000)]),
            age: dice.of(&[None, None, Some(0), Some(50), Some(500)]),
            date: dice.of(&[0, 0, 50, 500]),
            has_last_modified: dice.one_in(3),
            vary: dice.of(&["", "", "foo", "foo, bar", "*"]),
            first: Asks {
                authorization: dice.one_in(5),
                foo: dice.one_in(2),
                cache_control: dice.of(&["", "", "", "", "", "no-store", "no-cache"]),
                pragma: false,
            },
            second: Asks {
                authorization: false,
                foo: dice.one_in(2),
                cache_control: dice.of(&["", "", "", "no-cache", "max-age=0", "max-age=200", "min-fresh=75"]),
                pragma: dice.one_in(10),
            },
        };
        case.second.authorization = case.first.authorization && dice.one_in(2);
        if !GUESSED.contains(&case.status) && case.lifetime().is_none() {
            // Whether `public` alone permits a guess is the cache's choice.
            case.public = false;
        }
        case
    }

    /// Whether the second request is answered without asking.
    fn is_reused(&self) -> bool {
        self.is_stored() && self.fits() && self.is_good_enough()
    }

    /// RFC 9111 §3.
    fn is_stored(&self) -> bool {
        let is_known = ![299, 599].contains(&self.status);
        let may_be_understood = !self.must_understand || is_known;
        let no_store = self.no_store && !(self.must_understand && is_known);
        let for_all = self.public || self.s_maxage.is_some() || self.must_revalidate;
        may_be_understood
            && !no_store
            && !self.private
            && self.first.cache_control != "no-store"
            && (for_all || !self.first.authorization)
            && self.vary != "*"
    }

    /// RFC 9111 §4.1.
    fn fits(&self) -> bool {
        self.vary.is_empty() || self.first.foo == self.second.foo
    }

    /// RFC 9111 §4, §4.2, §5.2.1 and §5.4.
    fn is_good_enough(&self) -> bool {
        let age = self.age.unwrap_or(0).max(self.date);
        let Some(left) = self.lifetime().map(|lifetime| lifetime - age) else {
            return false;
        };
        let accepted = match self.second.cache_control {
            "" => !self.second.pragma,
            "max-age=200" => age <= 200,
            "min-fresh=75" => left >= 75,
            _ => false,
        };
        left > 0 && accepted && !self.no_cache
    }

    /// RFC 9111 §4.2.1 and §4.2.2; the guess is a day, because a tenth of the time since the change is more.
    fn lifetime(&self) -> Option<i64> {
        let guess = (self.has_last_modified && GUESSED.contains(&self.status)).then_some(86_400);
        self.s_maxage.or(self.max_age).or(self.expires).or(guess)
    }

    fn write(&self, number: usize, text: &mut String) {
        let mut answer = vec![self.status.to_string(), format!("date: {{now-{}}}", self.date)];
        let directives = self.directives().join(", ");
        if !directives.is_empty() {
            answer.push(format!("cache-control: {directives}"));
        }
        if let Some(expires) = self.expires {
            answer.push(format!("expires: {{now{:+}}}", expires - self.date));
        }
        answer.extend(self.age.map(|age| format!("age: {age}")));
        if self.has_last_modified {
            answer.push("last-modified: {start-9000000}".to_owned());
        }
        if !self.vary.is_empty() {
            answer.push(format!("vary: {}", self.vary));
        }
        let then = match self.is_reused() {
            true => "from = 1",
            false => "answer = ['200', 'cache-control: no-store']",
        };
        let (first, second) = (self.first.lines(), self.second.lines());
        let result = writeln!(
            text,
            "[[script]]\nname = 'model {number}: {answer:?} for {first:?}, then {second:?}'\nrule = 'C01'\n\
             steps = [{{ request = {first:?}, answer = {answer:?} }}, {{ request = {second:?}, {then} }}]"
        );
        result.expect("a text takes what is written to it");
    }

    fn directives(&self) -> Vec<String> {
        let flags = [
            (self.no_store, "no-store"),
            (self.private, "private"),
            (self.public, "public"),
            (self.no_cache, "no-cache"),
            (self.must_revalidate, "must-revalidate"),
            (self.must_understand, "must-understand"),
        ];
        let flags = flags
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, name)| name.to_owned());
        let max_age = self.max_age.map(|seconds| format!("max-age={seconds}"));
        let s_maxage = self.s_maxage.map(|seconds| format!("s-maxage={seconds}"));
        flags.chain(max_age).chain(s_maxage).collect()
    }
}

impl Asks {
    fn lines(&self) -> Vec<String> {
        let lines = [
            (true, "GET".to_owned()),
            (self.authorization, "authorization: Basic YTpi".to_owned()),
            (self.foo, "foo: 1".to_owned()),
            (
                !self.cache_control.is_empty(),
                format!("cache-control: {}", self.cache_control),
            ),
            (self.pragma, "pragma: no-cache".to_owned()),
        ];
        lines
            .into_iter()
            .filter(|(set, _)| *set)
            .map(|(_, line)| line)
            .collect()
    }
}
