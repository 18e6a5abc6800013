//! The models of a process, by role.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::llm::config::model_config::{CommandModel, OWN};
use crate::llm::config::role::Role;
use crate::llm::config::{Config, Roles};
use crate::llm::connection::Connection;
use crate::llm::error::LlmError;
use crate::llm::local_only::LocalOnlyRules;
use crate::llm::model::Model;
pub use crate::llm::transport::concurrency_limit::SharedPlaces;

/// Who reviews: a model, or a program in its place.
pub enum Critic {
    Model(Model),
    Program(CommandModel),
}

/// The models of a process, by role.
pub struct Models {
    /// Connections by the models' names in the configuration.
    connections: BTreeMap<String, Arc<Connection>>,
    /// Programs that answer in the place of a model, likewise.
    programs: BTreeMap<String, CommandModel>,
    /// The one of the provider's own section, for roles that name no other.
    own: Arc<Connection>,
    /// The one that turns texts into vectors.
    embedder: Option<Arc<Connection>>,
    roles: Roles,
    /// The names of those that are ever asked.
    used: Vec<String>,
    local_only: LocalOnlyRules,
}

impl Models {
    /// Returns the models that `config` gives a role. Does not touch the network.
    pub fn new(config: &Config) -> Result<Self, LlmError> {
        let (mut connections, mut programs) = (BTreeMap::new(), BTreeMap::new());
        let (of_programs, used) = config
            .used_models()
            .into_iter()
            .partition::<Vec<String>, _>(|name| config.command_model(name).is_some());
        for name in of_programs {
            programs.extend(config.command_model(&name).map(|program| (name, program)));
        }
        for name in &used {
            connect(config, name, &mut connections, 0)?;
        }
        // A message may name any of them for its work.
        for name in config.models.keys().filter(|name| config.command_model(name).is_none()) {
            connect(config, name, &mut connections, 0)?;
        }
        let own = connect(config, OWN, &mut connections, 0)?;
        let embedder = match &config.embeddings {
            Some(name) => Some(connect(config, name, &mut connections, 0)?),
            None => None,
        };
        Ok(Self {
            connections,
            programs,
            own,
            embedder,
            roles: config.roles.clone(),
            used,
            local_only: LocalOnlyRules::new(config),
        })
    }

    /// Has the workers of several machines share the places at servers that answer a few requests
    /// at once.
    pub fn share(&self, places: &Arc<dyn SharedPlaces>) {
        for connection in self.connections.values().chain([&self.own]) {
            let info = connection.provider.info();
            let server = format!("model {} at {}", info.model, info.address);
            connection.limit.share(server, Arc::clone(places));
        }
    }

    /// Returns the model of `role`. For confidential work, which the rule `local_only` demands, the
    /// model of the role `local_only` replaces it if there is one, and in any case it refuses to
    /// send to a server that is not local.
    pub fn of(&self, role: Role, local_only: Option<&str>) -> Model {
        let local_only = self.demand(local_only);
        let name = self.name_of(role, local_only.as_deref());
        self.restricted(name, role, local_only)
    }

    /// Returns the names that the configuration gives models.
    pub fn names(&self) -> Vec<String> {
        let names = self.connections.keys().filter(|name| *name != OWN);
        names.cloned().collect()
    }

    /// Returns the model with this name in `role`, restricted as in [`Self::of`]; `None` if there
    /// is none, or if another takes its place in confidential work.
    pub fn named(&self, name: &str, role: Role, local_only: Option<&str>) -> Option<Model> {
        let local_only = self.demand(local_only);
        let is_replaced = local_only.is_some() && self.roles.named(Role::LocalOnly).is_some();
        (self.connections.contains_key(name) && !is_replaced).then(|| self.restricted(name, role, local_only))
    }

    /// Returns who has the role `reviewer`, chosen as in [`Self::of`].
    ///
    /// # Errors
    /// If it is a program that may not see confidential work: nobody can tell where a program sends
    /// what it reads, so the operator's word for it is needed.
    pub fn critic(&self, local_only: Option<&str>) -> Result<Critic, LlmError> {
        let local_only = self.demand(local_only);
        let name = self.name_of(Role::Reviewer, local_only.as_deref());
        let Some(program) = self.programs.get(name) else {
            return Ok(Critic::Model(self.restricted(name, Role::Reviewer, local_only)));
        };
        match local_only.filter(|_| !program.is_local) {
            Some(rule) => Err(LlmError::NotLocal {
                address: program.command.first().cloned().unwrap_or_default(),
                rule,
                reason: format!(
                    "llm.models.{name} is a program without `local: true`, which says that it sends nothing elsewhere"
                ),
            }),
            None => Ok(Critic::Program(program.clone())),
        }
    }

    /// Tells whether a run that nothing keeps near may send anything elsewhere: to the model of a
    /// role or one in its place, to a program that reviews, or to the model that turns texts into
    /// vectors.
    pub fn run_may_ask_far(&self) -> bool {
        let is_far = |role: Role| !self.of(role, None).stays_near();
        let is_critic_far = match self.critic(None) {
            Ok(Critic::Model(model)) => !model.stays_near(),
            Ok(Critic::Program(program)) => !program.is_local,
            Err(_) => true,
        };
        is_critic_far
            || [Role::Planner, Role::Worker, Role::Summarizer].into_iter().any(is_far)
            || self.embedder(None).is_some_and(|model| !model.stays_near())
    }

    /// Returns the model that turns texts into vectors, if there is one. For confidential work it
    /// refuses to send to a server that is not local, as in [`Self::of`].
    pub fn embedder(&self, local_only: Option<&str>) -> Option<Model> {
        let model = Model::new(Arc::clone(self.embedder.as_ref()?), Role::Planner);
        Some(match self.demand(local_only) {
            Some(demand) => model.restricted_by(self.local_only.resolver(demand)),
            None => model,
        })
    }

    /// Returns each program that is ever asked in the place of a model.
    pub fn programs(&self) -> impl Iterator<Item = &CommandModel> {
        self.programs.values()
    }

    fn demand(&self, local_only: Option<&str>) -> Option<String> {
        local_only
            .map(str::to_owned)
            .or_else(|| self.local_only_rule(None, &[]))
    }

    fn name_of(&self, role: Role, local_only: Option<&str>) -> &str {
        let near = self.roles.named(Role::LocalOnly).filter(|_| local_only.is_some());
        near.or_else(|| self.roles.named(role)).unwrap_or(OWN)
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

/// Connects a model after its fallbacks, each once, so that they share a limit on requests.
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
