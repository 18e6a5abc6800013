//! The claim on an item that installations without a shared store see of one another: how it is
//! written, and what it means for the one that reads it.
//!
//! It is the message of a commit to which a ref of the item's repository points. Whoever may push
//! there can write one: what no installation would have written is not believed, and nothing is
//! believed for longer than [`LONGEST`]. All its times are the forge's own, because the clocks of
//! two machines may differ by more than a claim lasts.

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use uuid::Uuid;

use super::id::{ItemId, ItemKind, RunId};

/// Time for which a claim holds that nobody renews.
pub const LONGEST: TimeDelta = TimeDelta::minutes(15);

/// How far the clocks of a forge's servers may be apart.
const SERVERS_DIFFER: TimeDelta = TimeDelta::seconds(30);

/// The first line, for people who find the commit.
const HEADING: &str = "A claim of coding-agent, which works on this item or has worked on it.";

/// The content of a claim's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgeClaim {
    /// The installation: all workers that share one store.
    pub installation: Uuid,
    /// The process that wrote it.
    pub worker: Uuid,
    /// `None` before the run is written into the installation's store.
    pub run: Option<RunId>,
    /// When somebody asked for the work, as the forge tells it; `None` for a run that nobody asked
    /// for on the item.
    pub asked_at: Option<DateTime<Utc>>,
    pub until: DateTime<Utc>,
    /// Whether the run has ended.
    pub is_over: bool,
}

/// The state of a claim, as seen by an installation that wants to work on the item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nobody holds it.
    Free,
    /// The installation itself holds it.
    Own,
    /// Another installation holds it until then, unless it renews it.
    Held { by: Uuid, until: DateTime<Utc> },
    /// Another installation says that it has ended what was asked for.
    Served { by: Uuid },
    /// No installation has written this.
    Unbelievable(&'static str),
}

impl ForgeClaim {
    /// Returns the ref that holds the claims on an item.
    pub fn ref_of(item: &ItemId) -> String {
        let kind = match item.kind {
            ItemKind::Issue => "item",
            ItemKind::MergeRequest => "merge-request",
        };
        format!("refs/coding-agent/claims/{kind}-{}", item.number)
    }

    /// Returns the message of the claim's commit.
    pub fn text(&self) -> String {
        let time = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::AutoSi, true);
        let run = self.run.map(|run| run.to_string());
        let state = if self.is_over { "over" } else { "held" };
        format!(
            "{HEADING}\n\ninstallation: {}\nworker: {}\nrun: {}\nasked-at: {}\nuntil: {}\nstate: {state}\n",
            self.installation,
            self.worker,
            run.as_deref().unwrap_or(NONE),
            self.asked_at.map_or(NONE.to_owned(), time),
            time(self.until),
        )
    }

    /// Reads the message of a claim's commit; lines that a later version may add are passed over.
    pub fn read(text: &str) -> Option<Self> {
        let field = |name: &str| {
            let fields = text.lines().filter_map(|line| line.split_once(": "));
            let mut values = fields.filter(|(key, _)| *key == name).map(|(_, value)| value.trim());
            // Two answers to one question are none.
            values.next().filter(|_| values.next().is_none())
        };
        let time = |text: &str| DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
        let optional = |text: &str| (text != NONE).then(|| text.to_owned());
        Some(Self {
            installation: field("installation")?.parse().ok()?,
            worker: field("worker")?.parse().ok()?,
            run: match optional(field("run")?) {
                Some(run) => Some(run.parse().ok()?),
                None => None,
            },
            asked_at: match optional(field("asked-at")?) {
                Some(text) => Some(time(&text)?),
                None => None,
            },
            until: time(field("until")?)?,
            is_over: match field("state")? {
                "over" => true,
                "held" => false,
                _ => return None,
            },
        })
    }

    /// Judges what stands on the forge, for an installation that was asked at `asked_at`.
    pub fn standing(
        text: Option<&str>,
        installation: Uuid,
        asked_at: Option<DateTime<Utc>>,
        now: DateTime<Utc>,
    ) -> Standing {
        let Some(text) = text else { return Standing::Free };
        let Some(claim) = Self::read(text) else {
            return Standing::Unbelievable("it does not read as a claim");
        };
        let Some(left) = claim.until.checked_sub_signed(SERVERS_DIFFER) else {
            return Standing::Unbelievable("its time is no time");
        };
        if left > now + LONGEST {
            return Standing::Unbelievable("it would hold for longer than a claim does");
        }
        let is_own = claim.installation == installation;
        let by = claim.installation;
        let has_served = asked_at.zip(claim.asked_at).is_some_and(|(own, served)| served >= own);
        if claim.is_over && has_served && !is_own {
            return Standing::Served { by };
        }
        let until = claim.until + SERVERS_DIFFER;
        if claim.is_over || until < now {
            return Standing::Free;
        }
        if is_own {
            Standing::Own
        } else {
            Standing::Held { by, until }
        }
    }
}

