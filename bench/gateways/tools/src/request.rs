//! Decides where a request ends and what it asks for.
//!
//! It exists so that the origins read requests alike, at little cost. It refuses everything
//! but GET without a body.

/// Longest request head in bytes; a longer one closes the connection.
pub const HEAD_LEN_MAX: usize = 16 * 1024;

/// Returns the length of the first whole head, its empty line included.
///
/// ```
/// use gateway_bench_tools::request::head_len;
///
/// assert_eq!(head_len(b"GET / HTTP/1.1\r\n\r\nGET"), Some(18));
/// assert_eq!(head_len(b"GET / HTTP/1.1\r\n"), None);
/// ```
#[must_use]
pub fn head_len(input: &[u8]) -> Option<usize> {
    let end = b"\r\n\r\n";
    input
        .windows(end.len())
        .position(|window| window == end)
        .map(|start| start + end.len())
}

/// Returns the request target, or `None` for anything but GET.
#[must_use]
pub fn target(input: &[u8]) -> Option<&[u8]> {
    input.strip_prefix(b"GET ")?.split(|byte| *byte == b' ').next()
}
