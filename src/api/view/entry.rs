//! Entries and items as JSON, with selected members and the form of stored images.

use std::fmt::Write as _;
use std::sync::Arc;

use super::inline_image::Inline;
use crate::api::address::image_url;
use crate::api::params::{Params, invalid};
use crate::api::refusal::Refusal;
use crate::api::yielding::Turns;
use crate::board::{
    Awaited, Board, Claim, Done, Entry, IMAGE_MEMBER, Image, ImagesShown, Item, LogName, Question,
    SessionName, Timestamp, Work, json,
};
use crate::service::{Service, ServiceError};

/// The parameter `images`.
pub(crate) fn images_param(params: &mut Params) -> Result<Option<ImagesShown>, Refusal> {
    params.choice("images", &ImagesShown::NAMED)
}

/// The parameter `keys`: the names of members.
pub(crate) fn keys_param(params: &mut Params) -> Result<Option<Arc<[String]>>, Refusal> {
    const KEYS_MAX: usize = 1000;
    let keys = params.list("keys")?;
    if keys.as_ref().is_some_and(|keys| keys.len() > KEYS_MAX) {
        return Err(invalid("keys", format!("names at most {KEYS_MAX} members")));
    }
    Ok(keys.map(Arc::from))
}

/// How items are shown.
#[derive(Clone, Debug)]
pub(crate) struct View {
    /// Their session, whose name the addresses of images contain.
    pub(crate) session: SessionName,
    /// Only these members, where some are named.
    pub(crate) keys: Option<Arc<[String]>>,
    /// What stands for a stored image.
    pub(crate) images: ImagesShown,
}

impl View {
    fn shows(&self, member: &str) -> bool {
        self.keys.as_ref().is_none_or(|keys| keys.iter().any(|key| key == member))
    }

    /// Writes an entry in its envelope.
    pub(crate) async fn write_entry(
        &self,
        service: &Service,
        board: &Board,
        entry: &Entry,
        out: &mut String,
    ) -> Result<(), ServiceError> {
        match self.begin_entry(service, board, entry, out).await? {
            Some(rest) => rest.write_all(out).await,
            None => Ok(()),
        }
    }

    /// Writes an entry in its envelope up to its stored image, where that is shown in its place.
    pub(crate) async fn begin_entry(
        &self,
        service: &Service,
        board: &Board,
        entry: &Entry,
        out: &mut String,
    ) -> Result<Option<Inline>, ServiceError> {
        out.push('{');
        write_envelope(entry, awaited(board, entry).map(|until| until.expires_at), out);
        let rest = self.begin_item(service, board, &entry.item, out).await?;
        if let Some(rest) = rest {
            return Ok(Some(rest.and("}")));
        }
        if let (ImagesShown::Url, Some(image)) = (self.images, entry.item.image()) {
            write_image(&image_url(&self.session, entry.seq), image, out);
        }
        out.push('}');
        Ok(None)
    }

    /// Writes an item alone, up to its stored image, where that is shown in its place.
    pub(crate) async fn begin_item(
        &self,
        service: &Service,
        board: &Board,
        item: &Item,
        out: &mut String,
    ) -> Result<Option<Inline>, ServiceError> {
        let shows_image = self.images == ImagesShown::Inline && self.shows(IMAGE_MEMBER);
        let Some(image) = item.image().filter(|_| shows_image) else {
            self.write_imageless(item, out).await?;
            return Ok(None);
        };
        let selected = match self.keys {
            Some(_) => {
                self.worked(item, |view, item| item.selected(|name| view.shows(name))).await?
            }
            None => item.clone(),
        };
        let (before, after) = selected.around_image();
        out.push_str(before);
        Ok(Some(Inline::new(service.image_pieces(board, image).await?, after)))
    }

    /// Writes an item without its stored image, where it has one.
    async fn write_imageless(&self, item: &Item, out: &mut String) -> Result<(), ServiceError> {
        if self.keys.is_none() && item.image().is_none() {
            out.push_str(item.text());
            return Ok(());
        }
        let select = |view: &Self, item: &Item| {
            let is_shown =
                |name: &str| view.shows(name) && (item.image().is_none() || name != IMAGE_MEMBER);
            json::select(item.text(), is_shown)
        };
        out.push_str(&self.worked(item, select).await?);
        Ok(())
    }

