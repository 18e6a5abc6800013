//! Examination of a GitHub host by `doctor`: the token, each repository, its labels.

use async_trait::async_trait;
use chrono::NaiveDate;

use crate::finding::{Finding, Verdict};
use crate::forge::caveats::{Caveats, of_another, some_of};
use crate::forge::github::http::response::AUTHORISE;
use crate::forge::github::http::{TokenScope, encoded, path};
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::platform::ExamineApi;
use crate::forge::settings::allowed_users::Entry;
use crate::forge::settings::source::Source;
use crate::plain::{agreeing, counted};

/// All that a classic token needs, the second for public repositories alone, and what is contained
/// in the first.
const SCOPES: [&str; 7] = [
    "repo",
    "public_repo",
    "repo:status",
    "repo_deployment",
    "repo:invite",
    "security_events",
    "",
];
/// Permissions that an App must have for writing.
const WRITTEN: [&str; 3] = ["contents", "issues", "pull_requests"];
/// Permissions that an App must have for reading. Without the last three the program does not learn
/// of checks that fail.
const READ: [&str; 4] = ["metadata", "checks", "statuses", "actions"];
/// The repositories of an owner that are looked at: one page of their list.
const MOST_LOOKED_AT: usize = 100;
const WRITE: &str =
    "give the account the role Write, and a fine-grained token the permission 'Contents' (Read and write)";
const OF_ITS_OWN: &str = "use the token of an account of its own with the role Write: what the token's account writes is taken for the \
     program's, and a person's comments would not be read";
/// Header with the time at which a token expires, such as `2026-05-26 09:44:21 UTC`.
const END: &str = "github-authentication-token-expiration";
const NARROWER: &str = "use a fine-grained token for these repositories alone, with Contents, Issues and Pull requests (read and write) \
     and Commit statuses and Actions (read-only); or a classic one with the scope 'repo' alone";

