//! Faults of a plan that the program finds itself, before a model is asked: this costs no tokens,
//! and is never mistaken about what it reports.
//!
//! Eight kinds of faults, see [`Kind`]. What is only suspicious is left to the reviewer.

mod tokens; // the words of shell commands
mod shell; // their grammar
mod ending; // whether a command can fail
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Place;
use crate::plain::{agreeing, counted};
use crate::plan::Plan;

/// The facts that a plan is checked against.
#[derive(Debug, Clone, Default)]
pub struct Surroundings<'a> {
    /// The names of the configured environments.
    pub environments: &'a [&'a str],
    /// Number of lines of the cited files that exist, see [`cited_paths`].
    pub lines: BTreeMap<String, u32>,
    pub max_subtasks: usize,
    /// Turns that the work may still take.
    pub turns_left: Option<u64>,
    /// Tokens that the work may still cost, and what one turn costs at the least.
    pub tokens_left: Option<u64>,
    pub tokens_per_turn: u64,
}

/// A fault of a plan, in words for the model that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    pub kind: Kind,
    pub what: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Steps are missing, depend on unknown ones, or on one another in a circle.
    Structure,
    /// A command is no shell command.
    Syntax,
    /// No check shows that the work is done.
    NoVerification,
    /// A check passes whatever was done.
    CannotFail,
    /// The environment is not configured.
    Environment,
    /// The steps cost more than is left.
    Budget,
    /// A criterion that no check looks at.
    UncheckedCriterion,
    /// A cited place does not exist.
    MissingPlace,
}

/// Programs that run whatever tests a project has.
const TEST_RUNNERS: [&str; 22] = [
    "pytest", "unittest", "tox", "nox", "cargo", "npm", "npx", "yarn", "pnpm", "jest", "vitest", "mocha", "go", "mvn",
    "mvnw", "gradle", "gradlew", "make", "ctest", "rake", "rspec", "phpunit",
];
/// Endings of files that no test suite looks into.
const DOCUMENTS: [&str; 5] = [".md", ".rst", ".txt", ".adoc", ".html"];

/// Returns the paths that the plan cites with lines, for [`Surroundings::lines`].
pub fn cited_paths(plan: &Plan) -> BTreeSet<String> {
    places(plan).into_iter().map(|place| place.path).collect()
}

/// Returns all faults of the plan; none means that a reviewer may be asked.
pub fn faults(plan: &Plan, surroundings: &Surroundings<'_>) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut add = |kind, what: String| faults.push(Fault { kind, what });
    if let Err(unreadable) = plan.validate(surroundings.max_subtasks) {
        add(Kind::Structure, unreadable.what);
    }
    for (role, command) in commands(plan) {
        if let Err(what) = shell::read(command) {
            add(
                Kind::Syntax,
                format!("the {role} `{}` cannot be parsed: {what}", shown(command)),
            );
        }
    }
    check_verification(plan, &mut add);
    check_environment(plan, surroundings, &mut add);
    check_budget(plan, surroundings, &mut add);
    for place in places(plan) {
        match surroundings.lines.get(&place.path) {
            None => add(
                Kind::MissingPlace,
                format!("it cites `{}`, which does not exist", shown(&place.path)),
            ),
            Some(lines) if place.last > *lines => add(
                Kind::MissingPlace,
                format!(
                    "it cites line {} of `{}`, which has {lines}",
                    place.last,
                    shown(&place.path)
                ),
            ),
            Some(_) => {}
        }
    }
    faults
}

fn commands(plan: &Plan) -> impl Iterator<Item = (&'static str, &str)> {
    let checks = plan.verification.iter().map(|check| ("check", check.command.as_str()));
    let set_up = plan
        .selected_environment
        .iter()
        .flat_map(|environment| &environment.setup_commands);
    let set_up = set_up.map(|command| ("set-up command", command.as_str()));
    let tests = Some(("test command", plan.test_command.as_str())).filter(|(_, command)| !command.trim().is_empty());
    checks.chain(set_up).chain(tests)
}

fn check_verification(plan: &Plan, add: &mut impl FnMut(Kind, String)) {
    let has_tests = !plan.test_command.trim().is_empty();
    if plan.verification.is_empty() && !has_tests {
        add(
            Kind::NoVerification,
            "it has no verification and no test command".to_owned(),
        );
        return;
    }
    let mut can_fail = has_tests;
    let mut trivial = Vec::new();
    for check in &plan.verification {
        let Ok(script) = shell::read(&check.command) else {
            can_fail = true;
            continue;
        };
        match ending::of(&script, check.expect_exit) {
            ending::PossibleEnds::Open => can_fail = true,
            ending::PossibleEnds::Trivial => trivial.push(check),
            ending::PossibleEnds::Masked => add(
                Kind::CannotFail,
                format!(
                    "the check `{}` passes whatever its commands find: its last command decides, and cannot fail",
                    shown(&check.command)
                ),
            ),
        }
    }
    // One that only prints does no harm beside others.
    if !can_fail {
        for check in trivial {
            add(
                Kind::CannotFail,
                format!("the check `{}` passes whatever was done", shown(&check.command)),
            );
        }
    }
    check_criteria(plan, can_fail, add);
}

