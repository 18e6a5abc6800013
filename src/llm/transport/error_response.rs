//! Interprets HTTP errors of model servers: who must act, or when to try again. Pure.
//!
//! The order of the questions matters: a refused key is never taken for a long prompt (a status
//! decides first, words only within 400, 413, 422 and 5xx, and where a model takes no tools or a
//! filter refuses within those that servers use for it), and an empty account is never waited for.

use std::borrow::Cow;
use std::time::Duration;

use chrono::{DateTime, Utc};
use http::StatusCode;
use serde_json::Value;

use crate::http::LONGEST_WAIT;
use crate::http::page::{PAGE, is_page};
use crate::http::proxy::Proxy;
use crate::http::remedy::Reason;
use crate::llm::error::{LlmError, REFUSAL_HINT};
use crate::llm::transport::server_info::ServerInfo;
use crate::llm::transport::{overflow, role_order, tool_support};
use crate::plain::one_line;

/// No gateway is as impatient as this with a reply: one that says sooner that it got none has
/// reached nobody who would make one, and asking again costs nothing.
const PATIENCE_OF_GATEWAYS: Duration = Duration::from_secs(10);

/// An answer that is not a success.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    pub(crate) status: StatusCode,
    /// The pause that the server asks for.
    pub(crate) retry_after: Option<Duration>,
    /// The proxy that a page came through, which may be the proxy's own.
    pub(crate) proxy: Option<Proxy>,
    pub(crate) body: String,
}

/// The properties of a request on which the meaning of an error depends.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestSummary {
    pub(crate) with_tools: bool,
    /// About how many tokens were sent.
    pub(crate) needed: u64,
    /// The time from the request to its answer.
    pub(crate) took: Duration,
}

/// The reaction to an error.
#[derive(Debug)]
pub(crate) enum NextStep {
    /// Try again, not before this time has passed.
    Again {
        after: Duration,
        reason: Reason,
    },
    /// Try again, and if that is all, the rate limit is the reason.
    Slower {
        after: Duration,
    },
    Final(LlmError),
}

impl ErrorResponse {
    /// Decides how to react to the answer.
    pub(crate) fn next_step(&self, info: &ServerInfo, summary: RequestSummary, now: DateTime<Utc>) -> NextStep {
        let message = self.message();
        let through = match &self.proxy {
            Some(proxy) => format!(", asked through {proxy}"),
            None => String::new(),
        };
        let what = format!(
            "the {} server at {} answered {} to a request for '{}': {message}{through}",
            info.name, info.address, self.status, info.model
        );
        let refused = |hint: &str| {
            NextStep::Final(LlmError::Refused {
                what: what.clone(),
                hint: match &self.proxy {
                    Some(proxy) => format!("{}; else {hint}", proxy.remedy()),
                    None => hint.to_owned(),
                },
            })
        };
        let words = self.body.to_lowercase();
        if overflow::is_above_rate(&words) {
            return NextStep::Final(above_rate(info, summary, &words));
        }
        let may_be_about_content = matches!(self.status.as_u16(), 400 | 413 | 422) || self.status.is_server_error();
        let is_too_large = self.status.as_u16() == 429 && words.contains("request too large");
        if (may_be_about_content && overflow::is_overflow(&words)) || is_too_large {
            return NextStep::Final(self.too_long(info, summary, &words));
        }
        if summary.with_tools && tool_support::is_unsupported(self.status, &words) {
            return NextStep::Final(LlmError::ToolsUnsupported(message));
        }
        match self.meant_status(&words) {
            400 | 403 if is_filtered(&words) => refused(REFUSAL_HINT),
            401 | 403 => refused(&info.key_hint),
            402 => refused("add credit to the account or choose another model"),
            404 if words.contains("model") => refused(&info.model_hint),
            400 if words.contains("model") && (words.contains("not found") || words.contains("not exist")) => {
                refused(&info.model_hint)
            }
            404 | 405 | 300..=399 => refused(&info.address_hint),
            429 => self.rate_limited(now),
            // Some gateways say with 408, too, that they do not wait any longer.
            408 | 504 | 524 if summary.took >= PATIENCE_OF_GATEWAYS => NextStep::Final(LlmError::Unreachable {
                address: info.address.clone(),
                reason: self.of_a_slow_reply(info),
                is_away: false,
            }),
            408 | 409 | 425 | 500..=599 => {
                let reason = Reason::from(format!("it answered {}: {message}", self.status));
                NextStep::Again {
                    after: self.retry_after.unwrap_or_default().min(LONGEST_WAIT),
                    reason: match &self.proxy {
                        Some(proxy) => proxy.in_reason(reason),
                        None => reason,
                    },
                }
            }
            _ => refused(&format!("check the section {} of the configuration", info.section)),
        }
    }

