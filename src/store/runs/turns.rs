//! Turns: what one worker at a time does, or a few do at once, whichever machine they are on.

use std::time::Duration;

use uuid::Uuid;

use crate::store::engine::{Alive, Purpose};
use crate::store::sql::{Statement, micros};
use crate::store::{Store, StoreError, again};

/// A turn that was taken. It ends by [`Store::end_turn`], with its time, or with its worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    name: String,
    place: i64,
    token: Uuid,
}

impl Store {
    /// Takes one of `places` turns at something, for at most `time`; `None` while all are taken.
    pub async fn take_turn(&self, name: &str, places: u32, time: Duration) -> Result<Option<Turn>, StoreError> {
        again!(self.take_turn_once(name, places, time))
    }

    async fn take_turn_once(&self, name: &str, places: u32, time: Duration) -> Result<Option<Turn>, StoreError> {
        let now = self.engine.now().await?;
        let mut transaction = self.engine.begin(Purpose::Claim).await?;
        let query = Statement::new("SELECT place, worker, expires_at FROM turns WHERE name = $1 ORDER BY place");
        let taken = transaction.fetch(query.with(name)).await?;
        let workers: Vec<Uuid> = taken.iter().filter_map(|row| row.text(1).ok()?.parse().ok()).collect();
        let seen = if workers.is_empty() {
            std::collections::HashMap::new()
        } else {
            self.engine.liveness().of_all(&workers).await?
        };
        let mut places_taken = Vec::new();
        for row in &taken {
            let is_dead = row
                .text(1)?
                .parse::<Uuid>()
                .is_ok_and(|worker| seen.get(&worker) == Some(&Alive::No));
            if !is_dead && row.number(2)? >= micros(now) {
                places_taken.push(row.number(0)?);
            }
        }
        let Some(place) = (0..i64::from(places)).find(|place| !places_taken.contains(place)) else {
            return Ok(None);
        };
        let turn = Turn {
            name: name.to_owned(),
            place,
            token: Uuid::new_v4(),
        };
        let set = Statement::new(
            "INSERT INTO turns (name, place, token, worker, expires_at) VALUES ($1, $2, $3, $4, $5)
             ON CONFLICT (name, place) DO UPDATE SET token = excluded.token, worker = excluded.worker,
                 expires_at = excluded.expires_at",
        );
        let set = set.with(name).with(place).with(turn.token).with(self.worker());
        transaction.execute(set.with(now + time)).await?;
        transaction.commit().await?;
        Ok(Some(turn))
    }

    /// Extends a turn; returns false if somebody else has taken it meanwhile.
    pub async fn keep_turn(&self, turn: &Turn, time: Duration) -> Result<bool, StoreError> {
        let until = self.engine.now().await? + time;
        let update = Statement::new("UPDATE turns SET expires_at = $4 WHERE name = $1 AND place = $2 AND token = $3");
        let update = update.with(turn.name.as_str()).with(turn.place).with(turn.token);
        Ok(self.execute(update.with(until)).await? == 1)
    }

    /// Ends a turn, so that the next may have it.
    pub async fn end_turn(&self, turn: &Turn) -> Result<(), StoreError> {
        let delete = Statement::new("DELETE FROM turns WHERE name = $1 AND place = $2 AND token = $3");
        let delete = delete.with(turn.name.as_str()).with(turn.place).with(turn.token);
        self.execute(delete).await?;
        Ok(())
    }
}
