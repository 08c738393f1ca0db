//! Door of the web page: files and their caching, login, and writes from foreign pages.

use std::io::Read as _;

use reqwest::{Client, Method, RequestBuilder};

use crate::answer::{Answer, ask};
use crate::harness::{Server, client};
use crate::matrix::token;
use crate::sse::Stream;

/// A server with a token, and a browser that may be logged in.
struct House {
    server: Server,
    token: String,
    /// Sends no header but those that it is told to.
    http: Client,
}

impl House {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(flags: &[&str]) -> Self {
        let server = Server::start_with(flags);
        let token = token(&server, &["create", "--name", "page", "--scopes", "admin"]);
        Self { server, token, http: client() }
    }

    fn to(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.own()))
    }

    fn own(&self) -> String {
        format!("http://{}", self.server.authority())
    }

    fn log_in_from(&self, origin: &str, body: String) -> RequestBuilder {
        let request = self.to(Method::POST, "/ui/session").header("origin", origin);
        request.header("content-type", "application/json").body(body)
    }

    /// Logs in, and returns the cookie with its attributes.
    async fn cookie(&self) -> String {
        self.cookie_of(&self.own()).await
    }

    async fn cookie_of(&self, origin: &str) -> String {
        let answer =
            ask(self.log_in_from(origin, format!("{{\"token\":\"{}\"}}", self.token))).await;
        answer.is(200).header("set-cookie").to_owned()
    }

    /// A request of the page, with the cookie of a login.
    fn page(&self, cookie: &str, method: Method, path: &str) -> RequestBuilder {
        let pair = cookie.split(';').next().unwrap_or_default();
        self.to(method, path).header("cookie", format!("other=1; {pair}"))
    }

    async fn write(&self, cookie: &str, origin: Option<&str>) -> Answer {
        let mut request = self.page(cookie, Method::POST, "/v1/sessions/s/requests");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        ask(request.header("content-type", "application/json").body("\"open it\"")).await
    }
}

#[tokio::test]
async fn the_page_and_its_files_are_served() {
    let server = Server::start();
    assert_eq!(server.get("/ui").await.is(308).header("location"), "/ui/");
    let browser = server.to(Method::GET, "/").header("accept", "text/html,*/*;q=0.8");
    assert_eq!(ask(browser).await.is(303).header("location"), "/ui/");
    assert_eq!(server.get("/").await.is(200).json()["ui"], "/ui/");
    let page = server.get("/ui/").await;
    assert_eq!(page.is(200).header("content-type"), "text/html; charset=utf-8");
    assert_eq!(page.header("cache-control"), "no-cache, no-transform");
    let policy = page.header("content-security-policy").to_owned();
    for part in
        ["default-src 'none'", "script-src 'self';", "style-src 'self';", "connect-src 'self'"]
    {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    let text = page.text();
    assert!(!text.contains('{'), "a placeholder is left: {text}");
    let addresses: Vec<_> = text.split('"').filter(|part| part.starts_with("/ui/")).collect();
    assert!(addresses.len() > 30, "{addresses:?}");
    for address in &addresses {
        let file = server.get(address).await;
        assert_eq!(
            file.is(200).header("cache-control"),
            "public, max-age=31536000, immutable, no-transform"
        );
        let expected = match address.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!(file.header("content-type"), expected, "{address}");
        let again = server.to(Method::GET, address).header("if-none-match", file.header("etag"));
        ask(again).await.is(304);
    }
    assert_eq!(ask(server.to(Method::HEAD, addresses[0])).await.is(200).text(), "");
    let address = addresses.iter().find(|address| address.ends_with("/main.js")).unwrap();
    let plain = server.get(address).await;
    let smaller = ask(server.to(Method::GET, address).header("accept-encoding", "gzip, br")).await;
    assert_eq!(smaller.is(200).header("content-encoding"), "br");
    assert!(smaller.header("vary").contains("Accept-Encoding"), "{}", smaller.header("vary"));
    assert_ne!(smaller.header("etag"), plain.header("etag"));
    let mut text = String::new();
    brotli_decompressor::Decompressor::new(smaller.body(), 4096).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain.text());
}

#[tokio::test]
async fn nothing_but_the_pages_files_is_served() {
    let server = Server::start();
    let page = server.get("/ui/").await;
    let text = page.text();
    let main = text.split('"').find(|part| part.ends_with("/main.js")).unwrap().to_owned();
    let folder = main.trim_end_matches("main.js");
    for name in [
        "..%2fmod.rs",
        "%2e%2e/mod.rs",
        "..%5cmod.rs",
        "../mod.rs",
        "/etc/passwd",
        "core",
        "core/",
        "main.js%00.css",
        "none.js",
        "index.html",
    ] {
        server.get(&format!("{folder}{name}")).await.problem(404, "route-not-found");
    }
    let of_another = server.get("/ui/0123456789abcdef/main.js").await;
    of_another.problem(404, "route-not-found");
    assert_eq!(of_another.header("cache-control"), "no-store");
    server.get("/ui/main.js").await.problem(404, "route-not-found");
    ask(server.to(Method::PUT, "/ui/")).await.problem(405, "method-not-allowed");
}

