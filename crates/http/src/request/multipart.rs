//! Multipart uploads of screenshots: the parts `image`, `metadata` and `image_path`.

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request};
use axum::http::{HeaderMap, header};

use super::body::BodyBytes;
use super::items::{UNSPECIFIED, image_type};
use crate::response::problem::Problem;
use blackboard_api::intake::items::Intake;
use blackboard_api::offload::work;
use blackboard_api::refusal::{invalid_field, unknown_field};
use blackboard_board::Code;

/// The parts of a form with one screenshot.
#[derive(Default)]
struct Form {
    image: Option<(String, Vec<u8>)>,
    file_name: Option<String>,
    metadata: Option<String>,
    image_path: Option<String>,
}

/// Reads a form with one screenshot.
pub(crate) async fn multipart(headers: &HeaderMap, bytes: BodyBytes) -> Result<Intake, Problem> {
    let mut request = Request::new(Body::from(bytes.into_vec()));
    if let Some(kind) = headers.get(header::CONTENT_TYPE) {
        request.headers_mut().insert(header::CONTENT_TYPE, kind.clone());
    }
    // The body was already read within its limit.
    DefaultBodyLimit::disable().apply(&mut request);
    let mut parts = Multipart::from_request(request, &())
        .await
        .map_err(|error| malformed_form(&error.body_text()))?;
    let mut form = Form::default();
    while let Some(part) = parts.next_field().await.map_err(|e| malformed_form(&e.body_text()))? {
        form.take(part).await?;
    }
    let Some((media_type, bytes)) = form.image else {
        return Err(invalid_field("/image".to_owned(), "the form has no part 'image'").into());
    };
    let image_path = form.image_path.or(form.file_name).unwrap_or_default();
    let taken = work(bytes.len(), move || {
        let mut intake = Intake::default();
        intake.take_image(&media_type, bytes, form.metadata.as_deref(), &image_path)?;
        Ok(intake)
    });
    Ok(taken.await?)
}

impl Form {
    async fn take(&mut self, part: axum::extract::multipart::Field<'_>) -> Result<(), Problem> {
        let name = part.name().unwrap_or_default().to_owned();
        let declared = part.content_type().map(str::to_ascii_lowercase);
        let file_name = part.file_name().map(str::to_owned);
        let text = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).map(str::to_owned);
            text.map_err(|_| invalid_field(format!("/{name}"), "the part is not UTF-8"))
        };
        let bytes = part.bytes().await.map_err(|error| malformed_form(&error.body_text()))?;
        let taken_before = match name.as_str() {
            "image" => {
                self.file_name = file_name;
                let declared = declared.unwrap_or_else(|| UNSPECIFIED.to_owned());
                let kind = image_type(declared, &bytes);
                self.image.replace((kind, bytes.to_vec())).is_some()
            }
            "metadata" => self.metadata.replace(text(&bytes)?).is_some(),
            "image_path" => self.image_path.replace(text(&bytes)?).is_some(),
            _ => {
                return Err(unknown_field(
                    format!("/{name}"),
                    &["image", "metadata", "image_path"],
                )
                .into());
            }
        };
        if taken_before {
            return Err(invalid_field(format!("/{name}"), "the part was sent twice").into());
        }
        Ok(())
    }
}

fn malformed_form(why: &str) -> Problem {
    Problem::new(Code::InvalidEncoding, format!("the form is malformed: {why}"))
}
