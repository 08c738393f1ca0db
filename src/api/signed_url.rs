//! Signed image URLs, for a model provider that fetches a prompt's images.
//!
//! Without `--public-url` an address is a path for whoever asked. With it, it is whole and signed, and opens one
//! image of one entry in one size until its end, also where the server asks for tokens: who was given it has none.

use std::num::NonZeroU32;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::address::image_url;
use super::params::{Params, invalid};
use super::refusal::Refusal;
use crate::board::{Board, Code, Digest, Epoch, Image, Seq, SessionId, SessionName, Timestamp};
use crate::service::Service;

/// What a signature is of, before all that makes one differ from another.
const DOMAIN: &[u8] = b"blackboard image 1\n";

const DAY_S: u64 = 24 * 60 * 60;

/// How long before its end an address can have been given out.
const LIFE_S_MAX: u64 = 2 * DAY_S;

/// Parameters that wait for or show something else than the image that was signed.
const APART: [&str; 3] = ["at", "min_revision", "wait"];

/// Where images are found by those who are not our clients.
pub(crate) struct ImageAddresses {
    session: SessionName,
    outside: Option<Outside>,
}

/// What a signed address needs besides its image.
struct Outside {
    service: Service,
    public: Arc<str>,
    id: SessionId,
    expires: u64,
}

impl ImageAddresses {
    /// Those of one session's images.
    pub(crate) fn of(
        service: &Service,
        public: Option<Arc<str>>,
        board: &Board,
        session: &SessionName,
    ) -> Self {
        let outside = public.map(|public| Outside {
            service: service.clone(),
            public,
            id: board.id(),
            expires: end_of(seconds(service.now())),
        });
        Self { session: session.clone(), outside }
    }

    /// The address of an entry's image, at most so many pixels long and wide.
    pub(crate) fn of_image(&self, seq: Seq, image: &Image, max_px: Option<NonZeroU32>) -> String {
        let path = image_url(&self.session, seq);
        let size = max_px.map(|max_px| format!("max_px={max_px}"));
        let Some(Outside { service, public, id, expires }) = &self.outside else {
            return size.map_or(path.clone(), |size| format!("{path}?{size}"));
        };
        let grant = Grant {
            epoch: service.epoch(),
            session: *id,
            seq,
            sha256: image.sha256,
            max_px,
            expires: *expires,
        };
        let signature = URL_SAFE_NO_PAD.encode(service.sign(&grant.message()));
        let size = size.map(|size| format!("{size}&")).unwrap_or_default();
        format!("{public}{path}?{size}expires={expires}&signature={signature}")
    }

    /// What the addresses depend on besides the board: part of a prompt's tag.
    pub(crate) fn version(&self) -> String {
        let outside = self.outside.as_ref();
        outside.map(|outside| format!("{} {}", outside.expires, outside.public)).unwrap_or_default()
    }
}

/// When an address ends that is given out now: at the next midnight but one, so that equal prompts are equal
/// bytes all day.
fn end_of(now: u64) -> u64 {
    (now / DAY_S).saturating_add(2).saturating_mul(DAY_S)
}

fn seconds(now: Timestamp) -> u64 {
    u64::try_from(now.0.div_euclid(1000)).unwrap_or(0)
}

/// The numbers in a signed address; none of them is ever 0.
const NUMBERS: [&str; 2] = ["expires", "max_px"];

/// What a signature opens.
#[derive(Clone, Copy)]
struct Grant {
    epoch: Epoch,
    session: SessionId,
    seq: Seq,
    sha256: Digest,
    max_px: Option<NonZeroU32>,
    expires: u64,
}

impl Grant {
    /// What is signed. Every part has its length, so that no two grants give the same bytes.
    fn message(&self) -> Vec<u8> {
        [
            DOMAIN,
            &self.epoch.0.to_be_bytes(),
            self.session.0.as_bytes(),
            &self.seq.0.to_be_bytes(),
            &self.sha256.0,
            &self.max_px.map_or(0, NonZeroU32::get).to_be_bytes(),
            &self.expires.to_be_bytes(),
        ]
        .concat()
    }
}

/// The end and the signature of an address that was opened.
pub(crate) struct SignedQuery {
    expires: u64,
    signature: String,
}

impl SignedQuery {
    /// Takes `expires` and `signature`, which go together.
    pub(crate) fn params(params: &mut Params) -> Result<Option<Self>, Refusal> {
        // Another spelling of a number would be another address under the same signature.
        let has_zeros = NUMBERS.iter().any(|name| params.begins(name, "0"));
        if params.has("signature") && has_zeros {
            return Err(not_signed());
        }
        let expires = params.number("expires", 0..=u64::MAX)?;
        match (expires, params.text("signature")?) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(invalid("expires", "needs 'signature'")),
            (None, Some(_)) => Err(invalid("signature", "needs 'expires'")),
            (Some(expires), Some(signature)) => match APART.iter().find(|name| params.has(name)) {
                Some(name) => Err(invalid(name, "cannot be combined with 'signature'")),
                None => Ok(Some(Self { expires, signature })),
            },
        }
    }

    /// Refuses an address that was not given out for this image, or that is over. One that passes stands in for a
    /// token that may read this image and nothing else.
    pub(crate) fn check(
        &self,
        service: &Service,
        board: &Board,
        seq: Seq,
        image: &Image,
        max_px: Option<NonZeroU32>,
    ) -> Result<(), Refusal> {
        self.opens(
            service,
            &Grant {
                epoch: service.epoch(),
                session: board.id(),
                seq,
                sha256: image.sha256,
                max_px,
                expires: self.expires,
            },
        )
    }

    fn opens(&self, service: &Service, grant: &Grant) -> Result<(), Refusal> {
        let signature = URL_SAFE_NO_PAD.decode(&self.signature).unwrap_or_default();
        let is_valid = (1..=LIFE_S_MAX).contains(&self.left_s(service));
        if is_valid && service.has_signed(&grant.message(), &signature) {
            return Ok(());
        }
        Err(not_signed())
    }

    /// The seconds that the address is still valid.
    pub(crate) fn left_s(&self, service: &Service) -> u64 {
        self.expires.saturating_sub(seconds(service.now()))
    }
}

/// The refusal of a signed address. The same for each reason: the reader is whoever was given the address.
pub(crate) fn not_signed() -> Refusal {
    Refusal::new(
        Code::Forbidden,
        "the image URL is invalid or expired; read a new one from the prompt",
    )
}

#[cfg(test)]
mod tests;
