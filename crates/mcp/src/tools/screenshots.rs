//! Screenshots: add one, see one.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::FutureExt as _;

use super::logs::appended;
use super::reading::cut;
use crate::call::answer::{Answer, Failure, marked};
use crate::call::arguments::pointer;
use crate::call::{Call, Outcome, Running};
use blackboard_address::entry_url;
use blackboard_api::intake::items::Intake;
use blackboard_api::offload::work;
use blackboard_api::ops::logs;
use blackboard_api::ops::screenshots::{Shown, image as image_of};
use blackboard_api::refusal::{Refusal, invalid_field};
use blackboard_api::signed_url::ImageAddresses;
use blackboard_board::json::{self, Kind};
use blackboard_board::{
    Board, Code, DataUrl, Image, ImagesShown, LogName, PlanRequest, Seq, forgiving_base64,
};
use blackboard_service::{ServiceError, SessionHandle};

/// The longest side of an image that is not shown in full.
const THUMBNAIL_PX: NonZeroU32 = NonZeroU32::new(1024).expect("not zero");

/// The longest side of an image that is shown in full. Larger ones are of no use to models.
const FULL_PX: NonZeroU32 = NonZeroU32::new(4096).expect("not zero");

/// The types of images that models read.
const TYPES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// The size of an item that is shown beside its image.
const ITEM_BYTES_MAX: usize = 2_000;

pub(crate) fn add_screenshot(call: Call) -> Running {
    add(call).boxed()
}

async fn add(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let agent = call.agent()?;
    let image = call.arguments.need("image")?;
    let metadata = call.arguments.take("metadata");
    let Intake { items, images, remarks, .. } =
        work(image.len(), move || screenshot(&image, metadata.as_deref())).await?;
    let command = logs::append(LogName::Screenshots, items, PlanRequest::default(), None);
    let writing = call.writing(session, agent)?;
    let warnings: Vec<_> = remarks.warnings.into_iter().map(|fault| fault.detail).collect();
    let shape = move |receipt: &_| {
        let facts = appended(&LogName::Screenshots, receipt);
        if warnings.is_empty() { facts } else { facts.put("warnings", &warnings) }
    };
    Ok(writing.run(command, images, shape).await?.into())
}

/// Reads a data URL, or bare base64 whose type is found by its first bytes.
fn screenshot(image: &str, metadata: Option<&str>) -> Result<Intake, Refusal> {
    let refused = |why: &str| invalid_field(pointer("image"), why);
    if json::kind(image) != Kind::String {
        return Err(refused("expected a data URL, as a string"));
    }
    let url = json::decode(image);
    let (media_type, bytes) = match DataUrl::parse(&url) {
        Some(read) => (Some(read.media_type), read.bytes),
        None if url.contains(':') => {
            return Err(refused("expected data:image/png;base64, and the image"));
        }
        None => {
            let bytes = forgiving_base64(url.as_bytes());
            (None, bytes.ok_or_else(|| refused("the data is not base64"))?)
        }
    };
    let none = || {
        let kinds = blackboard_thumbnail::image_type_names();
        Refusal::new(Code::NotAnImage, format!("/image: expected a {kinds} image"))
    };
    let found = blackboard_thumbnail::media_type(&bytes).ok_or_else(none)?;
    let media_type = media_type.unwrap_or_else(|| found.to_owned());
    let mut intake = Intake::default();
    intake.take_image(&media_type, bytes, metadata, "")?;
    Ok(intake)
}

pub(crate) fn get_screenshot(call: Call) -> Running {
    get(call).boxed()
}

async fn get(mut call: Call) -> Result<Outcome, Failure> {
    let session = call.session().await?;
    let seq = call.arguments.whole("seq", 1, u64::MAX)?.map(Seq);
    let full = call.arguments.flag("full")?;
    call.finish()?;
    let board = call.published(&session).await?.board;
    let log = LogName::Screenshots;
    let newest = board.log(&log).and_then(|log| log.iter().next_back()).map(|entry| entry.seq);
    let seq = seq.or(newest).unwrap_or(Seq(1));
    let (entry, image) = image_of(&board, seq, None)?;
    let max_px = if full { FULL_PX } else { THUMBNAIL_PX };
    let item = cut(entry.item.text(), ITEM_BYTES_MAX);
    let mut about = format!("Screenshot {seq} of session {session}.");
    if item.len() < entry.item.text().len() {
        let address = entry_url(session.name(), &log, seq);
        about.push_str(&format!(" Its metadata is cut: GET {address} of the board's server."));
    }
    let size = image.bytes;
    match call.visit.images {
        ImagesShown::Inline => {
            let (media_type, bytes) = bytes_of(&session, &board, image, max_px).await?;
            let answer = Answer::text(marked(&about, &item));
            Ok(answer.image(STANDARD.encode(bytes), &media_type).into())
        }
        ImagesShown::Url => {
            let addresses = ImageAddresses::of(&call.service, None, &board, session.name());
            let address = addresses.of_image(seq, image, Some(max_px));
            let about = format!(
                "{about} The image ({size} bytes) is at GET {address} of the board's server."
            );
            Ok(Answer::text(marked(&about, &item)).into())
        }
        ImagesShown::None => {
            let about = format!("{about} The image ({size} bytes) is not shown here.");
            Ok(Answer::text(marked(&about, &item)).into())
        }
    }
}

/// Returns an image in a form that models read, at most this long on its longest side.
pub(crate) async fn bytes_of(
    session: &SessionHandle,
    board: &Board,
    image: &Image,
    max_px: NonZeroU32,
) -> Result<(String, Vec<u8>), ServiceError> {
    let shown = Shown::of(session, board, image, Some(max_px), &TYPES).await?;
    let media_type = shown.media_type().to_owned();
    Ok((media_type, shown.bytes(session, board).await?))
}
