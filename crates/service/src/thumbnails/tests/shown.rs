//! Tests of the image sent for each kind, size and set of accepted types.

use std::io::Cursor;

use blackboard_thumbnail::IMAGE_TYPES;
use image::{ImageFormat, RgbaImage};
use tempfile::TempDir;

use crate::tests::service::{screenshot, start, stop};
use crate::thumbnails::*;
use blackboard_board::LogName;

/// What each provider of models takes at least.
const ACCEPTED: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

fn encoded(kind: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let picture = RgbaImage::from_pixel(60, 30, image::Rgba([200, 30, 10, 255]));
    let picture = image::DynamicImage::from(picture);
    let picture = if kind == ImageFormat::Jpeg { picture.to_rgb8().into() } else { picture };
    picture.write_to(&mut bytes, kind).unwrap();
    bytes.into_inner()
}

/// Shows an image that was posted as a PNG, whatever it is.
async fn shown(
    service: &Service,
    bytes: Vec<u8>,
    max_px: Option<u32>,
    accepted: &[&str],
) -> Option<ShownImage> {
    let (write, images) = screenshot("s", bytes);
    let board = service.receipt(write, images).await.unwrap().board;
    let log = board.log(&LogName::Screenshots).unwrap();
    let image = log.iter().last().unwrap().item.image().unwrap().clone();
    let max_px = Bounds::px(max_px);
    let shown = service.at("s").shown_image(&board, &image, max_px, accepted).await.unwrap();
    match (&shown, service.at("s").thumbnail(&board, &image, max_px).await) {
        (Some(ShownImage::Made { media_type, bytes, size }), made) => {
            let made = made.unwrap();
            let outline = (made.media_type, made.bytes.len() as u64, made.size);
            assert_eq!((*media_type, *bytes, *size), outline);
        }
        (Some(ShownImage::Stored { .. }), _) => {}
        (None, made) => assert!(matches!(made, Err(ServiceError::Undecodable(_)))),
    }
    shown
}

#[tokio::test]
async fn what_fits_is_sent_as_it_is_and_the_rest_made() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    for (media_type, kind) in IMAGE_TYPES {
        for (max_px, accepted) in [(None, &[][..]), (Some(60), &[]), (None, &[media_type])] {
            let stored = Some(ShownImage::Stored { media_type: media_type.to_owned() });
            assert_eq!(shown(&service, encoded(kind), max_px, accepted).await, stored);
        }
        for (max_px, accepted, to) in [(Some(59), &[][..], (59, 30)), (Some(6), &ACCEPTED, (6, 3))]
        {
            match shown(&service, encoded(kind), max_px, accepted).await {
                Some(ShownImage::Made { size, .. }) => assert_eq!(size, to, "{media_type}"),
                other => panic!("{other:?}"),
            }
        }
    }
    // A type that the reader does not take is converted at its own size.
    match shown(&service, encoded(ImageFormat::Bmp), None, &ACCEPTED).await {
        Some(ShownImage::Made { media_type: "image/png", size: (60, 30), .. }) => {}
        other => panic!("{other:?}"),
    }
    stop(service).await;
}

#[tokio::test]
async fn of_what_is_no_image_nothing_is_shown() {
    let dir = TempDir::new().unwrap();
    let service = start(dir.path());
    assert_eq!(shown(&service, b"no image".to_vec(), None, &[]).await, None);
    assert_eq!(shown(&service, b"<svg/>".to_vec(), Some(9), &ACCEPTED).await, None);
    let mut cut = encoded(ImageFormat::Png);
    cut.truncate(40);
    assert_eq!(shown(&service, cut.clone(), None, &ACCEPTED).await, None);
    assert_eq!(shown(&service, cut, Some(9), &ACCEPTED).await, None);
    stop(service).await;
}
