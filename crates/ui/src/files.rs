//! The page's files. The binary has them packed and compressed. A debug build reads them from the folder that
//! `BLACKBOARD_PAGE` names, if it is set, so that a reload shows an edit.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::{Arc, OnceLock};

use axum::extract::Path;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Redirect, Response};
use brotli_decompressor::Decompressor;
use sha2::{Digest as _, Sha256};

/// The address of the page.
pub const PATH: &str = "/ui/";

/// Names of the packed files, and their content compressed by Brotli.
const PACKED: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

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

const BUFFER_BYTES: usize = 4096;

/// Redirects to the page.
pub(super) async fn find() -> Redirect {
    Redirect::permanent(PATH)
}

/// Serves the page. Its addresses of files have the hash of all files.
pub(super) async fn index(headers: HeaderMap) -> Response {
    let files = Files::get();
    let Some(index) = files.by_name.get(INDEX) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let text = String::from_utf8_lossy(&index.plain);
    let text = text
        .replace("{styles}", &files.links("stylesheet", |name| name.ends_with(".css")))
        .replace("{modules}", &files.links("modulepreload", is_needed_first))
        .replace("{build}", &files.build);
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
    let files = Files::get();
    let is_build = of.len() == BUILD_CHARS && of.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_build && of != files.build {
        let detail = "this file belongs to another version of the page; reload the page";
        let headers = [(CACHE_CONTROL, HeaderValue::from_static("no-store"))];
        return (StatusCode::NOT_FOUND, headers, detail).into_response();
    }
    let (true, Some(media_type), Some(file)) =
        (is_build, media_type(name), files.by_name.get(name))
    else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let compressed = file.compressed.filter(|_| accepts_brotli(&headers));
    let content = compressed.map_or_else(|| file.plain.clone(), <[u8]>::to_vec);
    let mut response = tagged(&headers, content, media_type, IMMUTABLE);
    let set = response.headers_mut();
    set.extend(compressed.map(|_| (CONTENT_ENCODING, HeaderValue::from_static("br"))));
    response
}

/// Tells whether `Accept-Encoding` (RFC 9110, 12.5.3) names Brotli. Browsers do over TLS and from this host.
fn accepts_brotli(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    named.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = weight.trim().trim_start_matches("q=").parse().is_ok_and(|q: f32| q <= 0.0);
        name.trim().eq_ignore_ascii_case("br") && !refused
    })
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

/// The page's files.
struct Files {
    /// The hash of all files.
    build: String,
    by_name: BTreeMap<String, File>,
}

struct File {
    plain: Vec<u8>,
    compressed: Option<&'static [u8]>,
}

impl Files {
    /// Returns the files of the binary. They are decompressed once, for clients that don't accept Brotli.
    fn get() -> Arc<Self> {
        static FILES: OnceLock<Arc<Files>> = OnceLock::new();
        #[cfg(debug_assertions)]
        if let Some(files) = Self::of_folder() {
            return Arc::new(files);
        }
        Arc::clone(FILES.get_or_init(|| Arc::new(Self::packed())))
    }

    fn packed() -> Self {
        let file = |&(name, compressed): &(&str, &'static [u8])| {
            let mut plain = Vec::new();
            // The build script compressed it.
            let _complete = Decompressor::new(compressed, BUFFER_BYTES).read_to_end(&mut plain);
            (name.to_owned(), File { plain, compressed: Some(compressed) })
        };
        Self::new(PACKED.iter().map(file).collect())
    }

    #[cfg(debug_assertions)]
    fn of_folder() -> Option<Self> {
        let folder = std::env::var_os("BLACKBOARD_PAGE")?;
        let files = super::pack::pack(folder.as_ref()).ok()?.into_iter();
        let file = |(name, plain)| (name, File { plain, compressed: None });
        Some(Self::new(files.map(file).collect()))
    }

    fn new(by_name: BTreeMap<String, File>) -> Self {
        let mut all = Sha256::new();
        for (name, file) in &by_name {
            all.update(name.as_bytes());
            all.update(Sha256::digest(&file.plain));
        }
        let mut build = hex(&all.finalize());
        build.truncate(BUILD_CHARS);
        Self { build, by_name }
    }

    /// Returns a link for each of these files, in the order of their names.
    fn links(&self, relation: &str, is_linked: impl Fn(&str) -> bool) -> String {
        let build = &self.build;
        let link = |name| format!("<link rel=\"{relation}\" href=\"/ui/{build}/{name}\">\n");
        self.by_name.keys().filter(|name| is_linked(name)).map(link).collect()
    }
}

/// Returns true for the modules that every view needs: all but the views and their folders.
fn is_needed_first(name: &str) -> bool {
    name.ends_with(".js") && name.matches('/').count() < 2 && !name.starts_with("views/")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compressed bytes that a browser loads in all.
    const WEIGHT_MAX: usize = 150_000;

    #[test]
    fn the_whole_page_is_light() {
        let loaded = PACKED.iter().filter(|(name, _)| name.ends_with("html") || linked(name));
        let weight: usize = loaded.map(|(_, content)| content.len()).sum();
        assert!(weight <= WEIGHT_MAX, "{weight} bytes");
    }

    fn linked(name: &str) -> bool {
        [".js", ".css", ".svg"].iter().any(|ending| name.ends_with(ending))
    }

    #[test]
    fn brotli_is_sent_to_those_that_name_it() {
        let accepts = |value| accepts_brotli(&HeaderMap::from_iter([(ACCEPT_ENCODING, value)]));
        for value in ["br", "gzip, deflate, br, zstd", "gzip;q=0.5, BR;q=0.1", "br;q=x"] {
            assert!(accepts(HeaderValue::from_static(value)), "{value}");
        }
        for value in ["", "gzip", "br;q=0", "brotli", "*", "gzip, br; q=0.0"] {
            assert!(!accepts(HeaderValue::from_static(value)), "{value}");
        }
        assert!(!accepts_brotli(&HeaderMap::new()));
    }
}
