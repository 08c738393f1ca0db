//! The page's files. A release has them in the binary; a debug build reads them from the source folder, so that a
//! reload shows an edit.

use std::sync::OnceLock;

use axum::extract::Path;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use rust_embed::Embed;
use sha2::{Digest as _, Sha256};

#[derive(Embed)]
#[folder = "src/ui/page/"]
struct Files;

const INDEX: &str = "index.html";

/// The page's policy: its own files and this server's API, no inline script or style, nothing from elsewhere.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
);

/// Files below the hash of all files never change.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");

/// Hexadecimal digits of the hash of all files.
const BUILD_CHARS: usize = 16;

/// Redirects to the page.
pub(super) async fn find() -> Redirect {
    Redirect::permanent(super::PATH)
}

/// Serves the page. Its addresses of files have the hash of all files.
pub(super) async fn index(headers: HeaderMap) -> Response {
    let Some(text) = Files::get(INDEX) else { return StatusCode::NOT_FOUND.into_response() };
    let build = build();
    let text = String::from_utf8_lossy(&text.data);
    let text = text
        .replace("{styles}", &links(&build, ".css", "stylesheet"))
        .replace("{modules}", &links(&build, ".js", "modulepreload"))
        .replace("{build}", &build);
    let mut response = tagged(&headers, text.into_bytes(), "text/html; charset=utf-8", REVALIDATED);
    let set = response.headers_mut();
    set.insert(CONTENT_SECURITY_POLICY, POLICY);
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    set.insert(opener, HeaderValue::from_static("same-origin"));
    response
}

/// Serves a file of the page, at `{build}/{file}`.
pub(super) async fn file(Path(path): Path<String>, headers: HeaderMap) -> Response {
    let Some((of, name)) = path.split_once('/') else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if of != build() {
        let detail = "this file is of another version of the page; reload the page";
        let headers = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
        return (StatusCode::NOT_FOUND, headers, detail).into_response();
    }
    let known = Files::iter().any(|known| known == name);
    match (known, media_type(name), Files::get(name)) {
        (true, Some(media_type), Some(file)) => {
            tagged(&headers, file.data.into_owned(), media_type, IMMUTABLE)
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Answers with a text and its tag, or 304.
fn tagged(
    headers: &HeaderMap,
    bytes: Vec<u8>,
    media_type: &'static str,
    caching: HeaderValue,
) -> Response {
    let tag = format!("\"{}\"", hex(&Sha256::digest(&bytes)));
    let known = headers.get(IF_NONE_MATCH).and_then(|value| value.to_str().ok());
    let mut response = if known.is_some_and(|known| known.contains(&tag)) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(CONTENT_TYPE, HeaderValue::from_static(media_type))], bytes).into_response()
    };
    let set = response.headers_mut();
    set.insert(CACHE_CONTROL, caching);
    set.extend(HeaderValue::from_str(&tag).ok().map(|tag| (ETAG, tag)));
    response
}

fn media_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "txt" => "text/plain; charset=utf-8",
        _ => return None,
    })
}

/// Returns a link for each file that ends so, in the order of their names.
fn links(build: &str, ending: &str, relation: &str) -> String {
    let mut names: Vec<_> = Files::iter().filter(|name| name.ends_with(ending)).collect();
    names.sort();
    let link = |name: &_| format!("<link rel=\"{relation}\" href=\"/ui/{build}/{name}\">\n");
    names.iter().map(link).collect()
}

/// Returns the hash of all files.
fn build() -> String {
    static BUILD: OnceLock<String> = OnceLock::new();
    if cfg!(debug_assertions) { hashed() } else { BUILD.get_or_init(hashed).clone() }
}

fn hashed() -> String {
    let mut names: Vec<_> = Files::iter().collect();
    names.sort();
    let mut all = Sha256::new();
    for name in names {
        all.update(name.as_bytes());
        all.update(Files::get(&name).map(|file| file.metadata.sha256_hash()).unwrap_or_default());
    }
    let mut text = hex(&all.finalize());
    text.truncate(BUILD_CHARS);
    text
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
