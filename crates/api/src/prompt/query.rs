//! The prompt's query, profile, settings and defaults.
//!
//! The query overrides the profile, which overrides the session's settings and the defaults.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroU64};

use exact_json::python::Characters;

use crate::intake::query::{
    Choice, Flag, ImagesName, Of, Text, Texts, Whole, many, many_to, queries,
};
use crate::intake::steps::exact_steps;
use crate::params::{Params, invalid};
use crate::refusal::Refusal;
use crate::schema::shapes::{member, number};
use crate::schema::{PROMPT_PART, pattern};
use crate::signed_url::ImageAddresses;
use blackboard_board::{
    AgentName, Board, Field, Filter, Headings, ImagesShown, Log, LogName, PROMPT_LATEST_MAX,
    PROMPT_MEMORIES_MAX, PROMPT_PARTS_MAX, PROMPT_PX_MAX, PROMPT_SCREENSHOTS_MAX,
    PROMPT_TOKENS_MAX, PromptFormat, PromptPart, PromptProfile, Revision, TextKeys, Tokenizer,
};
use blackboard_prompt::Syntax;

/// The version of what prompts look like, as a part of their tags: a new server may write another text for the same board.
const RENDERING: u32 = 2;

queries! {
    /// The query of a prompt.
    pub PromptQuery {
        /// The format, by default the original's `parts`; `Accept: text/markdown` also selects `markdown`
        format: Choice<PromptFormat>,
        /// Only these parts, at most 100 of them memories or messages. Their order in the prompt is fixed. Messages are the
        /// unacknowledged ones, and are never omitted
        include via parts: Vec<PromptPart> => many_to(pattern(PROMPT_PART), PROMPT_PARTS_MAX),
        /// Only these members of the items of trajectories and memories. Defaults to the session's `history_keys`, or
        /// to all members
        keys: Texts => many(member()),
        /// Only the last N items of each text log
        latest: Whole<1, PROMPT_LATEST_MAX>,
        /// Only this agent's steps and screenshots: entries that the agent appended, and entries without an author
        /// whose item has this `agent`
        agent: Of<AgentName>,
        /// Only steps with this `status`, or with this `status` in one of their `results`
        status: Text,
        /// Only steps whose `step` is one of these JSON numbers, by value
        steps via step_texts: Vec<String> => many(number()),
        /// Show the images of only the last K screenshots; each older screenshot is one line with its metadata and
        /// address
        screenshots: Whole<0, PROMPT_SCREENSHOTS_MAX>,
        /// The form of a stored image: `inline`, the default except for `markdown`; `url`, its address, absolute and
        /// signed if the server has a `--public-url`; or `none`, without the image
        images: ImagesName,
        /// The maximum length of an image's longest side, in pixels; larger images are scaled down to PNG or JPEG
        max_px: Whole<1, PROMPT_PX_MAX>,
        /// The token budget. To fit, the prompt first omits the images of the oldest screenshots, then the oldest
        /// trajectories, memory items, requests and answered questions, then screenshots. A last line and
        /// `Blackboard-Truncated` give the number omitted; `Blackboard-Tokens` is the estimate. Text is estimated by
        /// classes of characters, rather too high than too low, and an image as its provider states
        max_tokens: Whole<1, PROMPT_TOKENS_MAX>,
        /// The tokenizer family for `max_tokens`: by default the format's own, and for `markdown` `other`, which
        /// counts as the family that needs the most tokens
        tokenizer: Choice<Tokenizer>,
        /// True to escape characters beyond ASCII in items, as Python does: the default of `parts`, as in the original.
        /// False to write them, the default of the others: escapes take many times the tokens. No effect on `markdown`
        ascii: Flag,
        /// With `anthropic`: mark the end of the prefix that stays the same while steps are added, so that the provider
        /// caches it. No effect on other formats
        cache_marks: Flag,
        /// One of the session's `profiles`: the defaults of the query's parameters
        profile: Text,
    }
}

