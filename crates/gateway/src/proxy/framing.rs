//! Decides whether the head of an upstream's answer can be an answer to what was sent, and how its body ends.
//! It exists because a length that two parties read in two ways hands one client the bytes of another.
//! It refuses what could be read in two ways, and what answers a question that nobody asked.

use http::{
    HeaderMap, HeaderValue, StatusCode,
    header::{CONTENT_LENGTH, IF_MODIFIED_SINCE, IF_NONE_MATCH, RANGE, TRANSFER_ENCODING},
    response,
};

use super::trouble::Trouble;

/// Which special answers the request that was sent allows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked {
    /// A 304.
    pub(super) conditional: bool,
    /// A 206.
    pub(super) range: bool,
}

impl Asked {
    /// `whole` says that validators and ranges were not sent on.
    pub(super) fn of(request: &HeaderMap, whole: bool) -> Self {
        let sent = |name| !whole && request.contains_key(name);
        Self {
            conditional: sent(IF_NONE_MATCH) || sent(IF_MODIFIED_SINCE),
            range: sent(RANGE),
        }
    }
}

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By a length, by chunks, or by there being none.
    Known,
    /// By the end of the connection: nobody can tell whether it was cut (rule M02).
    Unknown,
}

/// Checks the head and leaves in it at most one length, the one that was read.
///
/// # Errors
/// [`Trouble::Unreadable`]: a coding other than `chunked` (none was offered, and the field ends here, so the client
/// could not undo it), a coding beside a length (RFC 9112 §6.3), lengths that differ or are no numbers (rule M03),
/// an upgrade, a 304 or a 206 that was not asked for.
pub(super) fn check(head: &mut response::Parts, asked: Asked) -> Result<End, Trouble> {
    let unasked = match head.status {
        StatusCode::NOT_MODIFIED => !asked.conditional,
        StatusCode::PARTIAL_CONTENT => !asked.range,
        status => status.is_informational(),
    };
    if unasked {
        return Err(Trouble::Unreadable);
    }
    let has_length = one_length(&mut head.headers)?;
    let mut codings = head.headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => {
            let bodiless = matches!(head.status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
            Ok(if has_length || bodiless {
                End::Known
            } else {
                End::Unknown
            })
        }
        (Some(coding), None) if !has_length && coding.as_bytes().eq_ignore_ascii_case(b"chunked") => {
            Ok(End::Known)
        }
        (Some(_), _) => Err(Trouble::Unreadable),
    }
}

/// Tells whether the body of a request is coded in the one way that is undone here: in chunks, once.
///
/// The field ends here, so behind it nobody could undo another coding (RFC 9112 §6.1, rule M03); what was coded twice in
/// chunks is read in two ways.
pub(super) fn can_be_read(request: &HeaderMap) -> bool {
    let mut codings = request.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => true,
        (Some(coding), None) => coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked"),
        (Some(_), Some(_)) => false,
    }
}

/// Collapses equal lengths, in lines or in a list, into one; tells whether there is one.
fn one_length(headers: &mut HeaderMap) -> Result<bool, Trouble> {
    let mut lines = headers.get_all(CONTENT_LENGTH).iter();
    let (Some(first), second) = (lines.next(), lines.next()) else {
        return Ok(false);
    };
    let is_number = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if second.is_none() && is_number(first.as_bytes()) {
        return Ok(true);
    }
    let mut members = headers
        .get_all(CONTENT_LENGTH)
        .iter()
        .flat_map(|line| line.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii);
    let length = members.next().unwrap_or_default().to_vec();
    if !is_number(&length) || members.any(|other| other != length) {
        return Err(Trouble::Unreadable);
    }
    let value = HeaderValue::from_bytes(&length).map_err(|_| Trouble::Unreadable)?;
    headers.insert(CONTENT_LENGTH, value);
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Response;

    const NOTHING: Asked = Asked {
        conditional: false,
        range: false,
    };

    fn head(status: u16, fields: &[(&'static str, &'static str)]) -> response::Parts {
        let mut head = Response::builder()
            .status(status)
            .body(())
            .unwrap()
            .into_parts()
            .0;
        for (name, value) in fields {
            head.headers.append(*name, HeaderValue::from_static(value));
        }
        head
    }

    fn end(status: u16, fields: &[(&'static str, &'static str)]) -> Option<End> {
        check(&mut head(status, fields), NOTHING).ok()
    }

    #[test]
    fn m03_equal_lengths_become_one_and_others_are_unusable() {
        for lines in [
            &[("content-length", "5")][..],
            &[("content-length", "5"), ("content-length", "5")],
            &[("content-length", "5, 5")],
            &[("content-length", "5 ,5"), ("content-length", "5")],
        ] {
            let mut head = head(200, lines);
            assert_eq!(check(&mut head, NOTHING).ok(), Some(End::Known), "{lines:?}");
            let left: Vec<_> = head.headers.get_all(CONTENT_LENGTH).iter().collect();
            assert_eq!(left, ["5"], "{lines:?}");
        }
        for value in ["5, 6", "5,", "", "+5", "-1", "0x5", "5 5", "05, 5"] {
            assert_eq!(end(200, &[("content-length", value)]), None, "{value}");
        }
    }

    #[test]
    fn m02_only_chunked_alone_is_a_coding_whose_end_is_known() {
        assert_eq!(end(200, &[("transfer-encoding", "chunked")]), Some(End::Known));
        assert_eq!(end(200, &[("transfer-encoding", "Chunked")]), Some(End::Known));
        assert_eq!(end(200, &[]), Some(End::Unknown));
        assert_eq!(end(204, &[]), Some(End::Known));
        for value in ["gzip", "gzip, chunked", "chunked, gzip", "identity", ""] {
            assert_eq!(end(200, &[("transfer-encoding", value)]), None, "{value}");
        }
        let both = [("transfer-encoding", "chunked"), ("content-length", "3")];
        assert_eq!(end(200, &both), None);
        let twice = [("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")];
        assert_eq!(end(200, &twice), None);
    }

    #[test]
    fn what_nobody_asked_for_is_unusable() {
        for status in [101, 206, 304] {
            assert_eq!(end(status, &[]), None, "{status}");
        }
        let request = head(200, &[("range", "bytes=0-1"), ("if-none-match", "\"a\"")]).headers;
        for status in [206, 304] {
            assert!(check(&mut head(status, &[]), Asked::of(&request, false)).is_ok());
            assert!(check(&mut head(status, &[]), Asked::of(&request, true)).is_err());
        }
    }
}
