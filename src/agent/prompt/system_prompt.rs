//! The template of the working prompt: `system_prompt.txt` at the top of the project, or a file of
//! the operator's. It is checked when the configuration is read, so that no run begins with one
//! that cannot be filled in.

use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, context};

use crate::agent::prompt::tool_lines::ToolLine;
use crate::spelling::nearest;

/// The template that ships with the program.
pub const SHIPPED: &str = include_str!("../../../system_prompt.txt");

/// Largest template in bytes; a larger one fills the window of a local model.
pub const LARGEST: u64 = 64 * 1024;

/// Most instructions of a template, so that a loop in it comes to an end.
const FUEL: u64 = 1_000_000;

/// The variables of a template.
pub const VARIABLES: [&str; 10] = [
    "environment",
    "fence",
    "libraries",
    "native",
    "network",
    "rules",
    "sees_all",
    "server_prompts",
    "tools",
    "whole_files",
];

/// Checks that a template can be filled in: the error says what is wrong, and where.
///
/// # Errors
/// If it is no template, or uses a variable that does not exist.
pub fn check(template: &str) -> Result<(), String> {
    let environment = Environment::new();
    let parsed = environment
        .template_from_str(template)
        .map_err(|error| in_words(&error))?;
    let mut unknown: Vec<String> = parsed.undeclared_variables(false).into_iter().collect();
    unknown.retain(|name| !VARIABLES.contains(&name.as_str()));
    unknown.sort_unstable();
    if let Some(unknown) = unknown.first() {
        let hint = match nearest(unknown, VARIABLES) {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("there are {}", VARIABLES.join(", ")),
        };
        return Err(format!("there is no variable `{unknown}`; {hint}"));
    }
    for (native, whole_files) in [(true, false), (false, false), (false, true)] {
        let tool = ToolLine {
            name: "server/tool".to_owned(),
            arguments: "{path: string}".to_owned(),
            description: "Reads.".to_owned(),
        };
        let values = context! {
            native,
            whole_files,
            sees_all => native,
            fence => "data-0",
            environment => "python",
            libraries => "pip",
            network => "No network.",
            rules => "Be kind.",
            tools => Serde(&[tool]),
            server_prompts => ["Ask."],
        };
        try_render(template, values).map_err(|error| in_words(&error))?;
    }
    Ok(())
}

pub(super) fn render(template: &str, values: minijinja::Value) -> anyhow::Result<String> {
    Ok(try_render(template, values)?)
}

fn try_render(template: &str, values: minijinja::Value) -> Result<String, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(FUEL));
    Ok(environment.render_str(template, values)?.trim_end().to_owned())
}

fn in_words(error: &minijinja::Error) -> String {
    let detail = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    match error.line() {
        Some(line) => format!("line {line}: {detail}"),
        None => detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_checked_before_it_is_used() {
        assert_eq!(check(SHIPPED), Ok(()));
        assert_eq!(check("You are an agent. {{ rules }}"), Ok(()));
        for (template, expected) in [
            (
                "{{ enviroment }}",
                "there is no variable `enviroment`; did you mean `environment`?",
            ),
            (
                "{{ zzz }}",
                "there is no variable `zzz`; there are environment, fence, libraries, native, network, rules, sees_all, server_prompts, tools, whole_files",
            ),
            ("one\n{% if native %}", "line 2: "),
            ("one\n{% for tool in tools %}{{ tool.nmae.x }}{% endfor %}", "line 2: "),
            (
                "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}",
                "",
            ),
        ] {
            let error = check(template).unwrap_err();
            assert!(error.starts_with(expected), "{template}: {error}");
        }
    }
}