/// Adds a fault for each criterion that names a file which no check names. For files of code the
/// project's tests are such a check.
fn check_criteria(plan: &Plan, can_fail: bool, add: &mut impl FnMut(Kind, String)) {
    let mut checks: Vec<&str> = plan.verification.iter().map(|check| check.command.as_str()).collect();
    checks.push(&plan.test_command);
    let runs_tests = checks.iter().any(|check| {
        let mut words = check.split(|letter: char| letter.is_whitespace() || "/;&|()".contains(letter));
        words.any(|word| TEST_RUNNERS.contains(&word))
    });
    for criterion in plan.goal_understanding.success_criteria.iter().filter(|_| can_fail) {
        let named = named_in(criterion);
        let is_checked = |name: &String| {
            let base = name.rsplit('/').next().unwrap_or(name);
            let is_document = DOCUMENTS.iter().any(|ending| base.to_lowercase().ends_with(ending));
            checks.iter().any(|check| check.contains(base)) || runs_tests && !is_document
        };
        if !named.is_empty() && !named.iter().any(is_checked) {
            let what = format!(
                "no check looks at {}, which the criterion \"{}\" names",
                listed(&named),
                shown(criterion)
            );
            add(Kind::UncheckedCriterion, what);
        }
    }
}

/// Returns the files that a criterion names.
fn named_in(criterion: &str) -> Vec<String> {
    let is_border = |letter: char| letter.is_whitespace() || "`'\"(),;:（）「」、。".contains(letter);
    let words = criterion
        .split(is_border)
        .map(|word| word.trim_end_matches(['.', '!', '?']));
    let is_file = |word: &&str| {
        let Some((stem, ending)) = word.rsplit_once('.') else {
            return false;
        };
        let has_name = stem.chars().any(char::is_alphabetic) && !stem.starts_with("//");
        let is_ending = (1..=4).contains(&ending.len()) && ending.chars().all(|letter| letter.is_ascii_lowercase());
        has_name && is_ending && !word.contains('@') && !["e.g", "i.e"].contains(word)
    };
    words.filter(is_file).map(str::to_owned).collect()
}

fn check_environment(plan: &Plan, surroundings: &Surroundings<'_>, add: &mut impl FnMut(Kind, String)) {
    let known = surroundings.environments;
    if let Some(flaw) = &plan.environment_flaw {
        add(
            Kind::Environment,
            format!("selected_environment cannot be read: {}", shown(flaw)),
        );
    }
    if let Some(selected) = &plan.selected_environment
        && plan.environment_among(known).is_none()
    {
        let what = format!(
            "the environment `{}` is not configured; there are: {}",
            shown(&selected.name),
            known.join(", ")
        );
        add(Kind::Environment, what);
    }
}

/// Adds a fault if the plan cannot be carried out within the budget. Each step takes a turn, and so
/// does the end.
fn check_budget(plan: &Plan, surroundings: &Surroundings<'_>, add: &mut impl FnMut(Kind, String)) {
    let steps = plan.task_decomposition.subtasks.len();
    let turns = u64::try_from(steps).unwrap_or(u64::MAX).saturating_add(1);
    if let Some(left) = surroundings.turns_left.filter(|left| turns > *left) {
        add(
            Kind::Budget,
            format!(
                "{} {} at least {turns} turns, and {left} {} left",
                counted(steps, "step"),
                agreeing(steps, "takes", "take"),
                agreeing(left, "is", "are")
            ),
        );
    }
    let tokens = turns.saturating_mul(surroundings.tokens_per_turn);
    if let Some(left) = surroundings.tokens_left.filter(|left| tokens > *left) {
        add(
            Kind::Budget,
            format!(
                "{} {} at least {tokens} tokens, and {left} are left",
                counted(steps, "step"),
                agreeing(steps, "costs", "cost")
            ),
        );
    }
}

/// Returns the places that the plan cites.
fn places(plan: &Plan) -> BTreeSet<Place> {
    let goal = &plan.goal_understanding;
    let subtasks = plan
        .task_decomposition
        .subtasks
        .iter()
        .map(|subtask| &subtask.description);
    let actions = plan.action_plan.actions.iter().map(|action| &action.purpose);
    let texts = [&goal.context_analysis, &plan.task_decomposition.reasoning];
    let texts = texts.into_iter().chain(subtasks).chain(actions);
    let is_border = |letter: char| letter.is_whitespace() || "`'\"()（）[]「」、。,;<>*".contains(letter);
    let cited = plan.evidence.iter().filter_map(|citation| {
        let (first, last) = citation.lines().unwrap_or((1, 1));
        Some(Place {
            path: citation.path.clone(),
            first: u32::try_from(first).ok()?,
            last: u32::try_from(last).ok()?,
        })
    });
    let words = texts.flat_map(|text| text.split(is_border));
    // "localhost:8080" and "python:3" have the same form.
    let is_file = |place: &Place| {
        let name = place.path.rsplit('/').next().unwrap_or("");
        let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
        !ending.is_empty() && ending.chars().any(char::is_alphabetic) && !place.path.starts_with('/')
    };
    words
        .filter_map(|word| Place::read(word.trim_end_matches(['.', ':', '!', '?'])))
        .filter(|place| is_file(place) && !looks_like_a_host(&place.path))
        .chain(cited)
        .collect()
}

fn looks_like_a_host(path: &str) -> bool {
    !path.contains('/')
        && [".com", ".org", ".net", ".io", ".local", ".test", ".dev", ".jp"]
            .iter()
            .any(|end| path.ends_with(end))
}

fn listed(names: &[String]) -> String {
    names
        .iter()
        .map(|name| format!("`{}`", shown(name)))
        .collect::<Vec<_>>()
        .join(", ")
}

fn shown(text: &str) -> String {
    text.chars().take(120).collect()
}
