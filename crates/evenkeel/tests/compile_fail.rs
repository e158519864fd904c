//! What must not compile: half a contract, a call that does not say whose data it means, errors nobody can copy, a door with something that
//! stands in for its authority.

#[test]
fn dangerous_uses_do_not_compile() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_fail/the_right_use.rs");
    cases.compile_fail("tests/compile_fail/without_classifier.rs");
    cases.compile_fail("tests/compile_fail/without_scope.rs");
    cases.compile_fail("tests/compile_fail/bare_scope.rs");
    cases.compile_fail("tests/compile_fail/swapped_scope.rs");
    cases.compile_fail("tests/compile_fail/coalesce_without_clone.rs");
}

#[test]
fn a_door_has_no_method_for_anything_that_could_stand_in() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/compile_fail/protect_the_right_use.rs");
    cases.compile_fail("tests/compile_fail/protect_[!t]*.rs");
}
