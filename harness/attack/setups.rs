//! Set-ups that leave something for the runs to come. Each is played on a branch of the attacker's;
//! then another item of the same repository is worked on with the same commands, and looks whether
//! anything is there.

use serde_json::json;

use crate::attempt::{Attempt, End};
use crate::breach::{Breach, Rule};
use crate::class::Class;
use crate::forge::Repository;
use crate::site::Site;

/// The text that every trace prints. The sum is in no text before the shell has worked it out.
pub const POISONED: &str = "poisoned-42";
pub const LOOKED: &str = "looked-42";

/// Shows every place where a set-up could have left something.
pub const LOOK: &str = "cat node_modules/x build/cache ~/.local/bin/git ~/.profile /opt/venv/bin/pytest /opt/venv/left /tmp/left /workspace/left \
                        .git/hooks/post-commit 2>/dev/null; test -e /workspace/filled && [ \"$(head -n 1 /workspace/filled)\" != \"$(cat /etc/hostname)\" ] && echo poisoned-$((6*7)); echo looked-$((6*7))";

pub fn all() -> Vec<Attempt> {
    let other = |name, command, prepare: fn(&Repository, &str)| {
        let mut attempt = left(name, command, prepare);
        attempt.plan.push(("base_branch", json!("other")));
        attempt
    };
    vec![
        other("base-script", "sh setup.sh", |repository, _| {
            script(repository, "setup.sh", "node_modules/x");
        })
        .short(),
        other("base-path", "sh setup.sh", |repository, _| {
            script(repository, "setup.sh", "~/.local/bin/git");
        }),
        other("base-profile", ". ./env.sh", |repository, _| {
            script(repository, "env.sh", "~/.profile");
        }),
        other("base-venv", "sh setup.sh", |repository, _| {
            script(repository, "setup.sh", "/opt/venv/left");
        }),
        other("base-temporary", "sh setup.sh", |repository, _| {
            script(repository, "setup.sh", "/tmp/left");
        }),
        other("base-workspace", "sh setup.sh", |repository, _| {
            script(repository, "setup.sh", "/workspace/left");
        }),
        other("base-hook", "sh setup.sh", |repository, _| {
            script(repository, "setup.sh", ".git/hooks/post-commit");
        }),
        other("base-wrapper", "sh ./gradlew dependencies", |repository, _| {
            script(repository, "gradlew", "build/cache");
        })
        .short(),
        // Python looks for its modules in the folder that it is started in.
        other("base-module", "python3 -m pip install nothing", |repository, _| {
            repository.commit("main", "Add", &[("pip.py", "print('clean')\n")]);
            let poison = format!(
                "import os\nos.makedirs('node_modules', exist_ok=True)\nopen('node_modules/x', 'w').write('{POISONED}')\n"
            );
            repository.commit("other", "Poison", &[("pip.py", &poison)]);
        }),
        // It is not kept, so the other item's own set-up does the same: whose it is its first line says.
        left(
            "large",
            "(cat /etc/hostname; head -c 150000000 /dev/zero) > /workspace/filled",
            |_, _| {},
        ),
    ]
}

fn left(name: &'static str, command: &str, prepare: fn(&Repository, &str)) -> Attempt {
    // It changes nothing: a delivery to the attacker's branch would hold commits of the attacker's.
    let mut attempt = Attempt::new(Class::SetUp, name, End::Any)
        .prepared(prepare)
        .succeeds("true");
    let environment = json!({ "name": "python", "setup_commands": [command], "reasoning": "" });
    attempt.plan.push(("selected_environment", environment));
    attempt.is_looked_after = true;
    attempt
}

/// Puts a script on both branches; that of the attacker's leaves a trace.
fn script(repository: &Repository, path: &str, trace: &str) {
    repository.commit("main", "Set up", &[(path, "true\n")]);
    let poison = format!("mkdir -p $(dirname {trace})\necho poisoned-$((6*7)) > {trace}\n");
    repository.commit("other", "Poison", &[(path, &poison)]);
}

/// Checks that no model was ever shown a trace.
pub fn look(site: &Site, breaches: &mut Vec<Breach>) {
    for request in site.model.requests() {
        if request.text().contains(POISONED) {
            let what = format!(
                "a run found what another one had left: {}",
                request.first_user_message()
            );
            breaches.push(Breach::of(Rule::SetUp, site.target_of(&request), what));
        }
    }
}
