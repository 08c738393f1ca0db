//! Names that a client, or a person at the command line, may have meant.

/// The maximum length of a name for which a similar one is looked for, in bytes.
const GIVEN_BYTES_MAX: usize = 64;

/// Names known at a place, and the one among them that is nearest to an unknown name.
#[must_use]
pub fn known_names(given: &str, known: &[&str]) -> String {
    let mut known = known.to_vec();
    known.sort_unstable();
    known.dedup();
    let all = known.join(", ");
    match nearest(given, &known) {
        _ if known.is_empty() => "none is accepted here".to_owned(),
        Some(nearest) => format!("did you mean '{nearest}'? Known here: {all}"),
        None => format!("known here: {all}"),
    }
}

/// Returns the nearest known name: the same in another letter case, or at most a third of its letters away.
#[must_use]
pub fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    if given.len() > GIVEN_BYTES_MAX {
        return None;
    }
    let plain = given.to_lowercase();
    let near = known.iter().filter_map(|name| {
        let distance = strsim::osa_distance(&plain, &name.to_lowercase());
        let longer = plain.chars().count().max(name.chars().count());
        (distance * 3 <= longer).then_some((distance, *name))
    });
    near.min().map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested() {
        let known = ["after", "at", "before", "latest", "limit", "FINISH"];
        for (given, expected) in [
            ("last", Some("latest")),
            ("Limit", Some("limit")),
            ("limt", Some("limit")),
            ("befroe", Some("before")),
            ("finish", Some("FINISH")),
            ("DONE", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, &known), expected, "{given}");
        }
        assert_eq!(nearest(&"a".repeat(GIVEN_BYTES_MAX + 1), &known), None);
        assert_eq!(nearest("a", &[]), None);
    }
}