    /// Returns the status that `words`, in lower case, belong to: some servers answer 400 where
    /// others have a status of its own.
    fn meant_status(&self, words: &str) -> u16 {
        match self.status.as_u16() {
            400 if is_about_the_key(words) => 401,
            400 | 429 if is_without_credit(words) => 402,
            400 if is_without_model(words) => 503,
            status => status,
        }
    }

    /// Returns the reason of a failure for which a proxy answered that it does not wait any longer.
    fn of_a_slow_reply(&self, info: &ServerInfo) -> Reason {
        let asked = match &self.proxy {
            Some(proxy) => format!(". It was asked through {proxy}: {}", proxy.remedy()),
            None => String::new(),
        };
        Reason::with(
            format!(
                "a proxy in front of it answered {} because the reply took longer than the proxy waits",
                self.status
            ),
            format!(
                "the reply is not asked for again at once, since it would be made and paid again. Raise the proxy's time-out, \
                 or let replies be streamed ({}.stream){asked}",
                info.section
            ),
        )
    }

    fn rate_limited(&self, now: DateTime<Utc>) -> NextStep {
        match self.retry_after {
            Some(after) if after > LONGEST_WAIT => NextStep::Final(LlmError::RateLimited { until: now + after }),
            after => NextStep::Slower {
                after: after.unwrap_or_default(),
            },
        }
    }

    /// Tells whether the server blames the calls that the model wrote, and not the request.
    pub(crate) fn blames_the_reply(&self) -> bool {
        matches!(self.status.as_u16(), 400 | 422 | 500) && tool_support::is_unread(&self.body.to_lowercase())
    }

    /// Returns what the server said, in whichever form its protocol has, as one line that may stand
    /// within a sentence: without a full stop at its end.
    pub(crate) fn message(&self) -> String {
        if is_page(self.body.as_bytes()) {
            return PAGE.to_owned();
        }
        let json: Option<Value> = serde_json::from_str(&self.body).ok().map(first);
        let said = json.as_ref().and_then(|json| {
            let error = json.get("error").unwrap_or(json);
            [
                Some(error),
                error.get("message"),
                json.get("message"),
                json.get("detail"),
            ]
            .into_iter()
            .flatten()
            .find_map(Value::as_str)
        });
        let said = said.unwrap_or(&self.body);
        // `OpenRouter` says no more than that there was an error, and quotes who made it.
        let quoted = json
            .as_ref()
            .and_then(|json| json.pointer("/error/metadata/raw")?.as_str());
        let text = match quoted {
            Some(quoted) => Cow::Owned(format!("{said}: {quoted}")),
            None => Cow::Borrowed(said),
        };
        let mut line: String = one_line(&text).chars().take(300).collect();
        if line.ends_with('.') && !line.ends_with("..") {
            line.pop();
        }
        if line.is_empty() {
            line.push_str("(nothing more)");
        }
        line
    }

    /// Tells whether the server may have refused the form of the request: a single field, or the
    /// order of its messages, for which llama.cpp answers 500.
    pub(crate) fn is_about_the_form(&self) -> bool {
        match self.status.as_u16() {
            400 | 422 => true,
            500 => role_order::is_refused(&self.body.to_lowercase()),
            _ => false,
        }
    }

