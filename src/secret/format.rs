//! Finds secrets by their form.
//!
//! Every pattern has a prefix or a frame that nothing else has: commit ids, UUIDs, lock-file hashes
//! and CSS classes stay as they are. Repetitions have no upper bounds, because these blow up the
//! automaton.

use std::ops::Range;

use super::cued::Cued;

/// The kind of private keys.
const PRIVATE_KEY: &str = "private-key";
/// Shortest piece by which a private key is known. A word of prose or code is seldom as long.
const SHORTEST_PIECE: usize = 16;

/// A kind of secret. The text of the first group that matches is replaced.
struct Format {
    kind: &'static str,
    cues: &'static [&'static str],
    pattern: &'static str,
}

/// The line that a private key begins with.
macro_rules! begin {
    () => {
        "-----BEGIN [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
    };
}

/// The line that a private key ends with.
macro_rules! end {
    () => {
        "-----END [A-Z ]*PRIVATE KEY(?: BLOCK)?-----"
    };
}

/// A character of a path.
macro_rules! in_path {
    () => {
        r"[A-Za-z0-9_./@+~()\[\]\x{80}-\x{10ffff}-]"
    };
}

/// What stands between the lines of a key where a text shows them in its own way: as a quote, a
/// comment, a difference or strings of a program, with numbers, or with the path of the file.
macro_rules! between {
    () => {
        concat!(
            r#"(?:[\s"'`>|#*,:+/-]|\\+[nrt"']|[0-9]+[\s:|-]|"#,
            in_path!(),
            "+[:-][0-9]+[:-]|",
            in_path!(),
            "*[./]",
            in_path!(),
            "*[:-])*",
        )
    };
}