    /// Makes something of an item's text; where it may block, if that is long.
    async fn worked<T: Send + 'static>(
        &self,
        item: &Item,
        work: impl FnOnce(&Self, &Item) -> T + Send + 'static,
    ) -> Result<T, ServiceError> {
        let (view, item) = (self.clone(), item.clone());
        Turns::default().make(item.bytes(), move || work(&view, &item)).await
    }
}

/// Writes an item without its stored image, where it has one.
pub(crate) fn write_imageless(item: &Item, out: &mut String) {
    match item.image() {
        Some(_) => out.push_str(&json::select(item.text(), |name| name != IMAGE_MEMBER)),
        None => out.push_str(item.text()),
    }
}

/// Writes the members of an open question's envelope. No board is needed for that, and no image's bytes.
pub(crate) fn write_asked(session: &SessionName, question: &Question, out: &mut String) {
    let Question { entry, expires_at } = question;
    write_envelope(entry, *expires_at, out);
    write_imageless(&entry.item, out);
    if let Some(image) = entry.item.image() {
        write_image(&image_url(session, entry.seq), image, out);
    }
}

fn write_envelope(entry: &Entry, expires_at: Option<Timestamp>, out: &mut String) {
    let Entry { seq, revision, at, agent, updated, .. } = entry;
    push(out, format_args!("\"seq\":{seq},\"revision\":{revision},\"at\":\"{at}\""));
    if let Some(agent) = agent {
        out.push_str(",\"agent\":");
        json::quote(agent.as_str(), out);
    }
    if let Some(updated) = updated {
        push(out, format_args!(",\"updated_at\":\"{}\"", updated.at));
        if let Some(by) = &updated.by {
            out.push_str(",\"updated_by\":");
            json::quote(by.as_str(), out);
        }
    }
    if let Some(expires_at) = expires_at {
        push(out, format_args!(",\"expires_at\":\"{expires_at}\""));
    }
    match entry.work.as_deref() {
        Some(Work::Claimed(claim)) => write_claim(claim, out),
        Some(Work::Done(done)) => write_done(done, out),
        Some(Work::Lapsed { .. }) | None => {}
    }
    out.push_str(",\"item\":");
}

/// Until when an entry waits for its answer. Only a question can, and the entries of other logs have the
/// same seqs.
fn awaited<'a>(board: &'a Board, entry: &Entry) -> Option<&'a Awaited> {
    let awaited = board.asked().awaited(entry.seq)?;
    let question = board.log(&LogName::Questions)?.get(entry.seq)?;
    std::ptr::eq(&raw const **question, entry).then_some(awaited)
}

/// Writes who works on a request, as a member that follows another.
pub(crate) fn write_claim(claim: &Claim, out: &mut String) {
    let Claim { agent, fence, expires_at } = claim;
    out.push_str(",\"claim\":{\"agent\":");
    json::quote(agent.as_str(), out);
    push(out, format_args!(",\"fence\":{fence},\"expires_at\":\"{expires_at}\"}}"));
}

/// Writes what came of a request, as a member that follows another.
pub(crate) fn write_done(done: &Done, out: &mut String) {
    let Done { agent, at, fence, result } = done;
    out.push_str(",\"done\":{");
    if let Some(agent) = agent {
        out.push_str("\"agent\":");
        json::quote(agent.as_str(), out);
        out.push(',');
    }
    push(out, format_args!("\"at\":\"{at}\""));
    if let Some(fence) = fence {
        push(out, format_args!(",\"fence\":{fence}"));
    }
    if let Some(result) = result {
        out.push_str(",\"result\":");
        out.push_str(result.text());
    }
    out.push('}');
}

/// Writes what stands for a stored image, as a member that follows another.
pub(crate) fn write_image(url: &str, image: &Image, out: &mut String) {
    out.push_str(",\"image\":{\"url\":");
    json::quote(url, out);
    out.push_str(",\"media_type\":");
    json::quote(image.media_type(), out);
    push(out, format_args!(",\"bytes\":{},\"sha256\":\"{}\"", image.bytes, image.sha256));
    if let Some((width, height)) = image.size {
        push(out, format_args!(",\"width\":{width},\"height\":{height}"));
    }
    out.push('}');
}

/// Writes to a string, which cannot fail.
pub(crate) fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    if out.write_fmt(text).is_err() {
        tracing::error!("a string did not take what was written to it");
    }
}
