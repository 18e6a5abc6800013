//! The claim on an item on its forge, by which installations that share no store keep from working
//! on the same one.
//!
//! Within an installation the store decides who works. Of this claim only one installation at a
//! time has the newest commit, so whoever lost it (its machine slept, or was cut off) can neither
//! renew it nor push, and learns of it there. A forge that takes no such refs is worked on without.

use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::{Mutex, MutexGuard};

use crate::agent::claim::git_login::login;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::sections::WrittenClaim;
use crate::agent::services::Services;
use crate::forge::{Forge, ForgeError};
use crate::journal::fact::{Fact, Subject};
use crate::repository::RepositoryError;
use crate::repository::git::address::Remote;
use crate::repository::remote::claiming::{Claims, FoundClaim};
use crate::repository::remote::pushing::Pushable;
use crate::task::forge_claim::{ForgeClaim, LONGEST, Standing};
use crate::task::id::{RunId, TaskId};
use crate::task::labels::Labels;

/// A claim that holds for a shorter time is renewed before something is shown that cannot be taken
/// back.
const SAFE: TimeDelta = TimeDelta::minutes(10);
/// Longest time until a run looks again at an item that another installation holds.
const LOOK_AGAIN: TimeDelta = TimeDelta::minutes(2);
/// Number of attempts to set a claim while others set it at the same moment.
const MOST_TRIES: usize = 5;

/// The work for which an installation claims an item.
#[derive(Debug, Clone)]
pub struct Asking {
    pub task: TaskId,
    /// `None` before the run is written into the store.
    pub run: Option<RunId>,
    /// When somebody asked for the work.
    pub asked_at: Option<DateTime<Utc>>,
}

/// The claim of one run, or of an item for which a run is about to be written down.
pub struct ClaimOnForge {
    services: Arc<Services>,
    forge: Arc<dyn Forge>,
    labels: Labels,
    asking: Asking,
    /// The claim's ref.
    name: String,
    hold: Mutex<Hold>,
}

enum Hold {
    /// Not claimed: not yet, not any more, or the forge takes no claims.
    Nothing,
    Claim(WrittenClaim),
    /// Another installation, or another process of this one, has claimed it since.
    Lost,
}

/// What a claim says of the work on the item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    UnderWay,
    Over,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    Claimed(WrittenClaim),
    /// A run of this installation holds it.
    Own,
    /// The forge takes no claims.
    Unguarded,
    /// Another installation holds it, until then by the forge's clock unless it is renewed.
    Held {
        by: String,
        until: DateTime<Utc>,
        now: DateTime<Utc>,
    },
    /// Another installation has done what was asked for.
    Served {
        by: String,
    },
}

/// Why it is not known whether an item is claimed.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

impl From<ClaimError> for Interruption {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::Forge(error) => error.into(),
            ClaimError::Repository(error) => error.into(),
        }
    }
}

/// A commit that is pushed together with a renewal of the claim.
pub(crate) struct Fenced<'a> {
    pub(crate) pushable: Pushable,
    renewal: Option<(MutexGuard<'a, Hold>, WrittenClaim)>,
}

impl ClaimOnForge {
    /// Prepares a claim; `None` for a task without a forge. Contacts nobody.
    pub fn new(services: Arc<Services>, forge: Arc<dyn Forge>, labels: Labels, asking: Asking) -> Option<Self> {
        let name = ForgeClaim::ref_of(asking.task.item()?);
        Some(Self {
            services,
            forge,
            labels,
            asking,
            name,
            hold: Mutex::new(Hold::Nothing),
        })
    }

    /// Claims the item; `known` is the installation's own claim, if one was written before.
    pub async fn take(&self, known: Option<&WrittenClaim>) -> Result<Taken, ClaimError> {
        match self.try_to_take(known).await {
            // Whatever it is, the stages that need it meet it and say so; nothing keeps others away
            // meanwhile.
            Err(ClaimError::Repository(
                error @ (RepositoryError::Refused { .. }
                | RepositoryError::ForceRefused { .. }
                | RepositoryError::Unexpected { .. }),
            )) => {
                tracing::info!(task = %self.asking.task, "it is worked on without a claim on the forge: {error}");
                Ok(Taken::Unguarded)
            }
            taken => taken,
        }
    }

