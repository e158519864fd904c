//! Decides what makes two calls ask for the same thing: guard, scope and key, each written with its length.
//! It exists so that parts can never run into each other and nobody gets a tenant's data under another's name.
//! It refuses an empty scope part: a missing tenant is an error, not a tenant called "".

use smallvec::SmallVec;
use std::fmt;

/// A whole key in the form in which it is looked up and compared. Short ones live on the stack.
pub(crate) type Key = SmallVec<[u8; 96]>;

/// The parts of a key that say whose data it is, such as tenant and locale.
///
/// Implemented for `()` and for tuples of up to four parts; make each part a type of your own that implements
/// `AsRef<str>` and cannot be empty, so that a call with the parts swapped or left out does not compile.
/// A `Vec<String>` serves where the parts are only known at run time.
///
/// ```
/// # use evenkeel::{Class, Engine};
/// struct Tenant(String); // made in one place, and never from an empty name
/// impl AsRef<str> for Tenant {
///     fn as_ref(&self) -> &str {
///         &self.0
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let stock = Engine::system()
///     .read::<u32>("stock")
///     .scope::<(Tenant,)>() // one part is a tuple of one
///     .classify(|_: &std::fmt::Error| Class::OUTAGE)
///     .build()?;
/// let answer = stock.call((Tenant("acme".into()),), "42", |_| async { Ok(3) }).await?;
/// assert_eq!(*answer, 3);
///
/// let nobody = stock.call((Tenant(String::new()),), "42", |_| async { Ok(3) }).await.unwrap_err();
/// assert_eq!(nobody.to_string(), "failed: fault: scope part 1 is empty; give it the name of whose data is meant");
/// # Ok(()) }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say whose data is meant",
    label = "not a scope",
    note = "one part is a tuple of one: write `({Self},)`, and let the part implement `AsRef<str>`",
    note = "a scope is `()`, a tuple of one to four parts that implement `AsRef<str>`, or a `Vec<String>`"
)]
pub trait Scope: Sync {
    /// Hands each part to `each`, in an order that is always the same.
    fn parts(&self, each: &mut dyn FnMut(&str));
}

impl Scope for () {
    fn parts(&self, _each: &mut dyn FnMut(&str)) {}
}

impl<A: AsRef<str> + Sync> Scope for (A,) {
    fn parts(&self, each: &mut dyn FnMut(&str)) {
        each(self.0.as_ref());
    }
}

impl<A: AsRef<str> + Sync, B: AsRef<str> + Sync> Scope for (A, B) {
    fn parts(&self, each: &mut dyn FnMut(&str)) {
        each(self.0.as_ref());
        each(self.1.as_ref());
    }
}

impl<A: AsRef<str> + Sync, B: AsRef<str> + Sync, C: AsRef<str> + Sync> Scope for (A, B, C) {
    fn parts(&self, each: &mut dyn FnMut(&str)) {
        each(self.0.as_ref());
        each(self.1.as_ref());
        each(self.2.as_ref());
    }
}

impl<A, B, C, D> Scope for (A, B, C, D)
where
    A: AsRef<str> + Sync,
    B: AsRef<str> + Sync,
    C: AsRef<str> + Sync,
    D: AsRef<str> + Sync,
{
    fn parts(&self, each: &mut dyn FnMut(&str)) {
        each(self.0.as_ref());
        each(self.1.as_ref());
        each(self.2.as_ref());
        each(self.3.as_ref());
    }
}

impl Scope for Vec<String> {
    fn parts(&self, each: &mut dyn FnMut(&str)) {
        for part in self {
            each(part);
        }
    }
}

/// A scope part was empty, so it is not known whose data is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EmptyScopePart {
    /// Which part, counted from one.
    pub part: usize,
}

impl fmt::Display for EmptyScopePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "scope part {} is empty; give it the name of whose data is meant",
            self.part
        )
    }
}

impl std::error::Error for EmptyScopePart {}

/// Writes the key of one call: the guard's part of it, then each scope part, then the caller's key.
pub(crate) fn write<S: Scope>(guard: &[u8], scope: &S, key: &[u8]) -> Result<Key, EmptyScopePart> {
    let mut whole = Key::new();
    write_into(&mut whole, guard, scope, key)?;
    Ok(whole)
}

/// Writes the key of one call into a place of the caller's: a key is too large to be handed about.
pub(crate) fn write_into<S: Scope>(
    whole: &mut Key,
    guard: &[u8],
    scope: &S,
    key: &[u8],
) -> Result<(), EmptyScopePart> {
    whole.extend_from_slice(guard);
    each_part(scope, |part| append(whole, part.as_bytes()))?;
    whole.push(KEY_FOLLOWS);
    whole.extend_from_slice(key);
    Ok(())
}

/// Writes a key that begins with the name of a contract.
#[cfg(feature = "http")]
pub(crate) fn write_named<S: Scope>(name: &str, scope: &S, key: &[u8]) -> Result<Key, EmptyScopePart> {
    let mut whole = Key::new();
    append(&mut whole, name.as_bytes());
    write_into(&mut whole, &[], scope, key)?;
    Ok(whole)
}

