//! Signed image URLs, for model providers that fetch images.
//!
//! Without `--public-url`, an address is a path for the caller. With it, an address is absolute and signed. A signed
//! address opens one image of one entry in one size until it expires. It needs no token, since a provider has none.

use std::num::NonZeroU32;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::intake::query::{AnyNumber, Text, queries};
use super::params::{Params, invalid};
use super::refusal::Refusal;
use super::schema::pattern;
use blackboard_address::image_url;
use blackboard_board::{Board, Code, Digest, Epoch, Image, Seq, SessionId, SessionName, Timestamp};
use blackboard_service::Service;

/// The domain of signatures: the first bytes of each signed message.
const DOMAIN: &[u8] = b"blackboard image 1\n";

const DAY_S: u64 = 24 * 60 * 60;

/// The maximum lifetime of an address.
const LIFE_S_MAX: u64 = 2 * DAY_S;

/// The parameters that a signed address must not have: they select another image or wait.
const APART: [&str; 3] = ["at", "min_revision", "wait"];

/// The image addresses of a session.
pub struct ImageAddresses {
    session: SessionName,
    outside: Option<Outside>,
}

/// The facts of a signed address besides its image.
struct Outside {
    service: Service,
    public: Arc<str>,
    id: SessionId,
    expires: u64,
}

impl ImageAddresses {
    /// Creates the addresses of a session's images. They are signed if there is a `public` URL.
    pub fn of(
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

    /// Returns the address of an entry's image, scaled down to `max_px` on the longest side.
    pub fn of_image(&self, seq: Seq, image: &Image, max_px: Option<NonZeroU32>) -> String {
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
        let signature = URL_SAFE_NO_PAD.encode(service.signing_key().sign(&grant.message()));
        let size = size.map(|size| format!("{size}&")).unwrap_or_default();
        format!("{public}{path}?{size}expires={expires}&signature={signature}")
    }

    /// Returns the facts that the addresses depend on besides the board, as part of a prompt's tag.
    pub(crate) fn version(&self) -> String {
        let outside = self.outside.as_ref();
        outside.map(|outside| format!("{} {}", outside.expires, outside.public)).unwrap_or_default()
    }
}

/// Returns the expiry of a new address: the midnight after next, so that equal prompts have equal bytes all day.
fn end_of(now: u64) -> u64 {
    (now / DAY_S).saturating_add(2).saturating_mul(DAY_S)
}

fn seconds(now: Timestamp) -> u64 {
    u64::try_from(now.0.div_euclid(1000)).unwrap_or(0)
}

/// The numbers in a signed address. None is ever 0.
const NUMBERS: [&str; 2] = ["expires", "max_px"];

/// The access that a signature grants.
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
    /// Returns the bytes to sign. Each part has a fixed length, so that two grants never have the same bytes.
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

queries! {
    /// The signature of an image address.
    pub SignatureQuery {
        /// The expiry of a signed address, in seconds since 1970; needs `signature`
        expires: AnyNumber,
        /// The signature of an address; 403 if it is expired or not for this image. Needs `expires`; not with `at`,
        /// `min_revision` or `wait`
        signature: Text => pattern("^[A-Za-z0-9_-]{43}$"),
    }
}

/// The expiry and the signature of a requested address.
pub struct SignedQuery {
    expires: u64,
    signature: String,
}

impl SignedQuery {
    /// Takes `expires` and `signature`, which need each other.
    pub fn params(params: &mut Params) -> Result<Option<Self>, Refusal> {
        // Leading zeros would make a second address with the same signature.
        let has_zeros = NUMBERS.iter().any(|name| params.begins(name, "0"));
        if params.has("signature") && has_zeros {
            return Err(not_signed());
        }
        let SignatureQuery { expires, signature } = SignatureQuery::take(params)?;
        match (expires, signature) {
            (None, None) => Ok(None),
            (Some(_), None) => Err(invalid("expires", "needs 'signature'")),
            (None, Some(_)) => Err(invalid("signature", "needs 'expires'")),
            (Some(expires), Some(signature)) => match APART.iter().find(|name| params.has(name)) {
                Some(name) => Err(invalid(name, "cannot be combined with 'signature'")),
                None => Ok(Some(Self { expires, signature })),
            },
        }
    }

    /// Refuses an address that is expired, or not signed for this image. A valid address replaces a token, for this
    /// image only.
    pub fn check(
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
        if is_valid && service.signing_key().has_signed(&grant.message(), &signature) {
            return Ok(());
        }
        Err(not_signed())
    }

    /// Returns the remaining validity in seconds.
    pub fn left_s(&self, service: &Service) -> u64 {
        self.expires.saturating_sub(seconds(service.now()))
    }
}

/// Returns the refusal of a signed address. It is the same for each reason, since the reader is unknown.
pub fn not_signed() -> Refusal {
    Refusal::new(
        Code::Forbidden,
        "the image URL is invalid or expired; get a new one from the prompt",
    )
}

#[cfg(test)]
mod tests;