#[tokio::test]
async fn a_server_without_tokens_needs_no_login() {
    let server = Server::start();
    let rights = server.get("/ui/session").await;
    assert_eq!(rights.is(200).text(), "{\"tokens_required\":false,\"login\":null}\n");
    assert_eq!(rights.header("cache-control"), "no-store");
    let log_in = server.to(Method::POST, "/ui/session").header("sec-fetch-site", "same-origin");
    let log_in = log_in.header("content-type", "application/json").body("{\"token\":\"bb_x\"}");
    let answer = ask(log_in).await;
    assert_eq!(answer.is(200).json()["tokens_required"], false);
    assert_eq!(answer.header("set-cookie"), "");
}

#[tokio::test]
async fn a_login_is_taken_like_its_token() {
    let house = House::new();
    ask(house.to(Method::GET, "/v1/sessions")).await.problem(401, "unauthorized");
    assert_eq!(
        ask(house.to(Method::GET, "/ui/session")).await.json()["login"],
        serde_json::Value::Null
    );
    let cookie = house.cookie().await;
    let port = house.server.authority().rsplit_once(':').unwrap().1;
    assert!(cookie.starts_with(&format!("blackboard-{port}=")), "{cookie}");
    // Where servers share a store, logins are shorter.
    let longest = if house.server.schema().is_some() { 43_200 } else { 604_800 };
    let longest = format!("; Max-Age={longest}");
    for attribute in ["; Path=/", &longest, "; HttpOnly", "; SameSite=Strict"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Secure") && !cookie.contains(&house.token), "{cookie}");
    house.write(&cookie, Some(&house.own())).await.is(201);
    ask(house.page(&cookie, Method::GET, "/v1/sessions/s")).await.is(200);
    let rights = ask(house.page(&cookie, Method::GET, "/ui/session")).await.is(200).json();
    assert_eq!(rights["login"]["token"]["name"], "page", "{rights}");
    assert_eq!(rights["login"]["token"]["scopes"], serde_json::json!(["admin"]));
    // A token goes before a cookie.
    let wrong = house.page(&cookie, Method::GET, "/v1/sessions/s").bearer_auth("bb_wrong");
    ask(wrong).await.problem(401, "unauthorized");
    let leave = house.page(&cookie, Method::DELETE, "/ui/session");
    let left = ask(leave.header("origin", house.own())).await;
    assert!(left.is(200).header("set-cookie").contains("Max-Age=0"));
    let after = ask(house.page(&cookie, Method::GET, "/v1/sessions/s")).await;
    assert!(
        after.problem(401, "unauthorized")["detail"].as_str().unwrap().contains("log in again")
    );
}

#[tokio::test]
async fn over_tls_the_cookie_is_for_this_host_alone() {
    let house = House::new();
    let cookie = house.cookie_of(&format!("https://{}", house.server.authority())).await;
    let port = house.server.authority().rsplit_once(':').unwrap().1;
    assert!(cookie.starts_with(&format!("__Host-blackboard-{port}=")), "{cookie}");
    assert!(cookie.ends_with("; Secure"), "{cookie}");
    ask(house.page(&cookie, Method::GET, "/v1/sessions")).await.is(200);
}

#[tokio::test]
async fn foreign_pages_neither_log_in_nor_write() {
    let house = House::new();
    let cookie = house.cookie().await;
    let foreign = ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"];
    for origin in foreign {
        let body = format!("{{\"token\":\"{}\"}}", house.token);
        ask(house.log_in_from(origin, body)).await.problem(403, "forbidden");
        let leave = house.page(&cookie, Method::DELETE, "/ui/session").header("origin", origin);
        ask(leave).await.problem(403, "forbidden");
        house.write(&cookie, Some(origin)).await.problem(403, "forbidden");
    }
    house.write(&cookie, None).await.problem(403, "forbidden");
    for method in [Method::PUT, Method::PATCH, Method::DELETE] {
        let request = house.page(&cookie, method, "/v1/sessions/s/state/x");
        ask(request.header("content-type", "application/json").body("1"))
            .await
            .problem(403, "forbidden");
    }
    // Another protocol's door takes tokens only.
    let call = house.page(&cookie, Method::POST, "/mcp").header("origin", house.own());
    ask(call.header("content-type", "application/json").body("{}"))
        .await
        .problem(401, "unauthorized");
    ask(house.page(&cookie, Method::GET, "/v1/sessions/s")).await.problem(404, "session-not-found");
}

#[tokio::test]
async fn a_bad_login_is_refused_and_counted() {
    let server = Server::start_with(&["--token-rate", "3"]);
    let token = token(&server, &["create", "--name", "page", "--scopes", "admin"]);
    let house = House { server, token, http: client() };
    let own = house.own();
    let text = house.to(Method::POST, "/ui/session").header("origin", &own);
    ask(text.header("content-type", "text/plain").body("{}"))
        .await
        .problem(415, "unsupported-media-type");
    for body in ["{}", "[]", "{\"token\":1}", "{\"token\":\"x\",\"more\":1}", "nothing"] {
        let answer = ask(house.log_in_from(&own, body.to_owned())).await;
        assert_eq!(answer.status(), 422, "{body}: {answer}");
    }
    let long = format!("{{\"token\":\"{}\"}}", "x".repeat(5000));
    assert_eq!(ask(house.log_in_from(&own, long)).await.status(), 413);
    let wrong = || house.log_in_from(&own, "{\"token\":\"bb_wrong\"}".to_owned());
    ask(wrong()).await.problem(401, "unauthorized");
    let mut limited = ask(wrong()).await;
    while limited.status() == 401 {
        limited = ask(wrong()).await;
    }
    limited.problem(429, "rate-limited");
    assert!(!limited.header("retry-after").is_empty());
}

#[tokio::test]
async fn what_a_login_began_ends_with_its_token() {
    let house = House::new();
    let cookie = house.cookie().await;
    house.write(&cookie, Some(&house.own())).await.is(201);
    let request = house.page(&cookie, Method::GET, "/v1/sessions/s/events?after=0");
    let mut stream = Stream::open(request.header("accept", "text/event-stream")).await;
    assert_eq!(stream.next_revision().await, 1);
    token(&house.server, &["revoke", "page"]);
    stream.end().await;
    ask(house.page(&cookie, Method::GET, "/v1/sessions/s")).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn a_login_ends_with_the_server() {
    let mut house = House::new();
    let cookie = house.cookie().await;
    house.server.stop();
    house.server.start_again();
    ask(house.page(&cookie, Method::GET, "/v1/sessions")).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn what_a_login_began_ends_with_its_logout() {
    let house = House::new();
    let (cookie, other) = (house.cookie().await, house.cookie().await);
    house.write(&cookie, Some(&house.own())).await.is(201);
    let events = |cookie| {
        let request = house.page(cookie, Method::GET, "/v1/sessions/s/events?after=0");
        Stream::open(request.header("accept", "text/event-stream"))
    };
    let (mut stream, mut stays) = (events(&cookie).await, events(&other).await);
    assert_eq!((stream.next_revision().await, stays.next_revision().await), (1, 1));
    let wait = house.page(&cookie, Method::GET, "/v1/sessions/s/state/x?until=exists&wait=60s");
    let waiting = tokio::spawn(ask(wait));
    let leave = house.page(&cookie, Method::DELETE, "/ui/session").header("origin", house.own());
    ask(leave).await.is(200);
    stream.end().await;
    waiting.await.unwrap().problem(401, "unauthorized");
    // The other login with the same token goes on.
    house.write(&other, Some(&house.own())).await.is(201);
    assert_eq!(stays.next_revision().await, 2);
}

#[tokio::test]
async fn a_logout_ends_the_logins_of_all_its_cookies() {
    let house = House::new();
    let (first, second) = (house.cookie().await, house.cookie().await);
    let pair = |cookie: &str| cookie.split(';').next().unwrap_or_default().to_owned();
    let both = format!("{}; {}", pair(&first), pair(&second));
    let leave = house.to(Method::DELETE, "/ui/session").header("cookie", both);
    ask(leave.header("origin", house.own())).await.is(200);
    for cookie in [first, second] {
        let after = ask(house.page(&cookie, Method::GET, "/v1/sessions")).await;
        after.problem(401, "unauthorized");
    }
}

#[tokio::test]
async fn a_login_ends_those_whose_cookies_it_replaces() {
    let house = House::new();
    let first = house.cookie().await;
    let pair = first.split(';').next().unwrap_or_default().to_owned();
    let log_in = |token: &str| {
        let request = house.log_in_from(&house.own(), format!("{{\"token\":\"{token}\"}}"));
        ask(request.header("cookie", pair.clone()))
    };
    // A log-in that fails replaces nothing.
    log_in("bb_wrong").await.is(401);
    ask(house.page(&first, Method::GET, "/v1/sessions")).await.is(200);
    let second = log_in(&house.token).await.is(200).header("set-cookie").to_owned();
    ask(house.page(&second, Method::GET, "/v1/sessions")).await.is(200);
    ask(house.page(&first, Method::GET, "/v1/sessions")).await.problem(401, "unauthorized");
}

#[tokio::test]
async fn log_ins_count_as_requests_of_their_token() {
    let house = House::with(&["--token-rate", "1"]);
    let body = format!("{{\"token\":\"{}\"}}", house.token);
    let mut refused = None;
    for _ in 0..10 {
        let answer = ask(house.log_in_from(&house.own(), body.clone())).await;
        if answer.status() == 429 {
            refused = Some(answer);
            break;
        }
        answer.is(200);
    }
    let refused = refused.expect("a limit");
    refused.problem(429, "rate-limited");
    assert!(!refused.header("retry-after").is_empty(), "{refused}");
}
