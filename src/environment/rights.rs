//! The rights that the program needs in its namespace of a cluster, compared with those that it
//! has.

/// A kind of object with what is done to it: group, resource, verbs.
pub type Right = (&'static str, &'static str, &'static [&'static str]);

/// All that the program does in a cluster. `packaging/kubernetes/role.yaml` grants it.
pub const NEEDED: [Right; 6] = [
    ("", "pods", &["get", "list", "create", "patch", "delete"]),
    // A stream is opened by GET, for which newer servers ask for `create`, older ones for `get`.
    ("", "pods/exec", &["get", "create"]),
    ("", "pods/attach", &["get", "create"]),
    ("", "pods/log", &["get"]),
    ("", "configmaps", &["get", "create"]),
    ("networking.k8s.io", "networkpolicies", &["get", "create", "patch"]),
];

/// Resources of questions about one's own rights, which everybody may ask who is known to a
/// cluster.
const OF_ALL: [&str; 4] = [
    "selfsubjectaccessreviews",
    "selfsubjectrulesreviews",
    "selfsubjectreviews",
    "selfsubjectattributesreviews",
];

/// A rule that holds for an account.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    pub groups: Vec<String>,
    pub resources: Vec<String>,
    pub verbs: Vec<String>,
    /// Names of the only objects that it is for; empty for all.
    pub names: Vec<String>,
}

/// The differences between the rights that the program has and those that it needs, with an engine
/// that asks for rights.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    /// Rights that it needs and has not, such as `create on pods/exec`.
    pub lacking: Vec<String>,
    /// Rights that it has and never uses.
    pub superfluous: Vec<String>,
    /// Whether the engine could not say everything.
    pub is_incomplete: bool,
}

impl Rule {
    fn grants(&self, group: &str, resource: &str, verb: &str) -> bool {
        let has = |list: &[String], word: &str| list.iter().any(|one| one == word || one == "*");
        self.names.is_empty() && has(&self.verbs, verb) && has(&self.groups, group) && has(&self.resources, resource)
    }
}

/// Compares the rules that hold for the program's account with what the program does.
pub fn compare(rules: &[Rule], is_incomplete: bool) -> Rights {
    let mut lacking = Vec::new();
    for (group, resource, verbs) in NEEDED {
        let missing = verbs
            .iter()
            .filter(|verb| !rules.iter().any(|rule| rule.grants(group, resource, verb)));
        lacking.extend(missing.map(|verb| format!("{verb} on {}", named(group, resource))));
    }
    let mut superfluous: Vec<String> = rules.iter().flat_map(beyond).collect();
    superfluous.sort();
    superfluous.dedup();
    Rights {
        lacking,
        superfluous,
        is_incomplete,
    }
}

/// Returns what a rule grants and the program never does.
fn beyond(rule: &Rule) -> Vec<String> {
    let mut found = Vec::new();
    for resource in rule
        .resources
        .iter()
        .filter(|resource| !OF_ALL.contains(&resource.as_str()))
    {
        for group in &rule.groups {
            let needed = NEEDED.iter().find(|(of, name, _)| of == group && name == resource);
            let is_done = |verb: &str| needed.is_some_and(|(.., verbs)| verbs.contains(&verb));
            let spare = rule.verbs.iter().filter(|verb| !is_done(verb));
            found.extend(spare.map(|verb| format!("{verb} on {}", named(group, resource))));
        }
    }
    found
}

fn named(group: &str, resource: &str) -> String {
    if group.is_empty() {
        resource.to_owned()
    } else {
        format!("{resource}.{group}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(group: &str, resource: &str, verbs: &[&str]) -> Rule {
        Rule {
            groups: vec![group.to_owned()],
            resources: vec![resource.to_owned()],
            verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
            names: Vec::new(),
        }
    }

    #[test]
    fn what_is_granted_is_compared_with_what_is_done() {
        let all: Vec<Rule> = NEEDED
            .iter()
            .map(|(group, resource, verbs)| rule(group, resource, verbs))
            .collect();
        let asking = rule("authorization.k8s.io", "selfsubjectrulesreviews", &["create"]);
        let exact = compare(&[all.clone(), vec![asking]].concat(), false);
        assert_eq!((exact.lacking, exact.superfluous), (Vec::new(), Vec::new()));

        let others = vec![
            rule("", "pods", &["get", "list", "watch"]),
            rule("", "secrets", &["get", "list"]),
        ];
        let other = compare(&[all[1..].to_vec(), others].concat(), false);
        assert_eq!(other.lacking, ["create on pods", "patch on pods", "delete on pods"]);
        assert_eq!(
            other.superfluous,
            ["get on secrets", "list on secrets", "watch on pods"]
        );

        let admin = compare(&[rule("*", "*", &["*"])], false);
        assert_eq!(
            (admin.lacking, admin.superfluous),
            (Vec::new(), vec!["* on *.*".to_owned()])
        );
    }

    #[test]
    fn a_rule_for_some_names_grants_nothing_for_others() {
        let mut named = rule("", "configmaps", &["get", "create"]);
        named.names = vec!["one".to_owned()];
        assert!(
            compare(&[named], false)
                .lacking
                .contains(&"create on configmaps".to_owned())
        );
    }
}
