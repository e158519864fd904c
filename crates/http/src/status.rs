//! Decides what a status code means to a cache and to a gateway: is it an error that old data may stand in
//! for, may it be kept, does it have a body.
//! It exists so that these sets are written down once, next to the sections that define them.
//! It refuses to classify transport failures; those have no status and belong to the engine.

use http::{Method, StatusCode};

/// Tells whether a status is in the error set of RFC 5861 §4: exactly 500, 502, 503 and 504.
///
/// Every other status, 501, 505, 507 and 429 included, is an answer that old data must not hide (rule X4).
///
/// ```
/// use evenkeel_http::status::in_error_set;
/// use http::StatusCode;
///
/// assert!(in_error_set(StatusCode::BAD_GATEWAY));
/// assert!(!in_error_set(StatusCode::NOT_IMPLEMENTED));
/// ```
#[must_use]
pub const fn in_error_set(status: StatusCode) -> bool {
    matches!(status.as_u16(), 500 | 502 | 503 | 504)
}

/// Tells whether a status may be stored without explicit freshness (RFC 9110 §15.1).
///
/// 206 is in that list too; whether partial content may be kept is decided by [`crate::store_rules`], which
/// refuses it.
#[must_use]
pub const fn heuristically_cacheable(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 206 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// Tells whether the caching requirements of a status are known here, as `must-understand` asks (RFC 9111
/// §5.2.2.3).
///
/// 206 and 304 are absent on purpose: keeping them needs combining, which is not done.
#[must_use]
pub const fn understood(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200..=205
            | 300..=303
            | 307..=308
            | 400..=410
            | 412..=417
            | 421..=422
            | 426
            | 428..=429
            | 431
            | 451
            | 500..=505
            | 511
    )
}

/// Tells whether a message with this status to this method carries a body (rule H17; RFC 9112 §6.3).
///
/// False for any answer to HEAD, and for 1xx, 204 and 304, whatever the header fields say. A 2xx to CONNECT
/// has none either.
#[must_use]
pub fn has_body(method: &Method, status: StatusCode) -> bool {
    let bodiless_status = status.is_informational() || matches!(status.as_u16(), 204 | 304);
    let tunnel = *method == Method::CONNECT && status.is_success();
    *method != Method::HEAD && !bodiless_status && !tunnel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matching(test: impl Fn(StatusCode) -> bool) -> Vec<u16> {
        (100..600)
            .filter(|code| StatusCode::from_u16(*code).is_ok_and(&test))
            .collect()
    }

    #[test]
    fn x4_the_error_set_is_exactly_four_statuses() {
        assert_eq!(matching(in_error_set), [500, 502, 503, 504]);
    }

    #[test]
    fn c01_the_heuristically_cacheable_statuses_are_those_of_rfc_9110() {
        assert_eq!(
            matching(heuristically_cacheable),
            [200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501]
        );
    }

    #[test]
    fn c01_partial_and_not_modified_are_not_understood() {
        let known = matching(understood);
        assert!(known.contains(&200) && known.contains(&503));
        for code in [206, 304, 299, 599, 100, 101] {
            assert!(!known.contains(&code), "{code}");
        }
    }

    #[test]
    fn h17_no_body_for_head_1xx_204_and_304() {
        let get = matching(|status| !has_body(&Method::GET, status));
        assert_eq!(get, (100..200).chain([204, 304]).collect::<Vec<_>>());
        assert_eq!(matching(|status| has_body(&Method::HEAD, status)), [0_u16; 0]);
        assert!(!has_body(&Method::CONNECT, StatusCode::OK));
        assert!(has_body(&Method::CONNECT, StatusCode::BAD_GATEWAY));
    }
}
