//! Media types of images in the OpenAPI document.

use blackboard_thumbnail::IMAGE_TYPES;
use utoipa::openapi::path::PathItem;
use utoipa::openapi::{OpenApi, RefOr};

/// The media type that stands for all kinds of image in the declaration of a route.
const ANY: &str = "image/*";

/// Replaces the range of all images by the media types of those that can be read.
pub(crate) fn with_image_types(mut document: OpenApi) -> OpenApi {
    document.paths.paths.values_mut().for_each(item);
    document
}

fn item(item: &mut PathItem) {
    for operation in [&mut item.get, &mut item.post].into_iter().flatten() {
        if let Some(RefOr::T(body)) = &mut operation.request_body
            && let Some(content) = body.content.remove(ANY)
        {
            body.content.extend(IMAGE_TYPES.map(|(name, _)| (name.to_owned(), content.clone())));
        }
        for response in operation.responses.responses.values_mut() {
            if let RefOr::T(response) = response
                && let Some(content) = response.content.swap_remove(ANY)
            {
                let all = IMAGE_TYPES.map(|(name, _)| (name.to_owned(), content.clone()));
                response.content.extend(all);
            }
        }
    }
}
