//! Decides what a gRPC status code means.
//! It exists apart from any gRPC client: the codes are numbers of the protocol, and every client has them.
//! It refuses to read messages and details: their text is nobody's contract.

use evenkeel_core::{Class, Outage};

/// Classifies a gRPC status code. Total: a code that gRPC does not define is an UNKNOWN, as the protocol says.
///
/// | code | class | why |
/// |---|---|---|
/// | 0 OK | answer | |
/// | 1 CANCELLED | outage, cut | whoever cancels here drops the call and sees no status: this one was ended over there, while its caller still waited |
/// | 2 UNKNOWN | outage, error answer | the handler broke and said no more, as HTTP's 500 |
/// | 3 INVALID_ARGUMENT | refusal | |
/// | 4 DEADLINE_EXCEEDED | outage, timed out | |
/// | 5 NOT_FOUND | gone | the thing is not there; a service that is not there is UNIMPLEMENTED or UNAVAILABLE |
/// | 6 ALREADY_EXISTS | refusal | |
/// | 7 PERMISSION_DENIED | refusal | |
/// | 8 RESOURCE_EXHAUSTED | busy | a quota, or no room: asking less is what helps, as with HTTP's 429 |
/// | 9 FAILED_PRECONDITION | refusal | |
/// | 10 ABORTED | refusal | a conflict with somebody else's change, which is an answer; what is to be repeated is more than this call |
/// | 11 OUT_OF_RANGE | refusal | |
/// | 12 UNIMPLEMENTED | refusal | as HTTP's 501 |
/// | 13 INTERNAL | outage, error answer | as HTTP's 500 |
/// | 14 UNAVAILABLE | outage, failed | |
/// | 15 DATA_LOSS | fault | old data would hide that the original is damaged, for as long as it may be served: somebody has to see it |
/// | 16 UNAUTHENTICATED | refusal | |
/// | any other | outage, error answer | as UNKNOWN |
///
/// ```
/// use evenkeel::{Class, Outage, classify};
/// assert_eq!(classify::grpc(14), Class::OUTAGE);
/// assert_eq!(classify::grpc(4), Class::Outage(Outage::TimedOut));
/// assert_eq!(classify::grpc(8), Class::Busy);
/// ```
#[must_use]
pub const fn grpc(code: i32) -> Class {
    match code {
        0 => Class::Answer,
        1 => Class::Outage(Outage::Cut),
        3 | 6 | 7 | 9..=12 | 16 => Class::Refusal,
        4 => Class::Outage(Outage::TimedOut),
        5 => Class::Gone,
        8 => Class::Busy,
        14 => Class::OUTAGE,
        15 => Class::Fault,
        _ => Class::Outage(Outage::ErrorAnswer), // 2, 13, and what gRPC does not define
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_the_class_that_its_row_says() {
        let (refusal, error_answer) = (Class::Refusal, Class::Outage(Outage::ErrorAnswer));
        for (code, name, class) in [
            (0, "OK", Class::Answer),
            (1, "CANCELLED", Class::Outage(Outage::Cut)),
            (2, "UNKNOWN", error_answer),
            (3, "INVALID_ARGUMENT", refusal),
            (4, "DEADLINE_EXCEEDED", Class::Outage(Outage::TimedOut)),
            (5, "NOT_FOUND", Class::Gone),
            (6, "ALREADY_EXISTS", refusal),
            (7, "PERMISSION_DENIED", refusal),
            (8, "RESOURCE_EXHAUSTED", Class::Busy),
            (9, "FAILED_PRECONDITION", refusal),
            (10, "ABORTED", refusal),
            (11, "OUT_OF_RANGE", refusal),
            (12, "UNIMPLEMENTED", refusal),
            (13, "INTERNAL", error_answer),
            (14, "UNAVAILABLE", Class::OUTAGE),
            (15, "DATA_LOSS", Class::Fault),
            (16, "UNAUTHENTICATED", refusal),
            (17, "undefined", error_answer),
            (-1, "undefined", error_answer),
            (i32::MAX, "undefined", error_answer),
        ] {
            assert_eq!(grpc(code), class, "{code} {name}");
        }
    }
}
