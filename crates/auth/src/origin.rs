//! Own origins: whether a browser's request comes from a page of this server (RFC 6454, Fetch).

/// The origin of a request as its headers tell it.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOrigin<'a> {
    /// `Origin`.
    pub origin: Option<&'a str>,
    /// `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
    /// `Host`.
    pub host: Option<&'a str>,
}

impl<'a> RequestOrigin<'a> {
    /// Returns true if the request comes from a page of this server.
    ///
    /// The origin's authority must equal `Host`. Browsers send `Origin` with every write; without one,
    /// `Sec-Fetch-Site` must say so, which no script can set.
    #[must_use]
    pub fn is_own(self) -> bool {
        match self.origin {
            Some(origin) => {
                let Some((scheme, authority)) = parts(origin) else { return false };
                let own = self.host.map(|host| without_default_port(scheme, host));
                own.is_some_and(|own| {
                    own.eq_ignore_ascii_case(without_default_port(scheme, authority))
                })
            }
            None => self.fetch_site == Some("same-origin"),
        }
    }

    /// Returns true if the page was loaded over TLS.
    #[must_use]
    pub fn is_secure(self) -> bool {
        self.origin.and_then(parts).is_some_and(|(scheme, _)| scheme == "https")
    }

    /// Returns the port in `Host`, if it has one.
    #[must_use]
    pub fn port(self) -> Option<u16> {
        let (_, port) = self.host?.rsplit_once(':')?;
        port.parse().ok()
    }
}

/// Splits an origin into its scheme and authority. `null` has neither.
fn parts(origin: &str) -> Option<(&str, &str)> {
    let (scheme, authority) = origin.split_once("://")?;
    matches!(scheme, "http" | "https").then_some((scheme, authority))
}

fn without_default_port<'a>(scheme: &str, authority: &'a str) -> &'a str {
    let port = if scheme == "https" { ":443" } else { ":80" };
    authority.strip_suffix(port).unwrap_or(authority)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_own(origin: Option<&str>, fetch_site: Option<&str>, host: &str) -> bool {
        RequestOrigin { origin, fetch_site, host: Some(host) }.is_own()
    }

    #[test]
    fn only_pages_of_this_server_are_own() {
        assert!(is_own(Some("http://127.0.0.1:8733"), None, "127.0.0.1:8733"));
        assert!(is_own(Some("https://Board.example.org"), None, "board.example.org"));
        assert!(is_own(Some("https://board.example.org"), None, "board.example.org:443"));
        assert!(is_own(Some("http://[::1]:8733"), None, "[::1]:8733"));
        assert!(is_own(None, Some("same-origin"), "127.0.0.1:8733"));
        for foreign in
            ["null", "", "http://127.0.0.1:8734", "http://localhost:8733", "file://127.0.0.1:8733"]
        {
            assert!(!is_own(Some(foreign), Some("same-origin"), "127.0.0.1:8733"), "{foreign}");
        }
        assert!(!is_own(Some("https://board.example.org.evil.example"), None, "board.example.org"));
        for site in ["same-site", "cross-site", "none"] {
            assert!(!is_own(None, Some(site), "127.0.0.1:8733"), "{site}");
        }
        assert!(!is_own(None, None, "127.0.0.1:8733"));
    }

    #[test]
    fn the_port_is_that_of_the_host() {
        let port = |host| RequestOrigin { host: Some(host), ..RequestOrigin::default() }.port();
        assert_eq!(port("127.0.0.1:8733"), Some(8733));
        assert_eq!(port("board.example.org"), None);
        assert_eq!(port("[::1]:8733"), Some(8733));
        assert_eq!(port("[::1]"), None);
    }
}