/// Takes the parts of a prompt.
fn parts(params: &mut Params, name: &'static str) -> Result<Option<Vec<PromptPart>>, Refusal> {
    let Some(parts) = params.list(name)? else { return Ok(None) };
    let parts = parts.iter().map(|part| part.parse().map_err(|why| invalid(name, why)));
    let parts = parts.collect::<Result<BTreeSet<PromptPart>, Refusal>>()?;
    if parts.iter().filter(|part| part.is_owned()).count() > PROMPT_MEMORIES_MAX {
        return Err(invalid(
            name,
            format!("takes at most {PROMPT_MEMORIES_MAX} memories and messages"),
        ));
    }
    Ok(Some(parts.into_iter().collect()))
}

/// Takes steps as they are written, each a JSON number.
fn step_texts(params: &mut Params, name: &'static str) -> Result<Option<Vec<String>>, Refusal> {
    let texts = params.list(name)?;
    texts.as_deref().map(exact_steps).transpose()?;
    Ok(texts)
}

impl PromptQuery {
    /// Takes the parameters. `prefers_markdown` is true if the request's `Accept` names Markdown.
    pub fn params(params: &mut Params, prefers_markdown: bool) -> Result<Self, Refusal> {
        let mut query = Self::take(params)?;
        query.format = query.format.or(prefers_markdown.then_some(PromptFormat::Markdown));
        Ok(query)
    }

    /// Returns the parameters that a profile has too.
    fn own_profile(&self) -> PromptProfile {
        let number = |number: Option<u64>| number.and_then(NonZeroU64::new);
        let Self { include, keys, agent, status, steps, .. } = self.clone();
        PromptProfile {
            format: self.format,
            include,
            keys,
            latest: number(self.latest),
            agent,
            status,
            steps,
            screenshots: self.screenshots,
            images: self.images,
            max_px: number(self.max_px),
            cache_marks: self.cache_marks,
            max_tokens: number(self.max_tokens),
            headings: None,
        }
    }

    /// Resolves the query for this board.
    pub fn of(&self, board: &Board) -> Result<PromptSpec, Refusal> {
        let settings = board.life().map(|life| &life.settings);
        let profile = match &self.profile {
            Some(name) => {
                let profiles = settings.and_then(|settings| settings.profiles.as_ref());
                let profile = profiles.and_then(|profiles| profiles.get(name.as_str()));
                profile.ok_or_else(|| invalid("profile", "is not a profile of this session"))?
            }
            None => &PromptProfile::default(),
        };
        let query = self.own_profile();
        let set = settings.and_then(|settings| settings.history_keys.as_ref());
        // Texts with configured keys are cached, since later prompts use the same keys.
        let keeps = query.keys.is_none() || query.keys.as_ref() == set;
        let all = query.or(profile);
        let format = all.format.unwrap_or_default();
        let keys = all.keys.as_ref().or(set).map(|keys| keys.as_slice().into());
        let steps = all.steps.as_deref().map(exact_steps).transpose()?;
        // Escapes are the original's; they cost other scripts many times the tokens.
        let is_ascii = self.ascii.unwrap_or(format == PromptFormat::Parts);
        let agent = all.agent.map(String::from);
        Ok(PromptSpec {
            format,
            characters: if is_ascii { Characters::Escaped } else { Characters::Written },
            tokenizer: self.tokenizer.unwrap_or(format.tokenizer()),
            parts: all
                .include
                .map_or_else(|| LogName::BOARD.map(PromptPart::Log).to_vec(), in_order),
            keys,
            keeps,
            latest: all.latest.map(|latest| count(latest.get())),
            steps: Filter {
                steps,
                ..Filter::of_texts([(Field::Status, all.status), (Field::Agent, agent.clone())])
            },
            seen_by: Filter::of_texts([(Field::Agent, agent)]),
            screenshots: all.screenshots.map(count),
            // An inline image is of no use in the middle of a text.
            images: all.images.unwrap_or(match Syntax::of(format) {
                Some(_) => ImagesShown::Inline,
                None => ImagesShown::Url,
            }),
            max_px: all.max_px.and_then(|max| NonZeroU32::try_from(max).ok()),
            cache_marks: all.cache_marks.unwrap_or_default(),
            max_tokens: all.max_tokens.map(NonZeroU64::get),
            headings: all.headings.unwrap_or_default(),
        })
    }
}