    async fn try_to_take(&self, known: Option<&WrittenClaim>) -> Result<Taken, ClaimError> {
        let mut hold = self.hold.lock().await;
        let now = self.forge.now(&self.asking.task).await?;
        if let Some(known) = known.filter(|known| known.until - now > SAFE) {
            *hold = Hold::Claim(known.clone());
            return Ok(Taken::Claimed(known.clone()));
        }
        let claims = self.claims().await?;
        let mut from = known.map(|known| known.commit.clone());
        for _ in 0..MOST_TRIES {
            let until = now + LONGEST;
            if let Some(commit) = claims
                .set(&self.name, from.as_ref(), &self.text(until, Work::UnderWay))
                .await?
            {
                let written = WrittenClaim { commit, until };
                *hold = Hold::Claim(written.clone());
                return Ok(Taken::Claimed(written));
            }
            let found = claims.read(&self.name).await?;
            match self.standing(found.as_ref(), now) {
                Standing::Own if self.asking.run.is_none() => return Ok(Taken::Own),
                Standing::Held { by, until } => {
                    let by = by.to_string();
                    return Ok(Taken::Held { by, until, now });
                }
                Standing::Served { by } => {
                    if self.shows_an_end().await? {
                        return Ok(Taken::Served { by: by.to_string() });
                    }
                    self.doubt("the item shows no end of the work that it tells of");
                }
                Standing::Unbelievable(why) => self.doubt(why),
                Standing::Free | Standing::Own => {}
            }
            from = found.map(|found| found.commit);
        }
        Err(ClaimError::Repository(RepositoryError::Unavailable {
            what: format!("claiming {}", self.asking.task),
            reason: "others set the claim each time".to_owned(),
        }))
    }

    /// Claims the item for the work on a run.
    pub(crate) async fn begin(&self, known: Option<&WrittenClaim>) -> Result<(), Interruption> {
        match self.take(known).await? {
            Taken::Claimed(_) | Taken::Own | Taken::Unguarded => Ok(()),
            Taken::Held { until, now, .. } => {
                // By its own clock, which the store goes by.
                let until = Utc::now() + (until - now).clamp(TimeDelta::seconds(1), LOOK_AGAIN);
                Err(Interruption::ClaimedElsewhere { until })
            }
            Taken::Served { .. } => Err(Interruption::FinishedElsewhere),
        }
    }

    /// Renews the claim; returns false if it was lost.
    pub(crate) async fn renew(&self) -> Result<bool, ClaimError> {
        let mut hold = self.hold.lock().await;
        let mut from = match &*hold {
            Hold::Claim(claimed) => claimed.commit.clone(),
            Hold::Nothing => return Ok(true),
            Hold::Lost => return Ok(false),
        };
        let claims = self.claims().await?;
        let until = self.forge.now(&self.asking.task).await? + LONGEST;
        let text = self.text(until, Work::UnderWay);
        for _ in 0..MOST_TRIES {
            if let Some(commit) = claims.set(&self.name, Some(&from), &text).await? {
                *hold = Hold::Claim(WrittenClaim { commit, until });
                return Ok(true);
            }
            match claims.read(&self.name).await? {
                // A renewal of this process whose answer was lost.
                Some(found) if self.is_own_word(&found) => from = found.commit,
                _ => break,
            }
        }
        *hold = Hold::Lost;
        Ok(false)
    }

    /// Makes sure that the claim still holds, before something is shown that cannot be taken back.
    /// A forge that cannot be asked changes nothing: nobody else can claim it there either.
    pub(crate) async fn confirm(&self) -> Result<(), Interruption> {
        let until = match &*self.hold.lock().await {
            Hold::Claim(claimed) => claimed.until,
            Hold::Nothing => return Ok(()),
            Hold::Lost => return Err(lost()),
        };
        let now = self.forge.now(&self.asking.task).await;
        if now.is_ok_and(|now| until - now > SAFE) {
            return Ok(());
        }
        self.confirm_now().await
    }

