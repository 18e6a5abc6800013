//! The tokens and bytes that one conversation sends to the model, counted the same way whoever
//! sends them.

use crate::economy::count;
use crate::fake::model::Request;
use crate::figure::{Figure, Whose};
use crate::prompts::{messages, percent_not_repeated};

/// The turns of a session, as many as a usual task takes.
pub const SESSION: usize = 60;

/// The approximate number of bytes of a token, in English with code. No tokenizer is used: each
/// model has another, and what is wrong here is wrong for both.
const BYTES_PER_TOKEN: f64 = 4.0;

/// The tokens and bytes of the first sixty requests of the work, and of those before it.
pub struct Sent {
    /// The tokens of the first request of the work.
    first: f64,
    tokens: f64,
    kilobytes: f64,
    /// The percentage of each request that the next does not repeat.
    not_repeated: Vec<f64>,
}

impl Sent {
    /// Counts a session whose first `planning` requests belong to another conversation; they are in
    /// the sums.
    pub fn of(requests: &[Request], planning: usize) -> anyhow::Result<Self> {
        let session = requests.get(..planning + SESSION);
        let Some((planned, work)) = session.map(|session| session.split_at(planning)) else {
            anyhow::bail!("{} requests are no session of {SESSION} turns", requests.len());
        };
        let sent: Vec<String> = work
            .iter()
            .map(|request| messages(&request.body))
            .collect::<Result<_, _>>()?;
        let both = planned.iter().chain(work);
        Ok(Self {
            first: work.first().map_or(0.0, tokens),
            tokens: both.clone().map(tokens).sum(),
            kilobytes: both.map(|request| count(request.body.to_string().len())).sum::<f64>() / 1e3,
            not_repeated: sent
                .windows(2)
                .map(|pair| percent_not_repeated(&pair[0], &pair[1]))
                .collect(),
        })
    }

    /// Returns the figures of this session beside those of the peer's.
    pub fn beside(&self, peer: &Self) -> anyhow::Result<Vec<Figure>> {
        let both = |name, unit, own: f64, peers: f64| Ok(Figure::of(name, unit, &[own])?.beside(&[peers]));
        [
            both("the first request of the work", "tokens", self.first, peer.first),
            both("60 turns, all requests", "tokens", self.tokens, peer.tokens)
                .map(|figure| figure.at_least_gaining(1.0)),
            both("60 turns, bodies of all requests", "kB", self.kilobytes, peer.kilobytes),
        ]
        .into_iter()
        .collect()
    }

    /// Returns the figure of a session in which calls and results are text, beside the peer's, who
    /// has native calls only.
    pub fn in_json_beside(&self, peer: &Self) -> anyhow::Result<Figure> {
        Ok(Figure::of("60 turns in JSON, all requests", "tokens", &[self.tokens])?
            .beside(&[peer.tokens])
            .at_least_gaining(1.0))
    }

    /// Returns the figure of what the peer's server has not seen already.
    pub fn not_repeated(&self) -> anyhow::Result<Figure> {
        let name = "a request of mini-swe-agent, part not repeated";
        Ok(Figure::of(name, "%", &self.not_repeated)?.by(Whose::Peer))
    }
}

/// Returns how many tokens the model reads with a request: what was said, and the tools that are
/// described beside it.
pub fn tokens(request: &Request) -> f64 {
    let tools = request.body.get("tools").map_or(0, |tools| tools.to_string().len());
    (count(request.seen.len() + tools) / BYTES_PER_TOKEN).round()
}