/// Takes the place of a value that there is none of.
const NONE: &str = "none";

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn claim(until: &str, is_over: bool) -> ForgeClaim {
        ForgeClaim {
            installation: Uuid::from_u128(1),
            worker: Uuid::from_u128(2),
            run: None,
            asked_at: Some(at("2026-11-23T10:00:00Z")),
            until: at(until),
            is_over,
        }
    }

    #[test]
    fn a_claim_reads_as_it_was_written() {
        let mut claim = claim("2026-11-23T10:15:00.25Z", false);
        assert_eq!(ForgeClaim::read(&claim.text()), Some(claim.clone()));
        claim.run = Some(RunId::new());
        claim.asked_at = None;
        claim.is_over = true;
        assert_eq!(
            ForgeClaim::read(&format!("{}later: word\n", claim.text())),
            Some(claim.clone())
        );
        assert_eq!(ForgeClaim::read(&format!("{}state: held\n", claim.text())), None);
        for line in claim.text().lines().filter(|line| line.contains(": ")) {
            let without = claim.text().replace(line, "");
            assert_eq!(ForgeClaim::read(&without), None, "without {line}");
        }
    }

    #[test]
    fn a_claim_holds_by_the_forge_s_clock_and_no_longer_than_any_may() {
        let (own, other) = (Uuid::from_u128(1), Uuid::from_u128(9));
        let now = at("2026-11-23T10:10:00Z");
        let asked = |text: &str| Some(at(text));
        let standing =
            |claim: &ForgeClaim, who, asked_at| ForgeClaim::standing(Some(&claim.text()), who, asked_at, now);
        assert_eq!(ForgeClaim::standing(None, own, None, now), Standing::Free);
        let held = claim("2026-11-23T10:11:00Z", false);
        assert_eq!(standing(&held, own, None), Standing::Own);
        let until = at("2026-11-23T10:11:30Z");
        assert_eq!(standing(&held, other, None), Standing::Held { by: own, until });
        let lapsed = claim("2026-11-23T10:09:29Z", false);
        assert_eq!(standing(&lapsed, other, None), Standing::Free);
        for until in [
            "2026-11-23T10:25:31Z",
            "9999-12-31T23:59:59Z",
            "-262143-01-01T00:00:00Z",
        ] {
            let text = claim("2026-11-23T10:11:00Z", false)
                .text()
                .replace("2026-11-23T10:11:00Z", until);
            let standing = ForgeClaim::standing(Some(&text), other, None, now);
            assert!(
                !matches!(standing, Standing::Held { .. } | Standing::Own),
                "{until}: {standing:?}"
            );
        }
        assert!(matches!(
            ForgeClaim::standing(Some("Keep out.\n"), other, None, now),
            Standing::Unbelievable(_)
        ));
        let over = claim("2026-11-23T10:09:00Z", true);
        let served = Standing::Served { by: own };
        assert_eq!(standing(&over, other, asked("2026-11-23T10:00:00Z")), served);
        assert_eq!(standing(&over, other, asked("2026-11-23T10:00:01Z")), Standing::Free);
        assert_eq!(standing(&over, other, None), Standing::Free);
        assert_eq!(standing(&over, own, asked("2026-11-23T10:00:00Z")), Standing::Free);
    }
}