/// The content and the form of a prompt of a board.
pub struct PromptSpec {
    /// The provider's format.
    pub format: PromptFormat,
    /// The form of characters in the JSON formats.
    pub(super) characters: Characters,
    /// The family of tokenizers by which the budget counts.
    pub(super) tokenizer: Tokenizer,
    /// The parts, in the order shown.
    pub(super) parts: Vec<PromptPart>,
    keys: TextKeys,
    /// True if texts with these keys are cached, since other requests use the same keys.
    keeps: bool,
    pub(super) latest: Option<usize>,
    /// The filter of the steps of trajectories and memories.
    steps: Filter,
    /// The filter of screenshots.
    seen_by: Filter,
    pub(super) screenshots: Option<usize>,
    pub(super) images: ImagesShown,
    pub(super) max_px: Option<NonZeroU32>,
    pub(super) cache_marks: bool,
    pub(super) max_tokens: Option<u64>,
    pub(super) headings: Headings,
}

impl PromptSpec {
    /// Returns the members of a log's items to show, and true if their text is to be cached.
    pub(super) fn keys_of(&self, log: &LogName) -> (TextKeys, bool) {
        let keys = self.keys.clone().filter(|_| log.has_steps());
        let keeps = keys.is_none() || self.keeps;
        (keys, keeps)
    }

    /// Returns the logs that the prompt shows.
    pub fn logs(&self) -> impl Iterator<Item = &LogName> {
        self.parts.iter().filter_map(|part| match part {
            PromptPart::Log(log) => Some(log),
            PromptPart::State => None,
        })
    }

    /// Leaves a part out. Returns false if the prompt does not show it.
    pub fn omit(&mut self, part: &PromptPart) -> bool {
        let count = self.parts.len();
        self.parts.retain(|shown| shown != part);
        self.parts.len() < count
    }

    /// Returns the form of the prompt, as part of its tag besides the board and the query.
    pub fn form(&self, addresses: impl FnOnce() -> ImageAddresses) -> String {
        let shows_addresses = self.images == ImagesShown::Url;
        let addresses = if shows_addresses { addresses().version() } else { String::new() };
        format!("{RENDERING} {:?} {addresses}", self.format)
    }

    /// Returns the revision of the last change to anything that the prompt shows, including the settings.
    pub fn changed(&self, board: &Board) -> Revision {
        let configured = board.life().map(|life| life.configured).unwrap_or_default();
        let changed = self.parts.iter().filter_map(|part| match part {
            PromptPart::Log(log) => board.log(log).map(Log::changed),
            PromptPart::State => Some(board.state().changed()),
        });
        changed.fold(configured, Revision::max)
    }

    /// Returns the filter of a log's entries.
    pub(super) fn filter_of(&self, log: &LogName) -> Filter {
        match log {
            LogName::Trajectories | LogName::Memory(_) => self.steps.clone(),
            LogName::Screenshots => self.seen_by.clone(),
            LogName::Questions | LogName::Requests => Filter::default(),
            LogName::Messages(_) => Filter { unacked: true, ..Filter::default() },
        }
    }
}

/// Returns a number as a count, which saturates where memory ends.
fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Sorts the parts into their fixed order: the logs of the board, the state, the memories by name, the messages by name.
fn in_order(parts: Vec<PromptPart>) -> Vec<PromptPart> {
    let parts: BTreeSet<_> = parts.into_iter().collect();
    let (owned, others): (Vec<_>, Vec<_>) = parts.into_iter().partition(PromptPart::is_owned);
    others.into_iter().chain(owned).collect()
}