    /// Renews the claim at once, however long it still holds: a push was refused, and may have been
    /// refused for it.
    pub(crate) async fn confirm_now(&self) -> Result<(), Interruption> {
        match self.renew().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(lost()),
            Err(error) => {
                tracing::warn!(task = %self.asking.task, "the claim could not be renewed: {error}");
                Ok(())
            }
        }
    }

    /// Ends the claim: what was asked for is done, or will not be done.
    pub async fn end(&self) {
        let mut hold = self.hold.lock().await;
        let Hold::Claim(claimed) = &*hold else { return };
        let ended = async {
            let now = self.forge.now(&self.asking.task).await?;
            let text = self.text(now, Work::Over);
            let claims = self.claims().await?;
            Ok::<_, ClaimError>(claims.set(&self.name, Some(&claimed.commit), &text).await?)
        };
        if let Err(error) = ended.await {
            tracing::warn!(task = %self.asking.task, "the claim could not be ended, it runs out by itself: {error}");
        }
        *hold = Hold::Nothing;
    }

    async fn fence(&self, pushable: Pushable) -> Result<Fenced<'_>, Interruption> {
        let hold = self.hold.lock().await;
        let from = match &*hold {
            Hold::Claim(claimed) => claimed.commit.clone(),
            Hold::Nothing => {
                return Ok(Fenced {
                    pushable,
                    renewal: None,
                });
            }
            Hold::Lost => return Err(lost()),
        };
        let until = self.forge.now(&self.asking.task).await? + LONGEST;
        let text = self.text(until, Work::UnderWay);
        let (pushable, commit) = pushable.fenced(&self.name, &from, &text).await?;
        Ok(Fenced {
            pushable,
            renewal: Some((hold, WrittenClaim { commit, until })),
        })
    }

    /// Returns the claims in the item's own repository.
    async fn claims(&self) -> Result<Claims, ClaimError> {
        let (url, credentials) = self.forge.home(&self.asking.task).await?;
        let settings = &self.services.settings;
        let remote = Remote {
            url,
            login: Some(login(credentials)),
        };
        Ok(Claims::of(&settings.repository, &settings.state_dir, remote).await?)
    }

    fn text(&self, until: DateTime<Utc>, work: Work) -> String {
        let claim = ForgeClaim {
            installation: self.services.installation,
            worker: self.services.store.worker(),
            run: self.asking.run,
            asked_at: self.asking.asked_at,
            until,
            is_over: work == Work::Over,
        };
        claim.text()
    }

    fn standing(&self, found: Option<&FoundClaim>, now: DateTime<Utc>) -> Standing {
        let text = found.map(|found| found.text.as_str());
        ForgeClaim::standing(text, self.services.installation, self.asking.asked_at, now)
    }

    fn is_own_word(&self, found: &FoundClaim) -> bool {
        let claim = ForgeClaim::read(&found.text);
        // For a run that was asked for anew the producer of this process writes one without a run.
        let is_own = |claim: ForgeClaim| {
            let is_of_run = claim.run.is_none() || claim.run == self.asking.run;
            claim.worker == self.services.store.worker() && is_of_run && !claim.is_over
        };
        claim.is_some_and(is_own)
    }

    /// Tells whether people see on the item that the work has ended. Whoever may push can write
    /// that it has, and would have the item passed over for good.
    async fn shows_an_end(&self) -> Result<bool, ClaimError> {
        let item = self.forge.item(&self.asking.task).await?;
        let is_ended = !item.is_open || self.labels.show_an_end(&item.labels);
        Ok(is_ended && !item.labels.contains(&self.labels.trigger))
    }

    /// Says that a claim was not believed.
    fn doubt(&self, why: &str) {
        let subject = Subject {
            task: Some(self.asking.task.clone()),
            run: self.asking.run,
        };
        let text = format!(
            "somebody who may push has set {} in the item's repository, and it is not obeyed: {why}",
            self.name
        );
        self.services.journal.record(&subject, Fact::Warned { text });
    }
}

impl Fenced<'_> {
    /// Notes that the push went through, and the renewal with it.
    pub(crate) fn passed(self) {
        if let Some((mut hold, written)) = self.renewal {
            *hold = Hold::Claim(written);
        }
    }
}

/// Has a push to the repository at `home`, which the item lives in, renew the claim in the same
/// step. For a push to another repository, the claim is made sure of before.
pub(crate) async fn fenced<'a>(
    on_forge: Option<&'a ClaimOnForge>,
    pushable: Pushable,
    home: &str,
) -> Result<Fenced<'a>, Interruption> {
    if let Some(on_forge) = on_forge {
        if pushable.goes_to(home) {
            return on_forge.fence(pushable).await;
        }
        on_forge.confirm().await?;
    }
    Ok(Fenced {
        pushable,
        renewal: None,
    })
}

/// Returns the interruption of a run whose claim was lost.
pub(crate) fn lost() -> Interruption {
    Interruption::ClaimedElsewhere {
        until: Utc::now() + TimeDelta::minutes(1),
    }
}
