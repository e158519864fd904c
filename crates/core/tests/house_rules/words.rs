//! Decides whether the text uses one word per thing, is finished, and is free of one machine's
//! places. A second word for a dependency sends a reader looking for a second thing. It refuses to
//! judge quotations (text in backticks, and in prose in double quotes) and files whose grammar
//! belongs to another program.

/// A word of ours and the words readers would take for something else.
const DICTIONARY: &[(&str, &[&str])] = &[
    ("dependency", &["backend", "provider"]),
    ("probe", &["canary"]),
    ("hold", &["kill switch", "kill-switch"]),
];

/// What stands for work that was not done.
const UNFINISHED: &[&str] = &["TODO", "FIXME", "unimplemented!", "todo!"];

/// Folders below which nobody else's machine has anything.
const MACHINE_PATHS: &[&str] = &["/work/", "/tmp/wt", "/root/"];

/// The files of this rule, which must name what they ban.
const OWN_FILES: &str = "crates/core/tests/house_rules/";

/// Where other products are measured and configured, in their own words.
const FOREIGN_WORDS: &str = "bench/";

/// Endings of the files written in our words. Others (`.cfg`, `.yaml`, licences) follow a foreign grammar.
const OUR_TEXT: &[&str] = &[".rs", ".md", ".toml", ".html", ".js", ".css", ".sh"];

/// Names each use of a word the dictionary replaces.
pub(crate) fn banned(path: &str, text: &str) -> Vec<String> {
    if !is_our_text(path) || path.starts_with(FOREIGN_WORDS) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (number, line) in spoken_lines(path, text) {
        let line = line.to_lowercase();
        for (ours, theirs) in DICTIONARY {
            for word in theirs.iter().filter(|word| has_word(&line, word)) {
                problems.push(format!(":{number}: says `{word}`; the word here is `{ours}`"));
            }
        }
    }
    problems
}

/// Names each mark of work left for later.
pub(crate) fn unfinished(path: &str, text: &str) -> Vec<String> {
    if !is_our_text(path) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (number, line) in spoken_lines(path, text) {
        for mark in UNFINISHED.iter().filter(|mark| has_word(&line, mark)) {
            problems.push(format!(
                ":{number}: says `{mark}`; finish it, or leave it out and say so in the docs"
            ));
        }
    }
    problems
}

/// Names each path that exists on one machine only. Quotations do not excuse it, nor does the kind of file.
pub(crate) fn machine_paths(path: &str, text: &str) -> Vec<String> {
    if path.starts_with(OWN_FILES) {
        return Vec::new();
    }
    let mut problems = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for place in MACHINE_PATHS {
            // `https://host/work/` and `docs/work/` are not paths of a machine.
            let inside_path = |before: char| before.is_alphanumeric() || "/.-_}*".contains(before);
            let absolute = |(at, _)| !line.split_at(at).0.ends_with(inside_path);
            if line.match_indices(place).any(absolute) {
                problems.push(format!(
                    ":{}: names `{place}`; use a path below the root",
                    index + 1
                ));
            }
        }
    }
    problems
}

fn is_our_text(path: &str) -> bool {
    let ours = OUR_TEXT.iter().any(|ending| path.ends_with(ending)) || path == "check";
    ours && !path.starts_with(OWN_FILES)
}

/// Returns the numbered lines of `text` without their quotations.
fn spoken_lines(path: &str, text: &str) -> Vec<(usize, String)> {
    let prose = path.ends_with(".md");
    let mut fenced = false;
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if prose && line.trim_start().starts_with("```") {
            fenced = !fenced;
        }
        // A string in code is text that somebody will read; in prose, quotes mean others' words.
        let marks: &[char] = if prose && !fenced { &['`', '"'] } else { &['`'] };
        lines.push((index + 1, without_quotations(line, marks)));
    }
    lines
}

/// Cuts out what stands between a pair of the same quotation mark on one line.
fn without_quotations(line: &str, marks: &[char]) -> String {
    let mut spoken = String::new();
    let mut rest = line;
    while let Some(open) = rest.find(marks) {
        let (before, quoted) = rest.split_at(open);
        let mut quoted = quoted.chars();
        let mark = quoted.next().unwrap_or_default();
        let inside = quoted.as_str();
        spoken.push_str(before);
        spoken.push(' ');
        // A mark without a partner, such as an inch, quotes nothing.
        rest = inside.split_once(mark).map_or(inside, |(_, after)| after);
    }
    spoken.push_str(rest);
    spoken
}

/// Returns whether `word`, or its plural, stands in `line` as a word of its own.
fn has_word(line: &str, word: &str) -> bool {
    let joins = |letter: char| letter.is_alphanumeric() || letter == '_';
    // A mark that ends in `!` is complete whatever follows it.
    let complete = word.ends_with('!');
    line.match_indices(word).any(|(at, _)| {
        let (before, found) = line.split_at(at);
        let after = found.strip_prefix(word).unwrap_or(found);
        let after = after.strip_prefix('s').unwrap_or(after);
        !before.ends_with(joins) && (complete || !after.starts_with(joins))
    })
}

#[test]
fn a_banned_word_fails_with_its_line_and_the_word_to_use() {
    let found = banned("README.md", "fine\nthe Backends fail\n");
    assert_eq!(found, [":2: says `backend`; the word here is `dependency`"]);
    for (_, theirs) in DICTIONARY {
        for word in *theirs {
            assert_eq!(
                banned("crates/core/src/a.rs", &format!("// a {word} here")).len(),
                1,
                "{word}"
            );
        }
    }
}

#[test]
fn an_error_text_is_not_a_quotation_but_a_code_word_is() {
    assert_eq!(
        banned("crates/core/src/a.rs", "let text = \"backend down\";").len(),
        1
    );
    assert_eq!(
        banned("crates/core/src/a.rs", "// proxies call it a `backend`"),
        Vec::<String>::new()
    );
    assert_eq!(
        banned("docs/guide/a.md", "what others call \"a kill switch\" is a hold"),
        Vec::<String>::new()
    );
    assert_eq!(banned("docs/guide/a.md", "```sh\necho \"backend\"\n```").len(), 1);
}

#[test]
fn a_word_inside_another_word_passes() {
    assert_eq!(
        banned("crates/gateway/src/a.rs", "CryptoProvider default_provider"),
        Vec::<String>::new()
    );
}

#[test]
fn other_products_keep_their_words() {
    assert_eq!(banned("bench/peers/a.md", "its backend"), Vec::<String>::new());
    assert_eq!(
        banned("docs/examples/haproxy.cfg", "backend api"),
        Vec::<String>::new()
    );
}

#[test]
fn each_mark_of_unfinished_work_fails() {
    for mark in UNFINISHED {
        assert_eq!(
            unfinished("bench/src/a.rs", &format!("    {mark}(\"later\")")).len(),
            1,
            "{mark}"
        );
    }
    assert_eq!(
        unfinished("crates/core/src/a.rs", "let MASTODON = 1;"),
        Vec::<String>::new()
    );
}

#[test]
fn each_machine_path_fails_even_when_quoted() {
    for place in MACHINE_PATHS {
        assert_eq!(
            machine_paths("a.yaml", &format!("dir: \"{place}/x\"")).len(),
            1,
            "{place}"
        );
    }
    assert_eq!(
        machine_paths("a.md", "https://example.org/work/ and docs/work/a"),
        Vec::<String>::new()
    );
}
