//! The reference page of problem types says what the code says.

use evenkeel_http::problem::ProblemKind;

const PAGE: &str = include_str!("../../../docs/reference/problems.md");

const INTRODUCTION: &str = "\
# Problem types

Every answer that the gateway makes itself because of an error is `application/problem+json` (RFC 9457), with `Cache-Control: no-store`. Error
answers of a dependency pass through as they are. Besides `type`, `title` and `status` a problem may carry:

| member | what it says |
|---|---|
| `detail` | what helps with this request |
| `instance` | this occurrence |
| `reason` | the reason word: the trigger that kept the answer from being live |
| `skipped` | each rung that was not used: `rung`, and `why` |
| `retry_after_seconds` | the same number as in `Retry-After` |
| `operation_id`, `status_url` | the operation, and where to ask about it |

The text of `title` and `detail` is for people; programs go by `type` and `reason`.
";

fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    for kind in ProblemKind::ALL {
        let retry_after = if kind.has_retry_after() {
            ", with `Retry-After`"
        } else {
            ""
        };
        let (word, uri, status) = (kind.word(), kind.type_uri(), kind.status());
        let (title, meaning) = (kind.title(), kind.meaning());
        page.push_str(&format!(
            "\n## {word}\n\n`{uri}` · {status}{retry_after}\n\n**{title}.** {meaning}\n"
        ));
    }
    page
}

#[test]
fn pd3_every_type_is_documented_as_it_is_in_the_code() {
    let expected = page();
    assert!(
        PAGE == expected,
        "docs/reference/problems.md is out of date; it should read:\n{expected}"
    );
}
