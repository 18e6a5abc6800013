//! The stem of an English word, so that a question about "parsing" finds what "parses".

/// Fewest letters of a stem.
const SHORTEST: usize = 3;

/// Returns the word, in small letters, without its usual endings.
pub(super) fn stem(word: &str) -> &str {
    if !word.is_ascii() || word.len() <= SHORTEST {
        return word;
    }
    let word = plural(word);
    let word = ["ing", "ed", "er"]
        .iter()
        .find_map(|ending| Some(undoubled(word.strip_suffix(ending)?)).filter(|stem| stem.len() >= SHORTEST))
        .unwrap_or(word);
    word.strip_suffix(['e', 'y'])
        .filter(|stem| stem.len() >= SHORTEST)
        .unwrap_or(word)
}

fn plural(word: &str) -> &str {
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() >= SHORTEST) {
        return stem;
    }
    if let Some(stem) = word.strip_suffix("es")
        && ["sh", "ch", "x", "ss", "z"].iter().any(|end| stem.ends_with(end))
    {
        return stem;
    }
    match word.strip_suffix('s') {
        Some(stem) if stem.len() >= SHORTEST && !stem.ends_with(['s', 'u', 'i']) => stem,
        _ => word,
    }
}

/// Returns `stopp` as `stop`.
fn undoubled(word: &str) -> &str {
    let bytes = word.as_bytes();
    match bytes {
        [.., before, last] if before == last && !b"lsz".contains(last) => &word[..word.len() - 1],
        _ => word,
    }
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn forms_of_a_word_share_its_stem() {
        for forms in [
            &["parse", "parses", "parsed", "parsing", "parser"][..],
            &["request", "requests", "requested"],
            &["stop", "stops", "stopped", "stopping"],
            &["match", "matches", "matching"],
            &["class", "classes"],
            &["retry", "retries"],
        ] {
            let stems: Vec<_> = forms.iter().map(|form| stem(form)).collect();
            assert!(stems.windows(2).all(|pair| pair[0] == pair[1]), "{forms:?}: {stems:?}");
        }
        assert_eq!(stem("status"), "status");
        assert_eq!(stem("id"), "id");
    }
}
