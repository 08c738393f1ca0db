//! Items in request bodies: JSON, JSON lines, images and forms.

use std::sync::LazyLock;

use axum::http::HeaderMap;
use blackboard_thumbnail::{IMAGE_TYPES, media_type as media_type_of};

use super::body::{BodyBytes, media_type, only_json, unsupported};
use super::multipart::multipart;
use crate::response::problem::Problem;
use blackboard_api::intake::fields::json_document;
use blackboard_api::intake::items::{BodyReading, Intake};
use blackboard_api::offload::work;
use blackboard_api::refusal::{Place, array_required, invalid_item};
use blackboard_board::LogName;
use blackboard_board::json::Kind;

const LINES: [&str; 2] = ["application/x-ndjson", "application/jsonl"];

/// The media type of bytes of any kind.
pub(super) const UNSPECIFIED: &str = "application/octet-stream";

/// The media types of a POST to a log.
pub(crate) const ACCEPTED: &str = "application/json, application/x-ndjson, application/jsonl";

/// The media types of a POST of screenshots.
static ACCEPTED_SCREENSHOTS: LazyLock<String> = LazyLock::new(|| {
    let images = IMAGE_TYPES.map(|(name, _)| name).join(", ");
    format!("{ACCEPTED}, {images}, multipart/form-data, {UNSPECIFIED}")
});

/// Reads the body of a POST to a log.
pub(crate) async fn posted(
    log: LogName,
    headers: &HeaderMap,
    bytes: BodyBytes,
    reading: BodyReading,
) -> Result<Intake, Problem> {
    let sent = media_type(headers);
    if log == LogName::Screenshots && sent == "multipart/form-data" {
        return Box::pin(multipart(headers, bytes)).await;
    }
    let sent = if log == LogName::Screenshots { image_type(sent, &bytes) } else { sent };
    // Unspecified bytes can only be meant as an image.
    let is_image = log == LogName::Screenshots
        && (sent == UNSPECIFIED || IMAGE_TYPES.iter().any(|(name, _)| *name == sent));
    let is_text = sent == "application/json" || LINES.contains(&sent.as_str());
    if !is_text && !is_image {
        return Err(refused(&log, &sent, &bytes));
    }
    let taken = work(bytes.len(), move || {
        let mut intake = Intake::keyed(reading.trajectory_key.clone());
        if is_image {
            let image_path = reading.image_path.as_deref().unwrap_or_default();
            intake.take_image(&sent, bytes.into_vec(), reading.metadata.as_deref(), image_path)?;
        } else if sent == "application/json" {
            intake.take_json(&log, &bytes)?;
        } else {
            intake.take_lines(&log, &bytes, &reading)?;
        }
        Ok(intake)
    });
    Ok(taken.await?)
}

/// Returns the media type of a screenshot's body: the registered name of a common alias, and the type of the bytes if
/// they were sent as unspecified ones.
pub(super) fn image_type(sent: String, bytes: &[u8]) -> String {
    match sent.as_str() {
        "image/jpg" => "image/jpeg".to_owned(),
        UNSPECIFIED => media_type_of(bytes).map_or(sent, str::to_owned),
        _ => sent,
    }
}

/// Refuses a media type that a log does not support. Bytes of an image are told from their beginning.
fn refused(log: &LogName, sent: &str, bytes: &[u8]) -> Problem {
    match log {
        LogName::Screenshots => {
            let hint = media_type_of(bytes).map_or_else(
                || "for example with curl --json".to_owned(),
                |found| format!("here 'Content-Type: {found}', by the bytes of the image"),
            );
            unsupported(sent, &ACCEPTED_SCREENSHOTS, &hint)
        }
        LogName::Questions
        | LogName::Requests
        | LogName::Trajectories
        | LogName::Memory(_)
        | LogName::Messages(_) => unsupported(sent, ACCEPTED, "for example with curl --json"),
    }
}

/// Reads the body of a PUT of a log: all items, as an array or as lines.
pub(crate) async fn replaced(
    log: LogName,
    headers: &HeaderMap,
    bytes: BodyBytes,
) -> Result<Intake, Problem> {
    let sent = media_type(headers);
    let has_lines = LINES.contains(&sent.as_str());
    if !has_lines && sent != "application/json" {
        return Err(unsupported(&sent, ACCEPTED, "for example with curl --json"));
    }
    let taken = work(bytes.len(), move || {
        let mut intake = Intake::default();
        if has_lines {
            intake.take_lines(&log, &bytes, &BodyReading::default())?;
            return Ok(intake);
        }
        let document = json_document(&bytes)?;
        if document.kind() != Kind::Array {
            return Err(array_required(String::new(), document.kind()));
        }
        intake.take_array(&log, &document, None)?;
        Ok(intake)
    });
    Ok(taken.await?)
}

/// Reads the body of a PUT of an entry: one item, as an object.
pub(crate) async fn one_item(
    log: LogName,
    headers: &HeaderMap,
    bytes: BodyBytes,
) -> Result<Intake, Problem> {
    only_json(headers)?;
    let taken = work(bytes.len(), move || {
        let document = json_document(&bytes)?;
        let mut intake = Intake::default();
        let taken = intake.take(&log, &document);
        taken.map_err(|invalid| invalid_item(&invalid, Place::default()))?;
        Ok(intake)
    });
    Ok(taken.await?)
}
