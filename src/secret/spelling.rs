//! Spellings of one configured value in a text: as it is, and as base64, in hexadecimal digits, in
//! a URL, in JSON as the usual libraries write it, and in HTML.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use base64::engine::general_purpose::URL_SAFE;
use percent_encoding::AsciiSet;
use percent_encoding::NON_ALPHANUMERIC;
use percent_encoding::utf8_percent_encode;

/// Shortest value that is searched: shorter ones would tear holes into ordinary words.
const SHORTEST: usize = 6;
/// Shortest line of a value that is searched alone, such as one line of a key.
const SHORTEST_LINE: usize = 24;
/// Leaves the characters that browsers and most libraries leave unencoded.
const UNRESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// What a library writes as `\u` codes in JSON, besides what it must.
struct JsonEscapes {
    signs: &'static str,
    /// Whether what is not ASCII is written so as well.
    non_ascii: bool,
    digits: HexCase,
}

/// The case of hexadecimal digits.
enum HexCase {
    Lower,
    Upper,
}

const OF_PYTHON: JsonEscapes = JsonEscapes {
    signs: "",
    non_ascii: true,
    digits: HexCase::Lower,
};
const OF_GO: JsonEscapes = JsonEscapes {
    signs: "&<>",
    non_ascii: false,
    digits: HexCase::Lower,
};
const OF_GSON: JsonEscapes = JsonEscapes {
    signs: "&<>='",
    ..OF_GO
};
const OF_DOTNET: JsonEscapes = JsonEscapes {
    signs: "\"&'+<>`",
    non_ascii: true,
    digits: HexCase::Upper,
};

/// Returns every spelling of all `values`, each once.
pub(super) fn of_all<'a>(values: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut all = Vec::new();
    for value in values.map(str::trim) {
        if value.chars().count() < SHORTEST {
            continue;
        }
        of_one(value, &mut all);
        if value.contains('\n') {
            let lines = value.lines().map(str::trim);
            lines
                .filter(|line| line.len() >= SHORTEST_LINE)
                .for_each(|line| of_one(line, &mut all));
        }
    }
    all.sort_unstable();
    all.dedup();
    all
}

fn of_one(value: &str, all: &mut Vec<String>) {
    all.push(value.to_owned());
    in_json_of_libraries(value, all);
    in_html(value, all);
    for set in [NON_ALPHANUMERIC, &UNRESERVED] {
        let encoded = utf8_percent_encode(value, set).to_string();
        let form = encoded.replace("%20", "+");
        all.extend([with_small_digits(&encoded), with_small_digits(&form), encoded, form]);
    }
    for before in 0..3 {
        let core = base64_core(value.as_bytes(), before);
        all.push(core.replace('+', "-").replace('/', "_"));
        all.push(core);
    }
    let halves = value.bytes().flat_map(|byte| [byte >> 4, byte & 15]);
    let digits: String = halves.filter_map(|half| char::from_digit(half.into(), 16)).collect();
    all.extend([digits.to_ascii_uppercase(), digits]);
    // With the last character and the padding, for a value that was encoded alone.
    all.push(STANDARD.encode(value));
    all.push(URL_SAFE.encode(value));
}

fn in_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Adds the value as JSON, also as libraries write it that escape more than they must: signs of
/// HTML, letters that are not ASCII, slashes.
fn in_json_of_libraries(value: &str, all: &mut Vec<String>) {
    let of_python = in_json_with(&OF_PYTHON, value);
    let plain = in_json(value);
    all.extend([plain.replace('/', "\\/"), of_python.replace('/', "\\/")]);
    all.extend([plain, of_python]);
    all.extend([OF_GO, OF_GSON, OF_DOTNET].map(|escapes| in_json_with(&escapes, value)));
}

/// Returns the value in JSON as a library with these escapes writes it.
fn in_json_with(escapes: &JsonEscapes, value: &str) -> String {
    let mut text = String::new();
    for sign in value.chars() {
        if !escapes.signs.contains(sign) && (sign.is_ascii() || !escapes.non_ascii) {
            text.push_str(&in_json(sign.encode_utf8(&mut [0; 4])));
            continue;
        }
        let mut units = [0; 2];
        for unit in sign.encode_utf16(&mut units) {
            let code = match escapes.digits {
                HexCase::Lower => format!("\\u{unit:04x}"),
                HexCase::Upper => format!("\\u{unit:04X}"),
            };
            text.push_str(&code);
        }
    }
    text
}

/// Adds the value as HTML, with quotation marks as the usual libraries write them.
fn in_html(value: &str, all: &mut Vec<String>) {
    let plain = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    for (double, single) in [
        ("\"", "'"),
        ("&quot;", "'"),
        ("&quot;", "&#39;"),
        ("&quot;", "&#x27;"),
        ("&quot;", "&apos;"),
        ("&#34;", "&#39;"),
    ] {
        all.push(plain.replace('"', double).replace('\'', single));
    }
}

/// Returns `encoded` with `%2F` as `%2f`, and the rest unchanged.
fn with_small_digits(encoded: &str) -> String {
    let mut parts = encoded.split('%');
    let mut small = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        small.push('%');
        small.push_str(&part[..2].to_ascii_lowercase());
        small.push_str(&part[2..]);
    }
    small
}

/// Returns the base64 characters that `value` alone decides when it begins `before` bytes (modulo
/// 3) into longer data, such as `user:password` in a basic authorization.
fn base64_core(value: &[u8], before: usize) -> String {
    let mut data = vec![0; before];
    data.extend_from_slice(value);
    let first = (before * 8).div_ceil(6);
    let end = data.len() * 8 / 6;
    STANDARD.encode(&data)[first..end].to_owned()
}
