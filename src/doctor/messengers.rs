//! The messengers: their tokens, and the people who are heard.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::finding::Finding;
use crate::llm::config::role::Role;
use crate::llm::models::Models;
use crate::messenger::config::Accounts;
use crate::messenger::line::Line;
use crate::messenger::slack::Slack;

/// Asks each configured messenger who the bot is there, and whether it hears.
pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let chat = &config.chat;
    let mut findings = Vec::new();
    match Slack::new(&chat.slack) {
        Ok(None) => {}
        Ok(Some(slack)) => findings.extend(examine_slack(config, &slack).await),
        Err(error) => findings.push(Finding::bad("Slack", error, "fix chat.slack")),
    }
    match Line::new(&chat.line) {
        Ok(None) => {}
        Ok(Some(line)) => findings.extend(examine_line(&line).await),
        Err(error) => findings.push(Finding::bad("LINE", error, "fix chat.line")),
    }
    if chat.slack.is_used() {
        findings.extend(people("Slack", "slack", &chat.slack.allowed_users));
    }
    if chat.line.is_used() {
        findings.extend(people("LINE", "line", &chat.line.allowed_users));
    }
    findings
}

async fn examine_slack(config: &Config, slack: &Slack) -> Vec<Finding> {
    let own = match slack.own().await {
        Ok(own) => own,
        Err(failure) => {
            let remedy = "copy the \"Bot User OAuth Token\" (xoxb-…) of the app's page \"Install App\" into \
                          chat.slack.bot_token, and see that the app is installed";
            return vec![Finding::bad("Slack", format!("bot_token: {failure}"), remedy)];
        }
    };
    let mut findings = Vec::new();
    if !slack.has_socket() {
        let told = format!("speaks as {}, and hears by POST /hooks/slack", own.name);
        findings.push(Finding::good("Slack", told));
    } else if let Err(failure) = slack.examine_socket().await {
        let remedy = "make an app-level token (xapp-…) with the scope connections:write on the app's page \"Basic \
                      Information\" for chat.slack.app_token, and turn Socket Mode on";
        findings.push(Finding::bad("Slack", format!("app_token: {failure}"), remedy));
    } else {
        let told = format!("speaks as {}, and a socket opens", own.name);
        findings.push(Finding::good("Slack", told));
    }
    if let Ok(Some(scopes)) = slack.scopes().await {
        let missing = missing_scopes(config, &scopes);
        if !missing.is_empty() {
            let told = format!("bot_token lacks {}", missing.join(", "));
            let remedy = "add the scopes on the app's page \"OAuth & Permissions\", and install the app again";
            findings.push(Finding::doubtful("Slack", told, remedy));
        }
    }
    if config.chat.slack.channels.is_empty() {
        findings.push(Finding::doubtful(
            "Slack",
            "no channel is named, so that only direct messages are heard",
            "name channels in chat.slack.channels by their ids, such as C012AB3CD, and invite the bot there",
        ));
    }
    findings
}

/// Returns the scopes that a bot needs here and does not have, each with what it is for.
fn missing_scopes(config: &Config, scopes: &[String]) -> Vec<String> {
    let has = |wanted: &str| scopes.iter().any(|scope| scope == wanted);
    let hears_channels = !config.chat.slack.channels.is_empty();
    let shows_pictures = Models::new(&config.llm).is_ok_and(|models| {
        let roles = [Role::Chat, Role::Planner, Role::Worker];
        roles.iter().any(|role| models.of(*role, None).takes_pictures())
    });
    let needed = [
        ("chat:write", "to answer", true),
        ("app_mentions:read", "to hear who mentions it", hears_channels),
        (
            "channels:history (or groups:history)",
            "to hear what follows in a thread",
            hears_channels && !has("groups:history") && !has("channels:history"),
        ),
        ("im:history", "to hear direct messages", !hears_channels),
        ("files:read", "to fetch pictures", shows_pictures),
    ];
    let missing = needed.iter().filter(|(scope, _, is_needed)| *is_needed && !has(scope));
    missing.map(|(scope, what, _)| format!("{scope} ({what})")).collect()
}

async fn examine_line(line: &Line) -> Vec<Finding> {
    let name = match line.examine().await {
        Ok(name) => name,
        Err(failure) => {
            let remedy = "issue a channel access token on the channel's page \"Messaging API\" for \
                          chat.line.channel_access_token";
            return vec![Finding::bad("LINE", failure, remedy)];
        }
    };
    let turn_on = "set https://your-host/hooks/line as \"Webhook URL\" on the channel's page \"Messaging API\", and turn \
                   \"Use webhook\" on";
    let told = format!("speaks as {name}");
    let finding = match line.webhook().await {
        Ok(Some((address, true))) if address.ends_with("/hooks/line") => {
            Finding::good("LINE", format!("{told}, and delivers to {address}"))
        }
        Ok(Some((address, true))) => Finding::doubtful(
            "LINE",
            format!("{told}, and delivers to {address}, which does not end with /hooks/line"),
            turn_on,
        ),
        Ok(Some((address, false))) => Finding::doubtful(
            "LINE",
            format!("{told}, and hears nothing: the webhook {address} is turned off"),
            turn_on,
        ),
        Ok(None) => Finding::doubtful("LINE", format!("{told}, and hears nothing: no webhook is set"), turn_on),
        Err(failure) => Finding::doubtful(
            "LINE",
            format!("{told}, and does not tell where it delivers to: {failure}"),
            turn_on,
        ),
    };
    vec![finding]
}

/// Tells where nobody is heard, or nobody may ask for work.
fn people(subject: &str, key: &str, users: &BTreeMap<String, Accounts>) -> Option<Finding> {
    let linked = users.values().filter(|accounts| !accounts.is_empty()).count();
    let remedy = format!("name people in chat.{key}.allowed_users, like `U012AB3CD: {{github: alice}}`");
    match (users.len(), linked) {
        (0, _) => Some(Finding::doubtful(subject, "nobody is heard", remedy)),
        (_, 0) => Some(Finding::doubtful(
            subject,
            "nobody has an account on a forge, so people only talk",
            remedy,
        )),
        _ => None,
    }
}