#[async_trait]
impl ExamineApi for Api {
    fn proof(&self) -> &'static str {
        if self.is_app { "App" } else { "token" }
    }

    async fn examine_proof(&self) -> Result<Verdict, Failure> {
        if self.is_app {
            self.examine_app().await
        } else {
            self.examine_token().await
        }
    }

    async fn examine_grants(&self) -> Vec<Finding> {
        if self.is_app {
            self.examine_installations().await
        } else {
            Vec::new()
        }
    }

    async fn account(&self, entry: &Entry) -> Result<Option<(String, u64)>, Failure> {
        let at = match entry {
            Entry::Login(login) => format!("/users/{}", encoded(login)),
            Entry::Id(id) => format!("/user/{id}"),
        };
        // Any installation of an App may ask who somebody is.
        let scope = match self.settings.sources.first() {
            Some(Source::Repository(name)) => TokenScope::Repository(name),
            Some(Source::All(owner)) => TokenScope::Owner(owner),
            None => return Err(Failure::unreadable("no repository is named")),
        };
        match self.client.get::<schema::User>(scope, &at).await {
            Ok(user) => Ok(user.id.map(|id| (user.login, id))),
            Err(Failure::Answered { status, .. }) if status.as_u16() == 404 => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    async fn examine_repository(&self, name: &str) -> Result<Verdict, Failure> {
        let repository: schema::Repository = self.client.get(TokenScope::Repository(name), &path(name, "")).await?;
        let fault = |detail: &str, remedy: &str| Verdict::Bad {
            detail: detail.to_owned(),
            remedy: remedy.to_owned(),
        };
        if repository.archived {
            return Ok(fault(
                "is archived",
                "unarchive it, or take it out of github.repositories",
            ));
        }
        // An App's answer has no permissions of a user; its own were looked at with the App.
        if !self.is_app && repository.permissions.push == Some(false) {
            return Ok(fault("can be read, but the token's account may not push to it", WRITE));
        }
        let mut doubts = Caveats::default();
        if repository.has_issues == Some(false) {
            doubts.add(
                "it has no issues, so only pull requests can be worked on",
                "switch issues on in its settings",
            );
        }
        if !self.is_app && repository.permissions.admin == Some(true) {
            doubts.add("the token's account is an administrator of it", OF_ITS_OWN);
        }
        Ok(doubts.on("can be read and pushed to".to_owned()))
    }

    fn subject_of_all(owner: &str) -> String {
        format!("repositories {owner}/*")
    }

    async fn examine_all(&self, owner: &str, found: usize) -> Result<Verdict, Failure> {
        let looked_at = self.repositories_of(owner).await?;
        let is_hidden = self.client.hidden.take();
        let is_more = looked_at.len() >= MOST_LOOKED_AT;
        let count = looked_at.len();
        let in_use: Vec<&schema::Repository> = looked_at.iter().filter(|one| !one.archived).collect();
        let named = |is_so: &dyn Fn(&schema::Repository) -> bool| -> Vec<&str> {
            let such = in_use.iter().filter(|one| is_so(one));
            such.map(|one| one.full_name.as_str()).collect()
        };
        // An App's answer has no permissions of a user; its own were looked at with the App.
        let closed = named(&|one| !self.is_app && one.permissions.push == Some(false));
        let wide = named(&|one| !self.is_app && one.permissions.admin == Some(true));
        let without_issues = named(&|one| one.has_issues == Some(false));
        if !in_use.is_empty() && closed.len() == in_use.len() {
            return Ok(Verdict::Bad {
                detail: format!(
                    "can be searched, but the token's account may push to none of its repositories (looked at: {count})"
                ),
                remedy: WRITE.to_owned(),
            });
        }
        let mut doubts = Caveats::default();
        if is_hidden {
            doubts.add("single sign-on hides some of it from the token", AUTHORISE);
        }
        if !closed.is_empty() {
            let what = format!("the token's account may not push to {}", some_of(&closed));
            doubts.add(
                what,
                format!("{WRITE}, or name the other repositories one by one in github.repositories"),
            );
        }
        if !without_issues.is_empty() {
            let what = format!(
                "only pull requests can be worked on in {}, without issues",
                some_of(&without_issues)
            );
            doubts.add(what, "switch issues on in their settings");
        }
        if !wide.is_empty() {
            let what = format!("the token's account is an administrator of {}", some_of(&wide));
            doubts.add(what, OF_ITS_OWN);
        }
        let which = if is_more {
            ", those that were pushed to last"
        } else {
            ""
        };
        Ok(doubts.on(format!(
            "can be searched; {} {} the trigger label now; repositories looked at: {count}{which}",
            counted(found, "item"),
            agreeing(found, "carries", "carry")
        )))
    }

    async fn workable(&self, owner: &str) -> Result<Vec<String>, Failure> {
        let mut found = self.repositories_of(owner).await?;
        found.retain(|one| !one.archived && (self.is_app || one.permissions.push != Some(false)));
        Ok(found.into_iter().map(|one| one.full_name).collect())
    }
}

impl Api {
    /// Returns the repositories of an organisation or a user that were changed last, one page of
    /// them, with what the token may do in each.
    async fn repositories_of(&self, owner: &str) -> Result<Vec<schema::Repository>, Failure> {
        let scope = TokenScope::Owner(owner);
        let name = encoded(owner);
        let page = format!("per_page={MOST_LOOKED_AT}&sort=pushed&direction=desc");
        if self.is_app {
            let at = format!("/installation/repositories?per_page={MOST_LOOKED_AT}");
            let found: schema::Installed = self.client.get(scope, &at).await?;
            return Ok(found.repositories);
        }
        match self.client.get(scope, &format!("/orgs/{name}/repos?{page}")).await {
            Err(failure) if failure.is_missing() => {}
            found => return found,
        }
        // The list of another user's repositories leaves private ones out.
        let mut found: Vec<schema::Repository> = self.client.get(scope, &format!("/users/{name}/repos?{page}")).await?;
        let shared: Vec<schema::Repository> = self.client.get(scope, &format!("/user/repos?{page}")).await?;
        let is_of_owner = |one: &schema::Repository| {
            let own = one.full_name.split('/').next();
            own.is_some_and(|own| own.eq_ignore_ascii_case(owner))
        };
        for one in shared.into_iter().filter(is_of_owner) {
            if found.iter().all(|known| known.full_name != one.full_name) {
                found.push(one);
            }
        }
        found.truncate(MOST_LOOKED_AT);
        Ok(found)
    }
}

impl Api {
    async fn examine_token(&self) -> Result<Verdict, Failure> {
        let answer = self.client.fetch_own("/user").await?;
        let user: schema::User = crate::forge::github::http::response::read(&answer)?;
        let scopes = answer
            .headers
            .get("x-oauth-scopes")
            .and_then(|value| value.to_str().ok());
        let detail = format!("works, as {}", user.login);
        let configured = self.bot.get().map(String::as_str);
        if let Some(verdict) = of_another("github", "account", &user.login, configured) {
            return Ok(verdict);
        }
        let mut doubts = Caveats::default();
        let detail = match scopes {
            // A fine-grained token does not tell what it is good for; what is missing shows where
            // it is used.
            None => format!("{detail}; what it may do only its settings page tells"),
            Some(scopes) => {
                let scopes: Vec<&str> = scopes.split(',').map(str::trim).collect();
                if !["repo", "public_repo"].iter().any(|enough| scopes.contains(enough)) {
                    return Ok(Verdict::Bad {
                        detail: format!("{detail}, but without the scope 'repo'"),
                        remedy: "give the token the scope 'repo' ('public_repo' for public repositories alone)"
                            .to_owned(),
                    });
                }
                let wide: Vec<&str> = scopes.into_iter().filter(|scope| !SCOPES.contains(scope)).collect();
                doubts.wider(&wide, NARROWER);
                detail
            }
        };
        let end = answer.headers.get(END).and_then(|value| value.to_str().ok());
        match end.map(|end| end.get(..10).unwrap_or(end).parse::<NaiveDate>()) {
            None => doubts.end(None),
            Some(Ok(end)) => doubts.end(Some(end)),
            // Another way to write a day says nothing.
            Some(Err(_)) => {}
        }
        Ok(doubts.on(detail))
    }

    async fn examine_app(&self) -> Result<Verdict, Failure> {
        let app: schema::AppItself = self.client.get_own("/app").await?;
        let may = |name: &str| app.permissions.get(name).map(String::as_str);
        let missing: Vec<&str> = WRITTEN.into_iter().filter(|name| may(name) != Some("write")).collect();
        let unread: Vec<&str> = READ.into_iter().filter(|name| may(name).is_none()).collect();
        let is_wide = |(name, access): &(&String, &String)| match access.as_str() {
            "read" => !READ.contains(&name.as_str()),
            _ => !WRITTEN.contains(&name.as_str()),
        };
        let wide: Vec<String> = app
            .permissions
            .iter()
            .filter(is_wide)
            .map(|(name, access)| format!("{name} ({access})"))
            .collect();
        let wide: Vec<&str> = wide.iter().map(String::as_str).collect();
        let detail = format!("works, as {}[bot]", app.slug);
        if !missing.is_empty() {
            return Ok(Verdict::Bad {
                detail: format!("{detail}; it may not write {}", missing.join(", ")),
                remedy:
                    "give the App these repository permissions (read and write) and accept them where it is installed"
                        .to_owned(),
            });
        }
        let mut doubts = Caveats::default();
        doubts.wider(&wide, "take these permissions off the App, or lower them to read-only");
        if !unread.is_empty() {
            doubts.add(
                format!(
                    "it may not read {}, so checks that fail are not seen",
                    unread.join(", ")
                ),
                "give the App these repository permissions (read-only) and accept them where it is installed, or set \
                 follow_up.max_ci_rounds to 0",
            );
        }
        Ok(doubts.on(detail))
    }

    /// Reports permissions that an installation of the App lacks: new ones count only after
    /// somebody accepted them there. Permissions that the App itself lacks are reported with the
    /// App.
    async fn examine_installations(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let Ok(app) = self.client.get_own::<schema::AppItself>("/app").await else {
            return findings;
        };
        for source in &self.settings.sources {
            let scope = match source {
                Source::Repository(name) => TokenScope::Repository(name),
                Source::All(owner) => TokenScope::Owner(owner),
            };
            // One that is not installed is said with the repository.
            let Ok(installation) = crate::forge::github::http::app::find(&self.client, scope).await else {
                continue;
            };
            let may = |name: &str| installation.permissions.get(name).map(String::as_str);
            let unwritten = WRITTEN.into_iter().filter(|name| may(name) != Some("write"));
            let unread = READ
                .into_iter()
                .filter(|name| may(name).is_none() && app.permissions.contains_key(*name));
            let missing: Vec<String> = unwritten
                .map(|name| format!("{name} (read and write)"))
                .chain(unread.map(|name| format!("{name} (read-only)")))
                .collect();
            if !missing.is_empty() {
                let verdict = Verdict::Doubtful {
                    detail: format!("the installation lacks {}", missing.join(", ")),
                    remedy:
                        "give the App these repository permissions, and accept them on the page of the installation"
                            .to_owned(),
                };
                findings.push(Finding::new(
                    format!("{} App on {source}", self.settings.title),
                    verdict,
                ));
            }
        }
        findings
    }
}
