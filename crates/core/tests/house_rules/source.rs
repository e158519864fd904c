//! Decides whether a Rust file can be held in mind: short enough, and opening with what it is.
//! Files grow one harmless line at a time, so the limit is a number and not a feeling. It refuses
//! to count what does not have to be held in mind at once: comments, blank lines and tests.

/// Most lines of code in one file; past it, split by concept.
pub(crate) const CODE_LINES_MAX: usize = 400;

/// Names a file with more than [`CODE_LINES_MAX`] lines of code.
pub(crate) fn too_long(text: &str) -> Vec<String> {
    let lines = code_lines(text);
    if lines <= CODE_LINES_MAX {
        return Vec::new();
    }
    vec![format!(
        ": {lines} lines of code, at most {CODE_LINES_MAX} are allowed; split it by concept"
    )]
}

/// Counts lines that are neither blank, nor comment, nor inside a `#[cfg(test)] mod { .. }`.
fn code_lines(text: &str) -> usize {
    let mut count = 0;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let opens_tests = lines
            .peek()
            .is_some_and(|next| next.starts_with("mod ") && next.ends_with('{'));
        if line == "#[cfg(test)]" && opens_tests {
            // rustfmt puts the brace that ends a top-level module in the first column.
            lines.by_ref().find(|line| *line == "}");
            continue;
        }
        let line = line.trim_start();
        if !line.is_empty() && !line.starts_with("//") {
            count += 1;
        }
    }
    count
}

/// Names a file that does not open with `//!` (after crate attributes, if it has any).
pub(crate) fn no_module_doc(text: &str) -> Vec<String> {
    let first = text
        .lines()
        .find(|line| !line.is_empty() && !line.starts_with("#!["))
        .unwrap_or_default();
    match first.starts_with("//! ") {
        true => Vec::new(),
        false => {
            vec![":1: opens without `//!`; say what it decides, why it exists, what it refuses to do".into()]
        }
    }
}

#[test]
fn the_length_rule_fails_one_line_past_the_limit() {
    let at_limit = "let a = 1;\n".repeat(CODE_LINES_MAX);
    assert_eq!(too_long(&at_limit), Vec::<String>::new());
    assert_eq!(too_long(&format!("{at_limit}let b = 2;\n")).len(), 1);
}

#[test]
fn comments_blank_lines_and_tests_do_not_count() {
    let text = "//! doc\n\nfn a() {\n    // why\n}\n\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n";
    assert_eq!(code_lines(text), 2);
}

#[test]
fn code_after_the_tests_counts() {
    let text = "#[cfg(test)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
    assert_eq!(code_lines(text), 1);
}

#[test]
fn tests_in_a_file_of_their_own_hide_nothing_below_them() {
    assert_eq!(code_lines("#[cfg(test)]\nmod tests;\nfn c() {}\n"), 3);
}

#[test]
fn a_file_that_opens_with_code_fails() {
    assert_eq!(no_module_doc("use core::fmt;\n//! late\n").len(), 1);
    assert_eq!(no_module_doc("").len(), 1);
    assert_eq!(no_module_doc("// a comment is not documentation\n").len(), 1);
    assert_eq!(
        no_module_doc("#![no_std]\n\n//! The engine.\n"),
        Vec::<String>::new()
    );
}
