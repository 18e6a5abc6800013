//! The conditions that every request must satisfy, whatever the test is about.

use serde_json::Value;

use super::conversation::Protocol;
use super::conversation::Request;
use super::conversation::Said;
use super::tokens;

/// The checks that the test has asked for.
#[derive(Debug, Default)]
pub struct Rules {
    pub forbidden: Vec<String>,
    pub window: Option<u64>,
    pub restarts_allowed: bool,
}

/// The conversations so far: all states of each.
#[derive(Debug, Default)]
pub struct Sessions(Vec<Vec<Vec<Said>>>);

/// Returns what is wrong with `request`, and remembers its conversation.
pub fn violations(request: &Request, rules: &Rules, sessions: &mut Sessions) -> Vec<String> {
    let mut faults = Vec::new();
    pairing(request, &mut faults);
    form(request, &mut faults);
    let body = request.body.to_string();
    for secret in rules.forbidden.iter().filter(|secret| body.contains(secret.as_str())) {
        faults.push(format!("a request contains the secret {secret:?}"));
    }
    let window = request.body["options"]["num_ctx"].as_u64().or(rules.window);
    let length = tokens(&request.text());
    let limits = ["max_tokens", "max_completion_tokens"].into_iter();
    let reply = limits
        .filter_map(|key| request.body[key].as_u64())
        .max()
        .unwrap_or_default();
    if let Some(window) = window.filter(|window| length + reply > *window) {
        faults.push(format!(
            "a prompt of {length} tokens was sent into a window of {window}, with a wish for {reply} more"
        ));
    }
    if !sessions.extended_by(&request.messages, rules.restarts_allowed) {
        faults.push(format!(
            "a conversation of {} messages does not extend any earlier one; it begins with {:?}",
            request.messages.len(),
            request.first_user_message().chars().take(80).collect::<String>()
        ));
    }
    faults
}

/// Checks that each native call is answered exactly once, before anything else is said.
fn pairing(request: &Request, faults: &mut Vec<String>) {
    let mut open: Vec<&str> = Vec::new();
    for said in &request.messages {
        match said {
            Said::Assistant(_, calls) => {
                for call in calls {
                    if call.id.is_empty() || open.contains(&call.id.as_str()) {
                        faults.push(format!("the call of {} has no id of its own", call.name));
                    }
                    open.push(&call.id);
                }
            }
            Said::Result(id, _) => match open.iter().position(|call| call == id) {
                Some(place) => drop(open.remove(place)),
                None => faults.push(format!("the result {id:?} answers no open call")),
            },
            Said::System(_) | Said::User(_) | Said::Unknown(_) => {
                if !open.is_empty() {
                    faults.push(format!("the calls {open:?} were not answered before {said:?}"));
                    open.clear();
                }
            }
        }
    }
    if !open.is_empty() {
        faults.push(format!("the calls {open:?} are not answered"));
    }
}

fn form(request: &Request, faults: &mut Vec<String>) {
    let body = &request.body;
    if request.model.is_empty() {
        faults.push("a request names no model".to_owned());
    }
    if body["stream"] != Value::Bool(true) && !body["stream_options"].is_null() {
        faults.push("a request without a stream has options for one".to_owned());
    }
    if !matches!(request.messages.first(), Some(Said::System(_))) {
        faults.push("a conversation does not begin with the system prompt".to_owned());
    }
    for pair in request.messages.windows(2) {
        match pair {
            [Said::User(_), Said::User(second)] => faults.push(format!("two user messages in a row, then {second:?}")),
            [_, Said::System(_)] => faults.push("a system prompt in the middle".to_owned()),
            _ => {}
        }
    }
    for said in &request.messages {
        match said {
            Said::User(text) | Said::System(text) if text.trim().is_empty() => {
                faults.push("an empty message".to_owned());
            }
            Said::Assistant(text, calls) if text.trim().is_empty() && calls.is_empty() => {
                faults.push("an empty assistant message".to_owned());
            }
            Said::Assistant(_, calls) => {
                for call in calls.iter().filter(|call| !call.arguments.is_object()) {
                    faults.push(format!(
                        "the arguments of {} are no object: {}",
                        call.name, call.arguments
                    ));
                }
            }
            Said::Unknown(what) => faults.push(format!("a message of no known role: {what}")),
            Said::User(_) | Said::System(_) | Said::Result(..) => {}
        }
    }
    for name in &request.offered {
        let is_plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if !is_plain || name.is_empty() || name.len() > 64 {
            faults.push(format!("providers refuse the tool name {name:?}"));
        }
    }
    for (kind, bytes) in request.pictures() {
        let is_png = bytes.starts_with(b"\x89PNG\r\n\x1a\n") && matches!(kind.as_str(), "" | "image/png");
        let is_jpeg = bytes.starts_with(&[0xff, 0xd8, 0xff]) && matches!(kind.as_str(), "" | "image/jpeg");
        if !is_png && !is_jpeg {
            faults.push(format!(
                "a picture of {} bytes is not the {kind:?} it is said to be",
                bytes.len()
            ));
        }
    }
    match request.protocol {
        Protocol::ChatCompletions => {}
        Protocol::Ollama => {
            if body["options"]["num_ctx"].as_u64().is_none() || body["keep_alive"].is_null() {
                faults.push("a request to Ollama sets no window or no keep_alive".to_owned());
            }
        }
        Protocol::Messages => {
            if body["max_tokens"].as_u64().is_none() || !request.headers.contains_key("anthropic-version") {
                faults.push("a messages request lacks max_tokens or anthropic-version".to_owned());
            }
            let marks = body.to_string().matches("cache_control").count();
            if !(1..=4).contains(&marks) {
                faults.push(format!("a messages request has {marks} cache marks"));
            }
        }
    }
}

impl Sessions {
    /// Lets a conversation go on whose beginning was said to somebody else.
    pub fn know_of_another(&mut self) {
        self.0.push(vec![Vec::new()]);
    }

    /// Tells whether the conversation is new or goes on where one ended, and takes it up.
    fn extended_by(&mut self, messages: &[Said], restarts_allowed: bool) -> bool {
        let is_new = !messages.iter().any(|said| matches!(said, Said::Assistant(..)));
        // The longest fitting one: two conversations may begin alike.
        let fitting = self
            .0
            .iter_mut()
            .filter(|states| {
                let earlier = if restarts_allowed {
                    states.as_slice()
                } else {
                    &states[states.len() - 1..]
                };
                earlier.iter().any(|state| extends(messages, state))
            })
            .max_by_key(|states| states.last().map_or(0, Vec::len));
        match fitting {
            Some(states) => states.push(messages.to_vec()),
            None if is_new => self.0.push(vec![messages.to_vec()]),
            None => return false,
        }
        true
    }
}

/// Tells whether a conversation continues an earlier one. The last user message may have grown:
/// what is said while a request fails joins it.
pub(super) fn extends(messages: &[Said], earlier: &[Said]) -> bool {
    let Some((last, before)) = earlier.split_last() else {
        return true;
    };
    if messages.len() < earlier.len() || !messages.starts_with(before) {
        return false;
    }
    match (&messages[before.len()], last) {
        (Said::User(now), Said::User(then)) => now.starts_with(then.as_str()),
        (now, then) => now == then,
    }
}
