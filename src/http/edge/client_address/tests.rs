//! Tests of forwarded addresses from trusted and other peers.

use axum::http::HeaderValue;

use super::*;

fn client(trusted: &str, peer: &str, forwarded: &[&'static str]) -> String {
    let trusted: TrustedProxies = trusted.parse().unwrap();
    let mut headers = HeaderMap::new();
    for value in forwarded {
        headers.append(X_FORWARDED_FOR, HeaderValue::from_static(value));
    }
    trusted.client(peer.parse().unwrap(), &headers).0.to_string()
}

#[test]
fn a_header_from_anyone_else_is_ignored() {
    assert_eq!(client("", "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
    assert_eq!(client("10.0.0.0/8", "192.0.2.1", &["198.51.100.7"]), "192.0.2.1");
    assert_eq!(client("10.0.0.0/8", "10.1.2.3", &[]), "10.1.2.3");
}

#[test]
fn the_client_is_the_nearest_address_not_trusted() {
    let trusted = "10.0.0.0/8, ::1,2001:db8::/32";
    for (forwarded, expected) in [
        (&["198.51.100.7"][..], "198.51.100.7"),
        (&["203.0.113.9, 198.51.100.7"], "198.51.100.7"),
        (&["203.0.113.9, 198.51.100.7", "10.9.9.9"], "198.51.100.7"),
        (&["203.0.113.9", "198.51.100.7 , 10.9.9.9"], "198.51.100.7"),
        (&["10.0.0.1, 10.0.0.2"], "10.0.0.1"),
        (&["198.51.100.7:4711"], "198.51.100.7"),
        (&["[2001:db9::1]:4711"], "2001:db9::1"),
        (&["[2001:db9::1]"], "2001:db9::1"),
        (&["::ffff:198.51.100.7"], "198.51.100.7"),
        (&["198.51.100.7, unknown"], "10.1.2.3"),
        (&["198.51.100.7, unknown, 10.0.0.2"], "10.0.0.2"),
    ] {
        assert_eq!(client(trusted, "10.1.2.3", forwarded), expected, "{forwarded:?}");
    }
    assert_eq!(client(trusted, "::ffff:10.1.2.3", &["198.51.100.7"]), "198.51.100.7");
}

#[test]
fn only_lists_of_networks_are_accepted() {
    for text in ["", "127.0.0.1", "10.0.0.0/8,::1", " fd00::/8 ,"] {
        assert!(text.parse::<TrustedProxies>().is_ok(), "{text}");
    }
    for text in ["10.0.0.0/33", "proxy", "10.0.0.0/8;::1", "*"] {
        assert!(
            matches!(text.parse::<TrustedProxies>(), Err(InvalidProxies::Network(_))),
            "{text}"
        );
    }
    let many = vec!["10.0.0.1"; NETWORKS_MAX + 1].join(",");
    assert!(matches!(many.parse::<TrustedProxies>(), Err(InvalidProxies::TooMany(_))));
}
