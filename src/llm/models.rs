//! The models of a process, by role.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::llm::config::model_config::OWN;
use crate::llm::config::role::Role;
use crate::llm::config::{Config, Roles};
use crate::llm::connection::Connection;
use crate::llm::error::LlmError;
use crate::llm::local_only::LocalOnlyRules;
use crate::llm::model::Model;

/// The models of a process, by role.
pub struct Models {
    /// By their names in the configuration.
    connections: BTreeMap<String, Arc<Connection>>,
    /// The one of the provider's own section, for roles that name no other.
    own: Arc<Connection>,
    roles: Roles,
    /// The names of those that are ever asked.
    used: Vec<String>,
    local_only: LocalOnlyRules,
}

impl Models {
    /// Returns the models that `config` gives a role. Does not touch the network.
    pub fn new(config: &Config) -> Result<Self, LlmError> {
        let mut connections = BTreeMap::new();
        let used = config.used_models();
        for name in &used {
            connect(config, name, &mut connections, 0)?;
        }
        let own = connect(config, OWN, &mut connections, 0)?;
        Ok(Self {
            connections,
            own,
            roles: config.roles.clone(),
            used,
            local_only: LocalOnlyRules::new(config),
        })
    }

    /// Returns the model of `role`. For confidential work, that is where the rule `local_only`
    /// demands it, the one of the role `local_only` takes its place if there is one, and whichever
    /// it is refuses to send to a server that is not local.
    pub fn of(&self, role: Role, local_only: Option<&str>) -> Model {
        let local_only = local_only
            .map(str::to_owned)
            .or_else(|| self.local_only_rule(None, &[]));
        let near = self.roles.named(Role::LocalOnly).filter(|_| local_only.is_some());
        let name = near.or_else(|| self.roles.named(role)).unwrap_or(OWN);
        self.restricted(name, role, local_only)
    }

    /// Returns each model that is ever asked, with the roles that the configuration gives it.
    pub fn used(&self) -> Vec<(Vec<Role>, Model)> {
        let models = self.used.iter().map(|name| {
            let has = |role: &Role| match (self.roles.named(*role), role) {
                (Some(named), _) => named == name,
                (None, Role::Planner | Role::Worker | Role::Summarizer) => name == OWN,
                (None, Role::Reviewer | Role::Chat | Role::Classifier | Role::LocalOnly) => false,
            };
            let roles: Vec<Role> = Role::ALL.into_iter().filter(has).collect();
            let first = roles.first().copied().unwrap_or(Role::Worker);
            (roles, self.restricted(name, first, self.local_only_rule(None, &[])))
        });
        models.collect()
    }

    fn restricted(&self, name: &str, role: Role, local_only: Option<String>) -> Model {
        let model = Model::new(Arc::clone(self.connections.get(name).unwrap_or(&self.own)), role);
        match local_only {
            Some(demand) => model.restricted_by(self.local_only.resolver(demand)),
            None => model,
        }
    }

    /// Returns the rule that keeps work on this item of `repository` on local models, if any.
    pub fn local_only_rule(&self, repository: Option<&str>, labels: &[String]) -> Option<String> {
        self.local_only.rule(repository, labels)
    }

    /// Describes, for people, the part of the work that is kept on local models, if only a part is.
    pub fn confidential_part(&self) -> Option<String> {
        self.local_only.part()
    }
}

/// Connects a model after those that take its place, each once: they share a limit on requests.
fn connect(
    config: &Config,
    name: &str,
    connections: &mut BTreeMap<String, Arc<Connection>>,
    depth: usize,
) -> Result<Arc<Connection>, LlmError> {
    if let Some(connection) = connections.get(name) {
        return Ok(Arc::clone(connection));
    }
    let model = config.named_model(name).unwrap_or_else(|| config.own_model());
    // No chain is longer, unless it is a circle.
    let next = model.options.fallback.as_ref().filter(|_| depth <= config.models.len());
    let fallback = match next {
        Some(next) => Some(connect(config, next, connections, depth + 1)?),
        None => None,
    };
    let connection = Arc::new(Connection::new(config, &model, fallback)?);
    connections.insert(name.to_owned(), Arc::clone(&connection));
    Ok(connection)
}