    fn too_long(&self, info: &ServerInfo, summary: RequestSummary, words: &str) -> LlmError {
        let json: Value = serde_json::from_str(&self.body).unwrap_or_default();
        let size = |key: &str| json["error"][key].as_u64();
        let told = overflow::sizes(words);
        let needed = size("n_prompt_tokens").or(told.needed).unwrap_or(summary.needed);
        match size("n_ctx").or(told.window) {
            Some(window) if window < info.window => LlmError::SmallWindow {
                needed,
                window,
                configured: info.window,
                hint: info.window_hint.clone(),
            },
            window => LlmError::TooLong {
                needed,
                window: window.unwrap_or(info.room()),
            },
        }
    }
}

/// Returns the first of a list, in which Gemini sends its errors; anything else as it is.
fn first(json: Value) -> Value {
    match json {
        Value::Array(list) => list.into_iter().next().unwrap_or_default(),
        json => json,
    }
}

/// Tells whether the key is refused: the words, in lower case, are of Gemini (both) and xAI.
fn is_about_the_key(words: &str) -> bool {
    let refusals = ["api_key_invalid", "api key not valid", "incorrect api key provided"];
    refusals.iter().any(|refusal| words.contains(refusal))
}

/// Tells whether the account is empty: the words, in lower case, are of `OpenAI` and Anthropic.
fn is_without_credit(words: &str) -> bool {
    ["insufficient_quota", "credit balance is too low"]
        .iter()
        .any(|refusal| words.contains(refusal))
}

/// Tells whether the server has the model, and could not load it or lost it: the words, in lower
/// case, are of LM Studio.
fn is_without_model(words: &str) -> bool {
    let losses = ["failed to load model", "model is unloaded", "model has crashed"];
    losses.iter().any(|loss| words.contains(loss)) && !words.contains("not found")
}

/// Tells whether a filter of the provider refused what was asked: the words, in lower case, are of
/// Azure (both), `DeepSeek`, Alibaba and `OpenRouter`, which answers 403.
fn is_filtered(words: &str) -> bool {
    let filters = [
        "content_filter",
        "content management policy",
        "content exists risk",
        "data_inspection_failed",
        "requires moderation",
        "flagged_input",
        "content_policy_violation",
    ];
    filters.iter().any(|filter| words.contains(filter))
}

