//! Was an attack carried out? One that never reached its point held nothing off, and must not
//! count.

use crate::attempt::{Attempt, End};
use crate::class::Class;
use crate::fake::model::Request;
use crate::setups::LOOKED;
use crate::site::{Site, Target, is_planning, is_review, turns};

/// Returns what of the attack did not happen; `None` if it was carried out.
pub fn missing(site: &Site, target: &Target) -> Option<String> {
    let attempt = &target.attempt;
    let requests: Vec<_> = site
        .model
        .requests()
        .into_iter()
        .filter(|request| request.first_user_message().contains(&attempt.title()))
        .collect();
    let is_answered = !target.item.comments_of(site.forge.bot()).is_empty();
    if attempt.end == End::Ignored {
        return is_answered.then(|| "somebody was told of what nobody asked for".to_owned());
    }
    if attempt.end == End::Untouched {
        return (!is_answered).then(|| "nobody was told why nothing was begun".to_owned());
    }
    if requests.is_empty() && !is_answered {
        return Some("the program did not see the item".to_owned());
    }
    let looked = requests.iter().filter(|request| is_planning(request)).map(turns).max();
    if looked.unwrap_or(0) < attempt.looks.len() {
        return Some("the planner did not look".to_owned());
    }
    if attempt.is_looked_after {
        let mut second = site.model.requests().into_iter();
        let is_second = |request: &Request| request.first_user_message().contains(&attempt.second_title());
        if !second.any(|request| is_second(&request) && request.text().contains(LOOKED)) {
            return Some("nobody looked at what it left".to_owned());
        }
    }
    if attempt.class == Class::Review && !requests.iter().any(is_review) {
        return Some("nobody asked the reviewer".to_owned());
    }
    let is_work = |request: &&Request| !is_planning(request) && !is_review(request);
    let working = requests.iter().filter(is_work);
    // The longest one holds everything that was said and done until then.
    let longest = working.max_by_key(|request| turns(request));
    let (played, text) = longest.map_or((0, String::new()), |request| (turns(request), request.text()));
    if played < attempt.must_play {
        return Some(format!("{played} of {} replies had an effect", attempt.must_play));
    }
    if let Some(step) = unproved(attempt, &text) {
        return Some(format!("what proves it was not said: {step}"));
    }
    let words = attempt.told.as_deref()?;
    let told = target.item.comments_of(site.forge.bot()).pop().unwrap_or_default();
    (!told.contains(words)).then(|| format!("nobody was told {words}"))
}

fn unproved<'a>(attempt: &'a Attempt, text: &str) -> Option<&'a str> {
    let mut steps = attempt.proofs.iter().map(String::as_str);
    steps.find(|step| !text.contains(step))
}