/// Ends the scope, however many parts it has. No part starts with this byte, because no length does.
const KEY_FOLLOWS: u8 = 0xff;

/// Checks the scope of a call that needs no key.
pub(crate) fn check<S: Scope>(scope: &S) -> Result<(), EmptyScopePart> {
    each_part(scope, |_| {})
}

/// Hands each part to `each`, and names the first that is empty.
fn each_part<S: Scope>(scope: &S, mut each: impl FnMut(&str)) -> Result<(), EmptyScopePart> {
    let mut parts = 0;
    let mut empty = None;
    scope.parts(&mut |part| {
        parts += 1;
        if part.is_empty() {
            empty = empty.or(Some(EmptyScopePart { part: parts }));
        }
        each(part);
    });
    empty.map_or(Ok(()), Err)
}

/// Returns the guard's own part of its keys.
pub(crate) fn of_guard(name: &str) -> Key {
    let mut key = Key::new();
    append(&mut key, name.as_bytes());
    key
}

fn append(key: &mut Key, part: &[u8]) {
    key.extend_from_slice(&(part.len() as u64).to_be_bytes());
    key.extend_from_slice(part);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn key(parts: &[&str], key: &str) -> Key {
        let scope: Vec<String> = parts.iter().map(ToString::to_string).collect();
        write(&of_guard("g"), &scope, key.as_bytes()).unwrap()
    }

    #[test]
    fn e54_parts_that_join_to_the_same_text_are_different_keys() {
        assert_ne!(key(&["ab", "c"], ""), key(&["a", "bc"], ""));
        assert_ne!(write(&of_guard("a"), &(), b"b"), write(&of_guard("ab"), &(), b""));
    }

    #[test]
    fn e54_a_key_that_looks_like_a_scope_part_is_not_taken_for_one() {
        let forged = [&1_u64.to_be_bytes()[..], b"b", b"k"].concat();
        let one: Vec<String> = vec!["a".to_owned()];
        let two: Vec<String> = vec!["a".to_owned(), "b".to_owned()];
        assert_ne!(
            write(&of_guard("g"), &one, &forged),
            write(&of_guard("g"), &two, b"k")
        );
        assert_ne!(
            write(
                &of_guard("g"),
                &one,
                &[&forged[..8], b"b", &[KEY_FOLLOWS], b"k"].concat()
            ),
            write(&of_guard("g"), &two, b"k")
        );
    }

    #[test]
    fn e52_the_check_without_a_key_finds_the_same_part() {
        assert_eq!(check(&("acme", "")), Err(EmptyScopePart { part: 2 }));
        assert_eq!(check(&("acme", "de")), Ok(()));
        assert_eq!(check(&()), Ok(()));
    }

    #[test]
    fn e52_an_empty_part_is_an_error_that_says_which() {
        let error = write(&of_guard("g"), &("acme", ""), b"k").unwrap_err();
        assert_eq!(error, EmptyScopePart { part: 2 });
        assert_eq!(
            error.to_string(),
            "scope part 2 is empty; give it the name of whose data is meant"
        );
    }

    #[test]
    fn tuples_and_lists_of_the_same_parts_write_the_same_key() {
        let guard = of_guard("g");
        assert_eq!(
            write(&guard, &("a",), b"k"),
            write(&guard, &vec!["a".to_owned()], b"k")
        );
        assert_eq!(
            write(&guard, &("a", "b", "c", "d"), b"k"),
            write(&guard, &["a", "b", "c", "d"].map(str::to_owned).to_vec(), b"k")
        );
        assert_eq!(
            write(&guard, &("a", "b", "c"), b"k").unwrap().len(),
            9 + 27 + 1 + 1
        );
    }

    type Inputs = (String, Vec<String>, Vec<u8>);

    /// Names, scopes and keys of few and short parts, so that many are alike, and of bytes that look like lengths.
    fn inputs() -> impl Strategy<Value = Inputs> {
        let key = proptest::collection::vec(
            prop_oneof![Just(0_u8), Just(1), Just(b'a'), Just(KEY_FOLLOWS)],
            0..12,
        );
        (
            "[ab]{1,2}",
            proptest::collection::vec("[ab\u{0}\u{1}]{1,3}", 0..3),
            key,
        )
    }

    proptest! {
        #[test]
        fn e54_equal_keys_come_from_equal_inputs_only(a in inputs(), b in inputs()) {
            let [one, other] = [&a, &b].map(|(guard, scope, key)| write(&of_guard(guard), scope, key));
            prop_assert_eq!(one == other, a == b);
        }

        /// What one caller hands in as a key is a whole key of somebody else, or the rest of one, cut anywhere.
        #[test]
        fn e54_no_key_forges_the_scope_or_the_guard_of_another(a in inputs(), b in inputs(), cut in 0_usize..60) {
            let target = write(&of_guard(&b.0), &b.1, &b.2).unwrap();
            let forged = &target[cut.min(target.len())..];
            let made = write(&of_guard(&a.0), &a.1, forged).unwrap();
            prop_assert_eq!(made == target, a.0 == b.0 && a.1 == b.1 && forged == b.2.as_slice());
        }
    }
}
