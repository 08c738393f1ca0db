//! Media ranges of `Accept`, and the weight that they give to a media type (RFC 9110, section 12.5.1).

/// A media type with the parameters that tell its versions apart. A range that names another value of one of them does
/// not match; other parameters of a range are ignored.
#[derive(Clone, Copy, Debug)]
pub struct MediaType {
    /// Such as `text/plain`, in lower case.
    pub essence: &'static str,
    /// Names and values, in lower case.
    pub parameters: &'static [(&'static str, &'static str)],
}

impl MediaType {
    /// JSON.
    pub const JSON: Self = Self { essence: "application/json", parameters: &[] };

    /// Returns the weight that the most specific of these headers' ranges gives to the type, 0 if none matches it. `None`
    /// without any range: then everything is welcome.
    pub fn weight<'a>(&self, accept: impl IntoIterator<Item = &'a str>) -> Option<f32> {
        let ranges = accept.into_iter().flat_map(|value| value.split(','));
        let mut best = None;
        for range in ranges.map(str::trim).filter(|range| !range.is_empty()) {
            let found = self.matched(range).unwrap_or_default();
            // The specificity, then the weight.
            best =
                Some(best.map_or(found, |best: (u8, f32)| if found > best { found } else { best }));
        }
        best.map(|(_, weight)| weight)
    }

    /// Returns how specific a range is, from 1, and its weight; `None` if it does not match the type.
    fn matched(&self, range: &str) -> Option<(u8, f32)> {
        let mut parts = range.split(';').map(str::trim);
        let essence = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (family, any) = self.essence.split_once('/').unwrap_or_default();
        let mut specific = match essence.split_once('/')? {
            ("*", "*") => 1,
            (of, "*") if of == family => 2,
            (of, kind) if (of, kind) == (family, any) => 3,
            _ => return None,
        };
        let mut weight = 1.0;
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let name = name.trim().to_ascii_lowercase();
            let value = value.trim().trim_matches('"');
            let own = self.parameters.iter().find(|(own, _)| *own == name);
            match own {
                // A malformed weight is none.
                _ if name == "q" => weight = value.parse().unwrap_or(0.0),
                Some((_, own)) if own.eq_ignore_ascii_case(value) => specific += 1,
                Some(_) => return None,
                None => {}
            }
        }
        Some((specific, weight))
    }
}

#[cfg(test)]
mod tests {
    use super::MediaType;

    const TEXT: MediaType =
        MediaType { essence: "text/plain", parameters: &[("version", "0.0.4")] };

    #[test]
    fn the_most_specific_range_gives_the_weight() {
        for (accept, weight) in [
            ("", None),
            ("*/*", Some(1.0)),
            ("text/*;q=0.5, */*;q=0.1", Some(0.5)),
            ("*/*, TEXT/plain; Q=0.2", Some(0.2)),
            ("text/plain;version=0.0.4;q=0.3,text/plain;q=0.9", Some(0.3)),
            ("text/plain;version=1.0.0, */*;q=0.2", Some(0.2)),
            ("text/plain;version=\"0.0.4\";escaping=underscores", Some(1.0)),
            ("text/plain;q=0, */*", Some(0.0)),
            ("application/json", Some(0.0)),
            ("text/plain;q=much", Some(0.0)),
            ("text", Some(0.0)),
        ] {
            assert_eq!(TEXT.weight([accept]), weight, "{accept:?}");
        }
        assert_eq!(TEXT.weight(["text/html", "text/*"]), Some(1.0));
    }
}
