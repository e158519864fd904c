//! The page of the administration port says what the code does.

use std::collections::BTreeSet;

use evenkeel_gateway::{
    admin::{ENDPOINTS, TOKEN_MIN},
    config::units::show_duration,
    steering::{HOLD_DEFAULT, HOLD_MAX, WORDS_MAX},
};

const PAGE: &str = include_str!("../../../../docs/reference/admin.md");

#[test]
fn the_page_of_the_administration_port_has_exactly_its_addresses() {
    let written: BTreeSet<&str> = PAGE
        .lines()
        .filter(|line| line.starts_with("| `GET ") || line.starts_with("| `POST "))
        .collect();
    let known: Vec<String> = ENDPOINTS
        .iter()
        .map(|known| {
            let token = if known.token { "yes" } else { "no" };
            let body = match known.body_max {
                0 => "-".to_owned(),
                bytes if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
                bytes => format!("{} KiB", bytes >> 10),
            };
            format!(
                "| `{} {}` | {token} | {body} | {} |",
                known.method, known.path, known.what
            )
        })
        .collect();
    let expected: BTreeSet<&str> = known.iter().map(String::as_str).collect();
    assert_eq!(written, expected, "the rows should read:\n{}", known.join("\n"));
}

#[test]
fn the_bounds_on_the_page_are_those_in_force() {
    for part in [
        format!(
            "1s to {}, `\"{}\"` when left out",
            show_duration(HOLD_MAX),
            show_duration(HOLD_DEFAULT)
        ),
        format!("each 1 to {WORDS_MAX} characters"),
    ] {
        assert!(PAGE.contains(&part), "{part}");
    }
    let contract = include_str!("../../../../docs/reference/contract.md");
    assert!(contract.contains(&format!("{TOKEN_MIN} to 4096 characters")));
}