/// Returns the error for a request that alone exceeds what the provider allows in a minute: neither
/// waiting nor another window helps.
fn above_rate(info: &ServerInfo, summary: RequestSummary, words: &str) -> LlmError {
    let told = overflow::sizes(words);
    let needed = told.needed.unwrap_or(summary.needed);
    let limit = told
        .window
        .map_or_else(String::new, |limit| format!(" of {limit} tokens"));
    let below = told
        .window
        .map_or_else(|| "below that limit".to_owned(), |limit| format!("below {limit}"));
    LlmError::Refused {
        what: format!(
            "the provider's rate limit{limit} per minute for '{}' is below the request, which has about {needed} tokens, so it is \
             refused however long one waits",
            info.model
        ),
        hint: format!(
            "have the limit raised (a higher tier of the account), or set {}.context_length {below}, so that conversations are \
             shortened in time",
            info.section
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info() -> ServerInfo {
        ServerInfo {
            key_hint: "check the key".to_owned(),
            address_hint: "check the address".to_owned(),
            start_hint: "start the server".to_owned(),
            model_hint: "check the model".to_owned(),
            window_hint: "enlarge the window".to_owned(),
            ..ServerInfo::of_tests()
        }
    }

    fn verdict(status: u16, retry_after: Option<u64>, body: &str, with_tools: bool) -> String {
        let response = ErrorResponse {
            status: StatusCode::from_u16(status).unwrap(),
            retry_after: retry_after.map(Duration::from_secs),
            proxy: None,
            body: body.to_owned(),
        };
        let summary = RequestSummary {
            with_tools,
            needed: 9_000,
            took: Duration::ZERO,
        };
        match response.next_step(&info(), summary, DateTime::UNIX_EPOCH) {
            NextStep::Again { after, reason } => format!("again after {after:?}: {reason}"),
            NextStep::Slower { after } => format!("slower after {after:?}"),
            NextStep::Final(error) => error.to_string(),
        }
    }

    fn too_long(needed: u64, window: u64) -> String {
        LlmError::TooLong { needed, window }.to_string()
    }

    #[test]
    fn a_gateway_is_asked_again_unless_it_has_waited_for_a_reply() {
        for status in [408, 504, 524] {
            let response = ErrorResponse {
                status: StatusCode::from_u16(status).unwrap(),
                retry_after: None,
                proxy: None,
                body: String::new(),
            };
            let step = |took: Duration| {
                let summary = RequestSummary {
                    took,
                    ..RequestSummary::default()
                };
                response.next_step(&info(), summary, DateTime::UNIX_EPOCH)
            };
            let quick = step(Duration::from_secs(9));
            assert!(matches!(quick, NextStep::Again { .. }), "{status}: {quick:?}");
            let NextStep::Final(error) = step(PATIENCE_OF_GATEWAYS) else {
                panic!("{status} is asked for again");
            };
            assert!(
                matches!(error, LlmError::Unreachable { is_away: false, .. }),
                "{error:?}"
            );
            let told = error.to_string();
            assert!(
                told.contains("a proxy in front of it") && told.contains("llm.openai.stream"),
                "{told}"
            );
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table of answers")]
    fn each_refusal_is_handed_to_whoever_can_mend_it() {
        let from = "the openai server at http://model.test answered";
        for ((status, retry_after, body, with_tools), expected) in [
            (
                (500, None, "", false),
                "again after 0ns: it answered 500 Internal Server Error: (nothing more)".to_owned(),
            ),
            (
                (503, Some(5), "busy", false),
                "again after 5s: it answered 503 Service Unavailable: busy".to_owned(),
            ),
            ((429, None, "", false), "slower after 0ns".to_owned()),
            ((429, Some(30), "", false), "slower after 30s".to_owned()),
            (
                (429, Some(90), "", false),
                "the model's rate limit is reached until 1970-01-01 00:01:30 UTC".to_owned(),
            ),
            (
                (
                    429,
                    None,
                    r#"{"error":{"code":"insufficient_quota","message":"no money"}}"#,
                    false,
                ),
                format!(
                    "{from} 429 Too Many Requests to a request for 'gpt': no money; add credit to the account or choose another model"
                ),
            ),
            (
                (
                    400,
                    None,
                    r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."},"request_id":"req_1"}"#,
                    true,
                ),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': Your credit balance is too low to access the Anthropic API. Please \
                     go to Plans & Billing to upgrade or purchase credits; add credit to the account or choose another model"
                ),
            ),
            (
                (
                    401,
                    None,
                    r#"{"error":{"message":"bad key; prompt is too long"}}"#,
                    true,
                ),
                format!("{from} 401 Unauthorized to a request for 'gpt': bad key; prompt is too long; check the key"),
            ),
            (
                (404, None, r#"{"error":"model 'gpt' not found"}"#, true),
                format!("{from} 404 Not Found to a request for 'gpt': model 'gpt' not found; check the model"),
            ),
            (
                (
                    400,
                    None,
                    r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}]"#,
                    false,
                ),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': API key not valid. Please pass a valid API key; check the key"
                ),
            ),
            (
                (
                    400,
                    None,
                    r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: sk***YA. You can obtain an API key from https://console.x.ai."}"#,
                    true,
                ),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': Incorrect API key provided: sk***YA. You can obtain an API \
                     key from https://console.x.ai; check the key"
                ),
            ),
            (
                (
                    503,
                    None,
                    r#"[{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}]"#,
                    false,
                ),
                "again after 0ns: it answered 503 Service Unavailable: The model is overloaded".to_owned(),
            ),
            (
                (
                    400,
                    None,
                    r#"{"error":"Failed to load model \"qwen/qwen3-coder-30b\". Error: Operation canceled."}"#,
                    true,
                ),
                "again after 0ns: it answered 400 Bad Request: Failed to load model \"qwen/qwen3-coder-30b\". Error: Operation \
                 canceled"
                    .to_owned(),
            ),
            (
                (400, None, r#"{"error":"Model is unloaded."}"#, true),
                "again after 0ns: it answered 400 Bad Request: Model is unloaded".to_owned(),
            ),
            (
                (
                    400,
                    None,
                    r#"{"error":"The model has crashed without additional information. (Exit code: 6)"}"#,
                    true,
                ),
                "again after 0ns: it answered 400 Bad Request: The model has crashed without additional information. (Exit code: 6)"
                    .to_owned(),
            ),
            (
                (400, None, r#"{"error":"Failed to load model \"gpt\": not found"}"#, true),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': Failed to load model \"gpt\": not found; check the model"
                ),
            ),
            (
                (404, None, "<html>", false),
                format!("{from} 404 Not Found to a request for 'gpt': (a page of HTML); check the address"),
            ),
            (
                (400, None, r#"{"error":{"message":"temperature is wrong"}}"#, false),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': temperature is wrong; check the section llm.openai of the configuration"
                ),
            ),
            (
                (
                    400,
                    None,
                    r#"{"error":{"code":"context_length_exceeded","message":"x"}}"#,
                    true,
                ),
                too_long(9000, 7168),
            ),
            (
                (
                    400,
                    None,
                    r#"{"error":{"type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#,
                    false,
                ),
                "the conversation needs about 5000 tokens, and the server's window has 4096 although 8192 are configured; enlarge the window".to_owned(),
            ),
            (
                (
                    400,
                    None,
                    r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 > 8"}}"#,
                    false,
                ),
                too_long(9000, 7168),
            ),
            (
                (400, None, r#"{"error":"gemma does not support tools"}"#, true),
                "the model does not take native tool calls: gemma does not support tools".to_owned(),
            ),
            (
                (
                    500,
                    None,
                    r#"{"error":{"message":"tools param requires --jinja flag"}}"#,
                    true,
                ),
                "the model does not take native tool calls: tools param requires --jinja flag".to_owned(),
            ),
            (
                (
                    400,
                    None,
                    r#"{"error":{"code":"content_filter","message":"The response was filtered"}}"#,
                    false,
                ),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': The response was filtered; word the task otherwise, or \
                     choose another model"
                ),
            ),
            (
                (
                    403,
                    None,
                    r#"{"error":{"code":403,"message":"openai/gpt-4o requires moderation on OpenAI. Your input was flagged for \"violence\"","metadata":{"reasons":["violence"],"flagged_input":"kill the process","provider_name":"OpenAI","model_slug":"openai/gpt-4o"}}}"#,
                    true,
                ),
                format!(
                    "{from} 403 Forbidden to a request for 'gpt': openai/gpt-4o requires moderation on OpenAI. Your input was \
                     flagged for \"violence\"; word the task otherwise, or choose another model"
                ),
            ),
            (
                (403, None, r#"{"error":{"message":"The key lacks a permission"}}"#, false),
                format!("{from} 403 Forbidden to a request for 'gpt': The key lacks a permission; check the key"),
            ),
            (
                (502, None, "<html>this tool does not support tools</html>", true),
                "again after 0ns: it answered 502 Bad Gateway: (a page of HTML)".to_owned(),
            ),
            (
                (
                    400,
                    None,
                    r#"{"error":{"message":"Function call is missing a thought_signature in functionCall parts"}}"#,
                    true,
                ),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': Function call is missing a thought_signature in functionCall \
                     parts; check the section llm.openai of the configuration"
                ),
            ),
            (
                (
                    400,
                    None,
                    r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"top_k is too large","provider_name":"Acme"}}}"#,
                    false,
                ),
                format!(
                    "{from} 400 Bad Request to a request for 'gpt': Provider returned error: top_k is too large; check the section \
                     llm.openai of the configuration"
                ),
            ),
            (
                (404, None, r#"{"error":{"message":"No endpoints found that support tool use"}}"#, true),
                "the model does not take native tool calls: No endpoints found that support tool use".to_owned(),
            ),
            (
                (500, None, r#"{"error":"error parsing tool call: raw='{'"}"#, true),
                "again after 0ns: it answered 500 Internal Server Error: error parsing tool call: raw='{'".to_owned(),
            ),
        ] {
            assert_eq!(verdict(status, retry_after, body, with_tools), expected);
        }
    }
}
