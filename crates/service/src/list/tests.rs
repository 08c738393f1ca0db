//! Tests of name ranges in session lists.

use super::*;

#[track_caller]
fn check(prefix: &str, stems: &[&str], expected: &[&str]) {
    let stems = stems.iter().map(|&stem| stem.to_owned()).collect();
    let listing = Listing { stems, ..Listing::all(prefix) };
    assert_eq!(listing.ranges(), expected, "{prefix:?} {stems:?}", stems = listing.stems);
}

#[test]
fn a_list_goes_through_each_range_of_names_once() {
    check("", &[""], &[""]);
    check("a", &[""], &["a"]);
    check("", &["b", "a"], &["a", "b"]);
    check("", &["ab", "a", "abc", "b", "a"], &["a", "b"]);
    check("ab", &["a", "abc", "b"], &["ab"]);
    check("ab", &["abd", "abc"], &["abc", "abd"]);
    check("c", &["a", "b"], &[]);
    check("", &[], &[]);
}
