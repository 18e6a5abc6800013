//! Examination of a GitLab host by `doctor`: the token, each project or group, the labels.

use std::collections::BTreeSet;

use async_trait::async_trait;
use gitlab::api::common::AccessLevel;
use gitlab::api::groups;
use gitlab::api::groups::projects::GroupProjects;
use gitlab::api::personal_access_tokens::PersonalAccessTokenSelf;
use gitlab::api::users::{CurrentUser, User, Users};

use crate::finding::Verdict;
use crate::forge::caveats::{Caveats, of_another, some_of};
use crate::forge::gitlab::people::DEVELOPER;
use crate::forge::gitlab::remedies::RENEW;
use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::platform::ExamineApi;
use crate::forge::settings::allowed_users::Entry;
use crate::plain::{agreeing, counted};

const OWNER: u64 = 50;
const OF_ITS_OWN: &str = "use an access token of the project or group, or of a user of its own, with the role Developer: what the token's \
     user writes is taken for the program's, and a person's comments would not be read";
/// The only scope that is needed, and others that it contains or that only let a token be renewed.
/// Whatever begins with `read_` is contained, too.
const SCOPES: [&str; 4] = ["api", "write_repository", "write_registry", "self_rotate"];

#[async_trait]
impl ExamineApi for Api {
    fn proof(&self) -> &'static str {
        "token"
    }

    async fn examine_proof(&self) -> Result<Verdict, Failure> {
        let user: schema::User = self.client.ask(CurrentUser::builder().build()).await?;
        let detail = format!("works, as {}", user.username);
        let configured = self.bot.get().map(String::as_str);
        if let Some(verdict) = of_another("gitlab", "user", &user.username, configured) {
            return Ok(verdict);
        }
        let mut doubts = Caveats::default();
        if user.is_admin == Some(true) {
            doubts.add(
                "its user is an administrator of the whole GitLab",
                "use a project or group access token, or the token of an ordinary user with the role Developer",
            );
        }
        let token: schema::Token = match self.client.ask(PersonalAccessTokenSelf::builder().build()).await {
            Ok(token) => token,
            // An OAuth token, or a GitLab before 15.5: it cannot tell about itself, and that is no
            // fault.
            Err(failure) if failure.status().is_some() => {
                return Ok(doubts.on(format!("{detail}; what it may do it cannot tell")));
            }
            Err(failure) => return Err(failure),
        };
        if token.active == Some(false) || token.revoked == Some(true) {
            return Ok(Verdict::Bad {
                detail: format!("{detail}, but it is not active any more"),
                remedy: RENEW.to_owned(),
            });
        }
        let has = |scope: &str| token.scopes.iter().any(|known| known == scope);
        if !has("api") {
            return Ok(Verdict::Bad {
                detail: format!("{detail}, but without the scope 'api'"),
                remedy: "make a token with the scope 'api'".to_owned(),
            });
        }
        let is_wide = |scope: &&str| !scope.starts_with("read_") && !SCOPES.contains(scope);
        let wide: Vec<&str> = token.scopes.iter().map(String::as_str).filter(is_wide).collect();
        doubts.wider(&wide, "make a token with the scope 'api' alone");
        doubts.end(token.expires_at);
        Ok(doubts.on(detail))
    }

    async fn account(&self, entry: &Entry) -> Result<Option<(String, u64)>, Failure> {
        let found = match entry {
            Entry::Login(login) => {
                let asked = Users::builder().username(login.as_str()).build();
                let found: Vec<schema::User> = self.client.list(asked).await?;
                found.into_iter().find(|user| user.username.eq_ignore_ascii_case(login))
            }
            Entry::Id(id) => match self.client.ask(User::builder().user(*id).build()).await {
                Ok(user) => Some(user),
                Err(failure) if failure.is_missing() => None,
                Err(failure) => return Err(failure),
            },
        };
        Ok(found.and_then(|user: schema::User| Some((user.username, user.id?))))
    }

    async fn examine_repository(&self, name: &str) -> Result<Verdict, Failure> {
        let project = self.ask_project(name).await?;
        let level = project.permissions.level();
        let fault = |detail: &str, remedy: &str| Verdict::Bad {
            detail: detail.to_owned(),
            remedy: remedy.to_owned(),
        };
        if project.archived {
            return Ok(fault("is archived", "unarchive it, or take it out of gitlab.projects"));
        }
        // An administrator's token has rights without a membership.
        let Some(level) = level else {
            return Ok(Verdict::Doubtful {
                detail: "can be read, but the token's user is no member".to_owned(),
                remedy: "invite the user with the role Developer".to_owned(),
            });
        };
        if level < DEVELOPER {
            return Ok(fault(
                "can be read, but the token's user may not push to it",
                "give the user (or the project access token) the role Developer",
            ));
        }
        if project.merge_requests_enabled == Some(false) {
            return Ok(fault(
                "has merge requests switched off",
                "switch them on in the project's settings",
            ));
        }
        let mut doubts = Caveats::default();
        if project.issues_enabled == Some(false) {
            doubts.add(
                "it has no issues, so only merge requests can be worked on",
                "switch issues on in the project's settings",
            );
        }
        if level > DEVELOPER {
            let role = if level >= OWNER { "Owner" } else { "Maintainer" };
            doubts.add(format!("the token's user has the role {role}"), OF_ITS_OWN);
        }
        Ok(doubts.on("can be read and pushed to".to_owned()))
    }

    fn subject_of_all(owner: &str) -> String {
        format!("group {owner}")
    }

    async fn examine_all(&self, owner: &str, labelled: usize) -> Result<Verdict, Failure> {
        let group = owner;
        let found: schema::Group = self.client.ask(groups::Group::builder().group(group).build()).await?;
        let all = self.projects_in(group, None).await?;
        let writable = self.projects_in(group, Some(AccessLevel::Developer)).await?;
        let wide = self.projects_in(group, Some(AccessLevel::Maintainer)).await?;
        if writable.is_empty() && !all.is_empty() {
            return Ok(Verdict::Bad {
                detail: format!(
                    "can be searched, but the token's user may push to none of its {} projects",
                    all.len()
                ),
                remedy: "give the user (or the group access token) the role Developer in the group".to_owned(),
            });
        }
        let mut doubts = Caveats::default();
        let closed: Vec<&str> = all.difference(&writable).map(String::as_str).collect();
        if !closed.is_empty() {
            doubts.add(
                format!("the token's user may not push to {}", some_of(&closed)),
                "give the user the role Developer in the group, or name the other projects one by one in gitlab.projects",
            );
        }
        if !wide.is_empty() {
            let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
            doubts.add(
                format!("the token's user has a role above Developer in {}", some_of(&wide)),
                OF_ITS_OWN,
            );
        }
        Ok(doubts.on(format!(
            "{} can be searched; {} {} the trigger label now; projects looked at: {}",
            found.full_path,
            counted(labelled, "item"),
            agreeing(labelled, "carries", "carry"),
            all.len()
        )))
    }

    async fn workable(&self, owner: &str) -> Result<Vec<String>, Failure> {
        let writable = self.projects_in(owner, Some(AccessLevel::Developer)).await?;
        Ok(writable.into_iter().collect())
    }
}

impl Api {
    /// Returns the paths of the projects of a group and its subgroups in which the token's user has
    /// this role or a higher one. A list of projects does not contain the role in each.
    async fn projects_in(&self, group: &str, role: Option<AccessLevel>) -> Result<BTreeSet<String>, Failure> {
        let mut projects = GroupProjects::builder();
        let projects = projects.group(group).archived(false).include_subgroups(true);
        if let Some(role) = role {
            projects.min_access_level(role);
        }
        let found: Vec<schema::NamedProject> = self.client.list(projects.build()).await?;
        Ok(found.into_iter().map(|project| project.path_with_namespace).collect())
    }
}
