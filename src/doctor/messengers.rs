//! The messengers: their tokens, and the people who are heard.

use std::collections::BTreeMap;

use crate::config::Config;
use crate::finding::Finding;
use crate::messenger::config::Accounts;
use crate::messenger::line::Line;
use crate::messenger::slack::Slack;

/// Asks each configured messenger who the bot is there.
pub(super) async fn examine(config: &Config) -> Vec<Finding> {
    let chat = &config.chat;
    let mut findings = Vec::new();
    match Slack::new(&chat.slack) {
        Ok(None) => {}
        Ok(Some(slack)) => findings.push(match slack.examine().await {
            Ok(own) if slack.has_socket() => Finding::good("Slack", format!("speaks as {}, and a socket opens", own.name)),
            Ok(own) => Finding::good("Slack", format!("speaks as {}, and hears by POST /hooks/slack", own.name)),
            Err(failure) => Finding::bad(
                "Slack",
                failure,
                "see that app_token (connections:write) and bot_token (chat:write) are those of one app that is installed",
            ),
        }),
        Err(error) => findings.push(Finding::bad("Slack", error, "fix chat.slack")),
    }
    match Line::new(&chat.line) {
        Ok(None) => {}
        Ok(Some(line)) => findings.push(match line.examine().await {
            Ok(name) => Finding::good("LINE", format!("speaks as {name}, and hears by POST /hooks/line")),
            Err(failure) => Finding::bad("LINE", failure, "see that channel_access_token is that of the channel"),
        }),
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