/// The signs between two pieces of a key. They do not begin within what looks like a piece.
macro_rules! next {
    () => {
        concat!(r#"(?:[\s"'`>|#*,]|\\+[nrt"'])"#, between!())
    };
}

/// A private key as it is in its file, up to the end of its first line.
macro_rules! plain {
    () => {
        concat!(
            begin!(),
            r"(?:\s|\\+[nr])*(?:[A-Za-z-]+: [^\r\n\\]*(?:\s|\\+[nr])+)*[A-Za-z0-9+/=]{16,}",
        )
    };
}

/// A private key with something before its lines, up to the end of the last full one. A full line
/// is long, or any words would be a key.
macro_rules! framed {
    () => {
        concat!(
            begin!(),
            "(?:",
            between!(),
            r"(?:Proc-Type|DEK-Info|Version|Comment): [^\r\n\\]*)*",
            between!(),
            "[A-Za-z0-9+/=]{40,}(?:",
            next!(),
            "[A-Za-z0-9+/=]{40,})*",
        )
    };
}

/// What follows a piece of a key where the key is cut off, and does not follow the folders of a
/// path: these look like a piece of one, up to the dot or the sign before the rest of the name. Two
/// dots stand in no name; with them a text is shortened.
macro_rules! apart {
    () => {
        r"(?:[^A-Za-z0-9+/=._:@-]|[._:@-]+(?:[^A-Za-z0-9._:@-]|\z)|\.\.|-----|\z)"
    };
}

const FORMATS: [Format; 25] = [
    Format {
        kind: PRIVATE_KEY,
        cues: &["-----BEGIN "],
        pattern: concat!(
            "(",
            plain!(),
            r"(?:(?:\s|\\+[nr])(?:[A-Za-z0-9+/=\s]|\\+[nr])*(?:",
            end!(),
            ")?|",
            end!(),
            // Cut off within its first line, or behind it.
            "))|(",
            plain!(),
            ")",
            apart!(),
        ),
    },
    // Searched apart, since each may find more of a key than the other; what they find is joined.
    Format {
        kind: PRIVATE_KEY,
        cues: &["-----BEGIN "],
        pattern: concat!(
            "(",
            framed!(),
            "(?:",
            next!(),
            "[A-Za-z0-9+/=]+){0,2}(?:",
            next!(),
            ")?",
            end!(),
            // Without its last line. The length of each piece is a multiple of 4, and so `BEGIN`,
            // with which the next key begins, is none.
            ")|(",
            framed!(),
            "(?:",
            next!(),
            "(?:[A-Za-z0-9+/=]{1,4}|[A-Za-z0-9+/=]{6,}))?)",
            apart!(),
        ),
    },
    // The end of a key whose beginning was cut off.
    Format {
        kind: PRIVATE_KEY,
        cues: &["-----END "],
        pattern: concat!(
            "([A-Za-z0-9+/=]{60,}(?:",
            next!(),
            "[A-Za-z0-9+/=]{60,})*(?:",
            next!(),
            "[A-Za-z0-9+/=]+){0,2}(?:",
            next!(),
            ")?",
            end!(),
            ")",
        ),
    },
    Format {
        kind: "github-token",
        cues: &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        pattern: r"(gh[pousr]_[A-Za-z0-9]{20,}(?:[._-][A-Za-z0-9_-]+)*|github_pat_[A-Za-z0-9_]{20,})",
    },
    Format {
        kind: "gitlab-token",
        cues: &[
            "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-", "glsoat-",
            "glffct-",
        ],
        pattern: r"((?-u:\b)gl(?:pat|dt|rt|cbt|ptt|ft|imt|agent|oas|soat|ffct)-[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]+)*)",
    },
    Format {
        kind: "anthropic-key",
        cues: &["sk-ant-"],
        pattern: r"((?-u:\b)sk-ant-[A-Za-z0-9_-]{20,})",
    },
    Format {
        kind: "openai-key",
        cues: &["sk-"],
        pattern: r"((?-u:\b)sk-(?:(?:proj|svcacct|admin|None|or-v1)-[A-Za-z0-9_-]{20,}|[A-Za-z0-9]{20,}))",
    },
    Format {
        kind: "aws-key-id",
        cues: &["AKIA", "ASIA"],
        pattern: r"((?-u:\b)(?:AKIA|ASIA)[A-Z0-9]{16}(?-u:\b))",
    },
    Format {
        kind: "aws-secret-key",
        cues: &["aws"],
        pattern: r#"(?i-u:aws_?secret_?(?:access_?)?key)\\*["']?\s*[:=]\s*\\*["']?([A-Za-z0-9/+]{40})"#,
    },
    Format {
        kind: "google-key",
        cues: &["AIza", "GOCSPX-"],
        pattern: r"((?-u:\b)(?:AIza[A-Za-z0-9_-]{35,}|GOCSPX-[A-Za-z0-9_-]{28,}))",
    },
    Format {
        kind: "slack-token",
        cues: &["xox", "xapp-"],
        pattern: r"((?-u:\b)(?:xox[a-z]|xapp)-[A-Za-z0-9-]{10,})",
    },
    Format {
        kind: "slack-webhook",
        cues: &["hooks.slack.com"],
        pattern: r"hooks\.slack\.com\\*/services\\*/(T[A-Z0-9]+\\*/B[A-Z0-9]+\\*/[A-Za-z0-9]{20,})",
    },
    // A channel's access token has no prefix, but all that do not expire end alike.
    Format {
        kind: "line-token",
        cues: &["dB04t89/1O/w1cDnyilFU="],
        pattern: r"([A-Za-z0-9+/]{64,}dB04t89/1O/w1cDnyilFU=)",
    },
    Format {
        kind: "stripe-key",
        cues: &["k_live_", "k_test_", "whsec_"],
        pattern: r"((?-u:\b)(?:[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9]{24,}))",
    },
    Format {
        kind: "sendgrid-key",
        cues: &["SG."],
        pattern: r"((?-u:\b)SG\.[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{40,})",
    },
    Format {
        kind: "huggingface-token",
        cues: &["hf_"],
        pattern: r"((?-u:\b)hf_[A-Za-z0-9]{30,})",
    },
    Format {
        kind: "digitalocean-token",
        cues: &["_v1_"],
        pattern: r"((?-u:\b)do[opr]_v1_[a-f0-9]{64,})",
    },
    Format {
        kind: "twilio-key",
        cues: &["SK"],
        pattern: r"((?-u:\b)SK[a-f0-9]{32}(?-u:\b))",
    },
    Format {
        kind: "azure-key",
        cues: &["AccountKey=", "SharedAccessKey="],
        pattern: r"(?:AccountKey=([A-Za-z0-9+/]{86}==)|SharedAccessKey=([A-Za-z0-9+/]{43}=))",
    },
    // Docker Hub, HashiCorp Vault, Grafana, Groq, Shopify, RubyGems, age.
    Format {
        kind: "service-token",
        cues: &[
            "dckr_pat_",
            "hvs.",
            "glsa_",
            "gsk_",
            "shpat_",
            "shpca_",
            "shppa_",
            "shpss_",
            "rubygems_",
            "AGE-SECRET-KEY-1",
        ],
        pattern: r"((?-u:\b)(?:dckr_pat_[A-Za-z0-9_-]{27,}|hvs\.[A-Za-z0-9_-]{24,}|glsa_[A-Za-z0-9]{32,}_[a-f0-9]{8,}|gsk_[A-Za-z0-9]{50,}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}|rubygems_[a-f0-9]{48,}|AGE-SECRET-KEY-1[A-Z0-9]{58,}))",
    },
    Format {
        kind: "npm-token",
        cues: &["npm_"],
        pattern: r"((?-u:\b)npm_[A-Za-z0-9]{36,})",
    },
    Format {
        kind: "pypi-token",
        cues: &["pypi-"],
        pattern: r"((?-u:\b)pypi-[A-Za-z0-9_-]{50,})",
    },
    Format {
        kind: "jwt",
        cues: &["eyJ"],
        pattern: r"((?-u:\b)eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})",
    },
    Format {
        kind: "authorization",
        cues: &["authorization", "x-api-key", "private-token", "job-token"],
        pattern: concat!(
            r#"(?:(?i-u:authorization)(?:\\*["']?\s*[:=]\s*\[?\s*\\*["']?|\\*["']\s*,\s*\\*["'])(?i-u:bearer|basic|token)\s+"#,
            r#"|(?i-u:x-api-key|private-token|job-token)\\*["']?\s*:\s*\[?\s*\\*["']?)([A-Za-z0-9._~+/=-]{16,})"#,
            // In a list, what follows such a name may be the name of the next header. That has no
            // digit, and a key of 16 characters or more has one.
            r#"|(?i-u:x-api-key|private-token|job-token)\\*["']\s*,\s*\\*["']"#,
            r"([A-Za-z._~+/=-]*[0-9][A-Za-z0-9._~+/=-]{15,}|[A-Za-z._~+/=-]{4,}[0-9][A-Za-z0-9._~+/=-]{11,}",
            r"|[A-Za-z._~+/=-]{8,}[0-9][A-Za-z0-9._~+/=-]{7,}|[A-Za-z._~+/=-]{12,}[0-9][A-Za-z0-9._~+/=-]{3,})",
        ),
    },
    // A user alone is no secret (ssh://git@host), but a token may be in its place
    // (https://token@host). Some programs write the slashes of JSON with backslashes.
    Format {
        kind: "credentials",
        cues: &["://", r"\/"],
        pattern: concat!(
            r#"(?i:https?:(?://|\\+/\\+/)([^\s/?\#@"'<>`]+)@"#,
            r#"|[a-z][a-z0-9+.-]*:(?://|\\+/\\+/)([^\s/?\#:@"'<>`]*:[^\s/?\#"'<>`]+)@)"#,
        ),
    },
];

/// The kinds that marks name.
pub(super) const KINDS: [&str; FORMATS.len()] = {
    let mut kinds = [""; FORMATS.len()];
    let mut at = 0;
    while at < FORMATS.len() {
        kinds[at] = FORMATS[at].kind;
        at += 1;
    }
    kinds
};

/// The patterns, ready to search.
///
/// Each searches on its own. As alternatives of one pattern they would take quadratic time on a
/// hostile text: one that begins like a web token every few characters and never is one makes each
/// match of another wait to the end.
pub(super) struct Formats(Cued);

impl Formats {
    pub(super) fn new() -> Self {
        Self(Cued::new(FORMATS.map(|Format { cues, pattern, .. }| (cues, pattern))))
    }

    /// Returns kind and range of each secret, kind by kind.
    pub(super) fn find(&self, text: &str) -> impl Iterator<Item = (&'static str, Range<usize>)> {
        self.0.patterns_for(text).flat_map(move |(at, pattern)| {
            let kind = FORMATS[at].kind;
            let places = pattern
                .captures_iter(text)
                .filter_map(|groups| Some(groups.iter().skip(1).flatten().next()?.range()));
            places.filter_map(move |place| {
                let place = if kind == PRIVATE_KEY {
                    of_key(text, place)?
                } else {
                    place
                };
                Some((kind, place))
            })
        })
    }
}

/// Returns the place of a private key within what was found at `place`. There is none where only a
/// ruler and words stand beside the line that a key begins or ends with. Where a key is cut off,
/// one short piece behind its lines is its last one, unless it goes on like a sentence.
fn of_key(text: &str, place: Range<usize>) -> Option<Range<usize>> {
    let found = &text[place.clone()];
    let (mut last, mut next) = (None, None);
    for piece in pieces(found) {
        if is_of_key(&found[piece.clone()]) {
            (last, next) = (Some(piece), None);
        } else if next.is_none() {
            next = Some(piece);
        }
    }
    let last = last?;
    if found.ends_with("-----") {
        return Some(place);
    }
    let is_its_end = |piece: &Range<usize>| {
        let is_ruler = !found[piece.clone()].contains(|sign: char| sign.is_ascii_alphanumeric());
        !is_ruler && !text[place.start + piece.end..].starts_with([' ', '\t'])
    };
    let end = next.filter(is_its_end).unwrap_or(last).end;
    Some(place.start..place.start + end)
}

/// Returns the places of what looks like pieces of base64, words among them.
fn pieces(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_between = |sign: char| !sign.is_ascii_alphanumeric() && !"+/=".contains(sign);
    let mut start = 0;
    let all = text.split_inclusive(is_between).map(move |piece| {
        let begun = start;
        start += piece.len();
        begun..begun + piece.trim_end_matches(is_between).len()
    });
    all.filter(|place| !place.is_empty())
}

/// Tells whether a piece is one of a key, and no word, path or ruler.
fn is_of_key(piece: &str) -> bool {
    let mut runs = piece.split(|sign: char| !sign.is_ascii_alphanumeric());
    let has = |is_meant: fn(&u8) -> bool| piece.bytes().any(|byte| is_meant(&byte));
    let is_mixed = || has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    runs.any(|run| run.len() >= SHORTEST_PIECE) || (piece.len() >= SHORTEST_PIECE && is_mixed())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::string::string_regex;
    use regex::Regex;

    use super::FORMATS;
    use crate::secret::Redactor;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Redactor::default().clean(text).as_str(), expected);
    }

    /// Built from parts, so that no scanner takes this file for a leak.
    fn token(prefix: &str, length: usize) -> String {
        prefix.to_owned() + &"Ab3dEf6hIj9lMn2p".repeat(7)[..length]
    }

    #[test]
    fn tokens_of_all_known_formats_are_named() {
        for (prefix, length, kind) in [
            ("ghp_", 36, "github-token"),
            ("gho_", 36, "github-token"),
            ("ghu_", 36, "github-token"),
            ("ghs_", 36, "github-token"),
            ("ghr_", 36, "github-token"),
            ("github_pat_", 82, "github-token"),
            ("glpat-", 20, "gitlab-token"),
            ("gldt-", 20, "gitlab-token"),
            ("glrt-", 20, "gitlab-token"),
            ("sk-", 48, "openai-key"),
            ("sk-proj-", 80, "openai-key"),
            ("sk-ant-api03-", 80, "anthropic-key"),
            ("AIza", 35, "google-key"),
            ("xoxb-", 30, "slack-token"),
            ("npm_", 36, "npm-token"),
            ("GOCSPX-", 28, "google-key"),
            ("sk_live_", 24, "stripe-key"),
            ("rk_test_", 24, "stripe-key"),
            ("whsec_", 32, "stripe-key"),
            ("hf_", 34, "huggingface-token"),
            ("dckr_pat_", 27, "service-token"),
            ("hvs.", 90, "service-token"),
            ("gsk_", 52, "service-token"),
            ("pypi-", 80, "pypi-token"),
        ] {
            let token = token(prefix, length);
            check(&format!("x={token}, y"), &format!("x=[redacted:{kind}], y"));
        }
        let hex = "0123456789abcdef".repeat(4);
        check(&format!("dop_v1_{hex}"), "[redacted:digitalocean-token]");
        check(&format!("SK{}", &hex[..32]), "[redacted:twilio-key]");
        let sendgrid = format!("SG.{}.{}", token("", 22), token("", 43));
        check(&sendgrid, "[redacted:sendgrid-key]");
        check(
            &format!("AccountName=a;AccountKey={}==;x", token("", 86)),
            "AccountName=a;AccountKey=[redacted:azure-key];x",
        );
        let hook = "https://hooks.slack.com/services/";
        check(
            &format!("{hook}T0AB12CD3/B0AB12CD3/{}", token("", 24)),
            &format!("{hook}[redacted:slack-webhook]"),
        );
        check(
            &format!(
                r"https:\/\/hooks.slack.com\/services\/T0AB12CD3\/B0AB12CD3\/{}",
                token("", 24)
            ),
            r"https:\/\/hooks.slack.com\/services\/[redacted:slack-webhook]",
        );
        check("id AKIAIOSFODNN7EXAMPLE.", "id [redacted:aws-key-id].");
        check(
            &format!("LineBotApi('{}{}')", token("", 110), "dB04t89/1O/w1cDnyilFU="),
            "LineBotApi('[redacted:line-token]')",
        );
    }

    #[test]
    fn what_follows_a_name_is_taken_and_the_name_stays() {
        let secret = token("", 40);
        check(
            &format!("aws_secret_access_key = {secret}\n"),
            "aws_secret_access_key = [redacted:aws-secret-key]\n",
        );
        check(
            &format!("Authorization: Bearer {secret}\r\n"),
            "Authorization: Bearer [redacted:authorization]\r\n",
        );
        check(
            &format!(r#"{{"authorization":"Basic {secret}=="}}"#),
            r#"{"authorization":"Basic [redacted:authorization]"}"#,
        );
        let mark = "[redacted:authorization]";
        for frame in [
            r#"{\\\"Authorization\\\": \\\"Bearer #\\\"}"#,
            r#"{"Authorization": ["Bearer #"]}"#,
            "map[Authorization:[Bearer #]]",
            "('Authorization', 'token #')",
            "headers.append(\"X-Api-Key\", \"#\")",
            r##"{\\\"x-api-key\\\":\\\"#\\\"}"##,
        ] {
            check(&frame.replace('#', &secret), &frame.replace('#', mark));
        }
        check(
            &format!(r#"{{\\\"aws_secret_access_key\\\": \\\"{secret}\\\"}}"#),
            r#"{\\\"aws_secret_access_key\\\": \\\"[redacted:aws-secret-key]\\\"}"#,
        );
    }

    #[test]
    fn web_tokens_and_private_keys_go_as_a_whole() {
        let part = token("eyJ", 30);
        check(&format!("t {part}.{part}.{part} t"), "t [redacted:jwt] t");
        let body = format!("{}\n{}\n", token("MII", 61), token("", 64));
        let key = |frame: &str| format!("-----BEGIN {frame}-----\n{body}-----END {frame}-----");
        for frame in [
            "PRIVATE KEY",
            "RSA PRIVATE KEY",
            "OPENSSH PRIVATE KEY",
            "PGP PRIVATE KEY BLOCK",
        ] {
            check(&format!("<{}>", key(frame)), "<[redacted:private-key]>");
            check(
                &serde_json::json!({ "k": key(frame) }).to_string(),
                r#"{"k":"[redacted:private-key]"}"#,
            );
        }
        check(
            &format!("-----BEGIN PRIVATE KEY-----\n{body}"),
            "[redacted:private-key]\n",
        );
        let public = key("PUBLIC KEY");
        check(&public, &public);
        let in_file = serde_json::json!({ "private_key": key("PRIVATE KEY") }).to_string();
        check(
            &serde_json::json!({ "text": in_file }).to_string(),
            r#"{"text":"{\"private_key\":\"[redacted:private-key]\"}"}"#,
        );
    }

    #[test]
    fn private_keys_go_however_a_text_shows_their_lines() {
        let (first, last) = ("-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----");
        let (full, short) = (token("MII", 61), token("", 22));
        let lines = [first, &full, &token("", 64), &short, last];
        for frame in [
            "-#",
            "+#",
            "> #",
            "# #",
            "// #",
            " * #",
            "     2\t#",
            "2: #",
            "2-#",
            "keys/a.pem:2:#",
            "keys/a.pem-#",
            "a.pem-2-#",
        ] {
            let (prefix, _) = frame.rsplit_once('#').unwrap();
            let shown: Vec<String> = lines.iter().map(|line| format!("{prefix}{line}\n")).collect();
            check(&shown.concat(), &format!("{prefix}[redacted:private-key]\n"));
        }
        check(
            &format!("k = \"{}\\n\";", lines.join("\\n\" +\n  \"")),
            "k = \"[redacted:private-key]\\n\";",
        );
        // What a tool shows may begin within the key, or end there.
        check(&format!("{}\nx", lines[2..].join("\n")), "[redacted:private-key]\nx");
        check(
            &format!("> {first}\n> {full}\n> {short}\n"),
            "> [redacted:private-key]\n",
        );
        for text in [
            "if line == \"-----END PRIVATE KEY-----\" {",
            "const FIRST: &str = \"-----BEGIN PRIVATE KEY-----\";\nconst LAST: &str = \"-----END PRIVATE KEY-----\";",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn a_private_key_goes_up_to_where_a_text_is_shortened() {
        let (first, full) = ("-----BEGIN PRIVATE KEY-----", token("MII", 61));
        check(
            &format!("'{first}\\n{full}...the end'"),
            "'[redacted:private-key]...the end'",
        );
        check(
            &format!("> {first}\n> {full}\n> {}...the end", token("", 50)),
            "> [redacted:private-key]...the end",
        );
    }

    #[test]
    fn what_follows_the_lines_of_a_private_key_that_is_cut_off_stays() {
        let (first, full) = ("-----BEGIN PRIVATE KEY-----", token("MII", 61));
        for sign in ["+", " ", ""] {
            let shown = [first, &full, &full].map(|line| format!("{sign}{line}\n")).concat();
            for behind in ["diff --git a/x b/x\n", "end of it\n", "# ============\n# Parsing it\n"] {
                check(
                    &format!("{shown}{behind}"),
                    &format!("{sign}[redacted:private-key]\n{behind}"),
                );
            }
            // The last line of a key.
            let whole = format!("{shown}{sign}x1==\n");
            check(&whole, &format!("{sign}[redacted:private-key]\n"));
        }
        // Signs that are no letters part it into short runs.
        let parted = "aB3/".repeat(12);
        check(&format!("> {first}\n> {parted}\n"), "> [redacted:private-key]\n");
    }

    #[test]
    fn nothing_of_a_private_key_stays_behind_the_paths_that_a_search_prints() {
        let (full, short) = (token("MII", 61), token("", 22));
        let first = "-----BEGIN RSA PRIVATE KEY-----";
        let key = [first, &full, &token("", 64), &short];
        let encrypted = [
            first,
            "Proc-Type: 4,ENCRYPTED",
            "DEK-Info: AES-256-CBC,0123456789ABCDEF0123456789ABCDEF",
            "",
            &full,
        ];
        for path in [
            "config/production/certs/server.key",
            "config/production/certs/server",
            "deployment/environments/production/certificates/server.key",
            "packages/(certs)/@acme/schlüssel[1].pem",
        ] {
            for marks in [":#:", "-#-", ":"] {
                // The output is cut off before the last line.
                for lines in [&key[..2], &key[..3], &key[..], &encrypted[..]] {
                    let shown = |(number, line): (usize, &&str)| {
                        format!("{path}{}{line}\n", marks.replace('#', &(number + 1).to_string()))
                    };
                    let text: String = lines.iter().enumerate().map(shown).collect();
                    let (before, _) = text.split_once(first).unwrap();
                    check(&text, &format!("{before}[redacted:private-key]\n"));
                }
            }
        }
        let in_one = format!("const KEY: &str = \"{first}\\n{full}\\n\"\n  \"{full}\\n{short}\\n\";\n");
        check(&in_one, "const KEY: &str = \"[redacted:private-key]\\n\";\n");
    }

    #[test]
    fn each_of_several_private_keys_without_ends_goes() {
        let (first, full) = ("-----BEGIN RSA PRIVATE KEY-----", token("MII", 61));
        for (begins, goes_on, parted) in [
            ("keys/#.pem:1:", "keys/#.pem-2-", "--\n"),
            ("keys/#.pem:1:", "keys/#.pem:2:", ""),
            ("keys/#.pem:", "keys/#.pem-", "--\n"),
            ("> ", "> ", ""),
        ] {
            let shown = ["a", "b", "c"].map(|name| format!("{begins}{first}\n{goes_on}{full}\n").replace('#', name));
            let cleaned = ["a", "b", "c"].map(|name| format!("{begins}[redacted:private-key]\n").replace('#', name));
            check(&shown.join(parted), &cleaned.join(parted));
        }
    }

    #[test]
    fn paths_behind_the_first_line_of_a_private_key_stay() {
        let first = "-----BEGIN PRIVATE KEY-----";
        for folder in [
            "config/production/certs",
            "deployment/environments/production/certificates",
            "backend/src/main/java/com/example/application/security/certificates",
        ] {
            for (one, other) in [
                ("server.key:1:", "client.key:1:"),
                ("server:1:", "client:1:"),
                ("server-1-", "client-1-"),
                ("server.key:", "client_key:"),
            ] {
                let text = format!("{folder}/{one}{first}\n{folder}/{other}{first}\n");
                check(&text, &text);
                let text = format!("{folder}/{one}{first}\n{folder}/{other}the words of a text\n");
                check(&text, &text);
            }
        }
    }

    #[test]
    fn credentials_in_addresses_go_and_the_address_stays() {
        check("https://user:pass@host/a@b", "https://[redacted:credentials]@host/a@b");
        check("https://token123@host/a", "https://[redacted:credentials]@host/a");
        check("postgres://u:p@ss@db/x", "postgres://[redacted:credentials]@db/x");
        check(
            r#"{"url":"https:\/\/user:pass@host\/a","db":"mysql:\\\/\\\/u:p@db"}"#,
            r#"{"url":"https:\/\/[redacted:credentials]@host\/a","db":"mysql:\\\/\\\/[redacted:credentials]@db"}"#,
        );
    }

    #[test]
    fn what_only_looks_like_a_secret_stays() {
        for text in [
            "commit 3f786850e387550fdab836ed7e6dc881de23001b",
            "run 019aa6b2-0000-7000-8000-000000000000",
            "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
            "checksum = \"c982642fa9e8606056828ee9a8505737230110bb1099153c79efe865c59d12ba\"",
            "h1:d0VJIhZCbJzvLYRPPPAJPQ5zVHZZVSPiaYJtc3xTyJs=",
            "class=\"sk-cube-grid-animation-delay-long-name\"",
            "risk-assessment task-0123456789abcdef0123456789abcdef",
            "if text.contains(\"-----BEGIN PRIVATE KEY-----\") {",
            "PEM = \"-----BEGIN PRIVATE KEY-----\"\n\n# ============================================\n# Parsing\n",
            "# ============================================================\nEND = \"-----END PRIVATE KEY-----\"\n",
            "ssh://git@host/a/b git@github.com:owner/repo.git user@example.com",
            "http://127.0.0.1:8080/a?mail=a@b.c https://registry.example/@scope/name",
            "Authorization: Bearer ${TOKEN}, authorization: basic authentication",
            "use a bearer authentication-mechanism-of-your-choice",
            "headers.set(\"x-api-key\", api_key_of_the_environment)",
            "const HIDDEN = [\"x-api-key\", \"proxy-authorization\", 'private-token', 'x-gitlab-static-object-token'];",
            r#"{"url":"https:\/\/registry.example\/@scope\/name","mail":"a@b.c"}"#,
        ] {
            check(text, text);
        }
    }

    /// The generator of texts knows no bounds of words and texts. They match nothing that a cue
    /// could need.
    fn without_bounds(pattern: &str) -> String {
        pattern.replace(r"(?-u:\b)", "").replace(r"|\z", "")
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A format without its cue would never be searched.
        #[test]
        fn what_a_pattern_matches_has_one_of_its_cues(
            (at, text) in (0..FORMATS.len()).prop_flat_map(|at| {
                (Just(at), string_regex(&without_bounds(FORMATS[at].pattern)).unwrap())
            })
        ) {
            let format = &FORMATS[at];
            prop_assert!(Regex::new(&without_bounds(format.pattern)).unwrap().is_match(&text));
            let lower = text.to_ascii_lowercase();
            prop_assert!(format.cues.iter().any(|cue| lower.contains(&cue.to_ascii_lowercase())), "{}: {text}", format.kind);
        }
    }
}
