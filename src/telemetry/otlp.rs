//! OpenTelemetry spans, one for each exchange, sent by a thread.
//!
//! A span is made from the log line of its exchange, with the trace id that was passed on, and holds nothing more.
//! The queue is bounded: if the collector is slow or down, spans are dropped and nothing waits.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, Protocol, SpanExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor as _,
};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

use crate::http::ANSWERED;

/// The maximum number of queued spans.
const WAITING_MAX: usize = 4096;

/// The maximum number of spans in one export.
const AT_ONCE_MAX: usize = 512;

/// The maximum time that spans are gathered before an export.
const GATHERING: Duration = Duration::from_secs(2);

/// The timeout of an export.
const EXPORT_MAX: Duration = Duration::from_secs(5);

/// The time that the shutdown waits for the collector.
const END_MAX: Duration = Duration::from_secs(1);

const SERVICE: &str = "blackboard";

/// Turns log events of exchanges into spans.
#[derive(Debug)]
pub(super) struct Spans {
    sending: Arc<BatchSpanProcessor>,
    scope: InstrumentationScope,
}

/// Sends spans until dropped; queued spans are then sent first, if the collector accepts them.
#[derive(Debug)]
pub(super) struct Sending(Arc<BatchSpanProcessor>);

impl Spans {
    /// Connects to a collector by its base address; headers come from `OTEL_EXPORTER_OTLP_HEADERS`.
    pub(super) fn to(endpoint: &str) -> Result<(Self, Sending), ExporterBuildError> {
        let exporter = SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
            .with_timeout(EXPORT_MAX)
            .build()?;
        let config = BatchConfigBuilder::default()
            .with_max_queue_size(WAITING_MAX)
            .with_max_export_batch_size(AT_ONCE_MAX)
            .with_scheduled_delay(GATHERING)
            .build();
        let mut sending = BatchSpanProcessor::new(exporter, config);
        sending.set_resource(&Resource::builder().with_service_name(SERVICE).build());
        let scope =
            InstrumentationScope::builder(SERVICE).with_version(env!("CARGO_PKG_VERSION")).build();
        let sending = Arc::new(sending);
        Ok((Self { sending: Arc::clone(&sending), scope }, Sending(sending)))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        // Either they are sent, or the collector does not take them.
        self.0.shutdown_with_timeout(END_MAX).ok();
    }
}

impl<S: Subscriber> Layer<S> for Spans {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        if event.metadata().target() == ANSWERED {
            let mut told = Told::default();
            event.record(&mut told);
            if told.sampled {
                self.sending.on_end(told.into_span(SystemTime::now(), self.scope.clone()));
            }
        }
    }
}

/// The fields of an exchange's log line.
#[derive(Debug)]
struct Told {
    method: String,
    route: String,
    status: i64,
    code: Option<String>,
    took: Duration,
    request_id: String,
    trace: TraceId,
    span: SpanId,
    parent: SpanId,
    sampled: bool,
}

impl Default for Told {
    /// The context of an exchange without a trace, which starts a new one.
    fn default() -> Self {
        let random = || RandomState::new().hash_one(()).max(1);
        let trace = u128::from(random()) << 64 | u128::from(random());
        Self {
            method: String::new(),
            route: String::new(),
            status: 0,
            code: None,
            took: Duration::ZERO,
            request_id: String::new(),
            trace: TraceId::from(trace),
            span: SpanId::from(random()),
            parent: SpanId::INVALID,
            sampled: true,
        }
    }
}

impl Visit for Told {
    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "method" => self.method = value.to_owned(),
            "route" => self.route = value.to_owned(),
            "code" => self.code = Some(value.to_owned()),
            "request_id" => self.request_id = value.to_owned(),
            "trace_id" => self.trace = TraceId::from_hex(value).unwrap_or(self.trace),
            "span_id" => self.span = SpanId::from_hex(value).unwrap_or(self.span),
            "parent_id" => self.parent = SpanId::from_hex(value).unwrap_or(self.parent),
            _ => {}
        }
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        if field.name() == "status" {
            self.status = i64::try_from(value).unwrap_or_default();
        }
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        if field.name() == "ms" {
            self.took = Duration::try_from_secs_f64(value / 1e3).unwrap_or_default();
        }
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        if field.name() == "sampled" {
            self.sampled = value;
        }
    }

    fn record_debug(&mut self, _: &Field, _: &dyn fmt::Debug) {}
}

impl Told {
    fn into_span(self, end: SystemTime, scope: InstrumentationScope) -> SpanData {
        let name = format!("{} {}", self.method, self.route);
        let mut attributes = vec![
            KeyValue::new("http.request.method", self.method),
            KeyValue::new("http.route", self.route),
            KeyValue::new("http.response.status_code", self.status),
            KeyValue::new("blackboard.request_id", self.request_id),
        ];
        let failed = self.status >= 500;
        attributes.extend(self.code.map(|code| KeyValue::new("blackboard.code", code)));
        let (flags, state) = (TraceFlags::SAMPLED, TraceState::default());
        SpanData {
            span_context: SpanContext::new(self.trace, self.span, flags, false, state),
            parent_span_id: self.parent,
            parent_span_is_remote: self.parent != SpanId::INVALID,
            span_kind: SpanKind::Server,
            name: name.into(),
            start_time: end.checked_sub(self.took).unwrap_or(end),
            end_time: end,
            attributes,
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: if failed { Status::error("") } else { Status::Unset },
            instrumentation_scope: scope,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const OTHER: &str = "1111111111111111aaaaaaaaaaaaaaaa";

    /// One request to the collector: its head and its body.
    fn received(listener: &TcpListener) -> (String, Vec<u8>) {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            reader.read_line(&mut head).unwrap();
        }
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1).unwrap().lines().next().unwrap();
        let mut body = vec![0; length.parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        reader.into_inner().write_all(answer).unwrap();
        (head, body)
    }

    fn has(body: &[u8], part: &[u8]) -> bool {
        body.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn a_collector_gets_the_spans_of_what_is_recorded() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}/", listener.local_addr().unwrap());
        let collector = thread::spawn(move || received(&listener));
        let (spans, sending) = Spans::to(&endpoint).unwrap();
        let spans = tracing_subscriber::registry().with(spans);
        tracing::subscriber::with_default(spans, || {
            for (trace_id, sampled) in [(TRACE, true), (OTHER, false)] {
                tracing::info!(
                    target: ANSWERED,
                    method = "GET",
                    route = "/v1/sessions/{session}",
                    status = 503_u16,
                    ms = 12.5,
                    session = "secret-session",
                    trace_id,
                    span_id = "b7ad6b7169203331",
                    parent_id = "00f067aa0ba902b7",
                    sampled,
                    "answered"
                );
            }
            tracing::info!(text = "secret-text", "something else");
        });
        drop(sending);
        let (head, body) = collector.join().unwrap();
        assert!(head.starts_with("post /v1/traces http/1.1\r\n"), "{head}");
        assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
        for part in [
            &TraceId::from_hex(TRACE).unwrap().to_bytes()[..],
            &SpanId::from_hex("b7ad6b7169203331").unwrap().to_bytes(),
            &SpanId::from_hex("00f067aa0ba902b7").unwrap().to_bytes(),
            b"GET /v1/sessions/{session}",
            b"http.response.status_code",
            b"service.name",
        ] {
            assert!(has(&body, part), "{part:?}");
        }
        assert!(!has(&body, &TraceId::from_hex(OTHER).unwrap().to_bytes()));
        assert!(!has(&body, b"secret"));
    }
}
