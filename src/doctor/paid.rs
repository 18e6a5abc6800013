//! Counts the replies that an examination takes of models, as all others are: in the journal, and
//! for the limits of a day.
//!
//! An examination needs no store and makes none: where there is none yet, nothing is counted.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::folders;
use crate::agent::record::usage::ModelCall;
use crate::config::Config;
use crate::finding::Finding;
use crate::http::remedy::Reason;
use crate::llm::chat::PaidReply;
use crate::llm::config::role::Role;
use crate::secret::Redactor;
use crate::store::{Address, Store, StoreError};

/// Longest time that counting may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts replies, each with the role of its model; says if that is not possible.
pub(super) async fn count(config: &Config, paid: &[(Role, PaidReply)]) -> Option<Finding> {
    let address = config.store();
    if paid.is_empty() || !folders::is_made(&address) {
        return None;
    }
    let reason = match timeout(PATIENCE, count_in(address, config, paid)).await {
        Ok(Ok(())) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("the store did not answer within {} s", PATIENCE.as_secs()),
    };
    let Reason { what, .. } = Reason::of_own_words(&reason);
    Some(Finding::doubtful(
        "usage of models",
        format!("what this examination used is in no sum: {what}"),
        "see what is said of the store",
    ))
}

async fn count_in(address: Address, config: &Config, paid: &[(Role, PaidReply)]) -> Result<(), StoreError> {
    let store = Store::open(address).await?;
    let calls: Vec<ModelCall<'_>> = paid
        .iter()
        .map(|(role, reply)| ModelCall {
            model: &reply.model,
            role: *role,
            usage: reply.usage,
            took: reply.took,
        })
        .collect();
    let redactor = Arc::new(Redactor::new(&config.secrets()));
    let per_day = &config.budget.per_day;
    per_day.count_apart(&store, (&config.logs, &redactor), &calls).await
}
