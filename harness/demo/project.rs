//! A small Python project with a history, a test that fails, and an issue that people talk about.

use crate::fake::github::{GitHub, Item, Permission};

const NAME: &str = "lanternworks/worktime";

const TITLE: &str = "Night shifts count as negative hours";
const BODY: &str = "\
A shift that goes past midnight is counted backwards:

```
$ echo '2026-03-02 22:30-06:15 pier' | python3 -m worktime
pier  -17:45
```

I expect `7:45`: the shift ends on the next day. The totals of the whole month are wrong because of this, and \
nobody noticed before payday.
";
const FIRST_COMMENT: &str = "\
I can reproduce it. There is a test for it on main now (`tests/test_night_shift.py`), and it fails.

A span that ends when it begins must stay an error, please: `09:00-09:00` is always a typing mistake, nobody works for 24 hours.";
const SECOND_COMMENT: &str =
    "Agreed. Please mention night shifts in the README, too; I looked there first and found nothing.";

/// Who had a say in the issue.
pub(crate) const WHOSE: &str = "opened by mara, discussed by jonas and mara; a test on main shows the fault and fails";

/// The published project.
pub(crate) struct Project {
    pub(crate) issue: Item,
}

impl Project {
    /// Pushes the project's history to the forge and opens the issue.
    pub(crate) fn publish(github: &GitHub) -> Self {
        let repository = github
            .repository(NAME)
            .member("mara", Permission::Triage)
            .member("jonas", Permission::Write);
        let history: [(&str, &[(&str, &str)]); 4] = [
            (
                "Read the lines of a time sheet",
                &[
                    ("README.md", include_str!("worktime/README.md")),
                    ("CHANGELOG.md", include_str!("worktime/CHANGELOG.md")),
                    ("pyproject.toml", include_str!("worktime/pyproject.toml")),
                    ("worktime/__init__.py", include_str!("worktime/worktime/__init__.py")),
                    ("worktime/entry.py", include_str!("worktime/worktime/entry.py")),
                    ("tests/__init__.py", include_str!("worktime/tests/__init__.py")),
                    ("tests/test_entry.py", include_str!("worktime/tests/test_entry.py")),
                ],
            ),
            (
                "Add up what was spent on each project",
                &[
                    ("worktime/report.py", include_str!("worktime/worktime/report.py")),
                    ("tests/test_report.py", include_str!("worktime/tests/test_report.py")),
                ],
            ),
            (
                "Read from files and from standard input",
                &[("worktime/__main__.py", include_str!("worktime/worktime/__main__.py"))],
            ),
            (
                "Show with a test that night shifts are negative",
                &[(
                    "tests/test_night_shift.py",
                    include_str!("worktime/tests/test_night_shift.py"),
                )],
            ),
        ];
        for (message, files) in history {
            repository.commit("main", message, files);
        }
        let issue = repository
            .open_issue(TITLE)
            .by("mara")
            .body(BODY)
            .comment("jonas", FIRST_COMMENT)
            .comment("mara", SECOND_COMMENT);
        Self { issue }
    }

    /// Asks for the work.
    pub(crate) fn label(&self) {
        self.issue.label("coding agent");
    }

    pub(crate) fn name(&self) -> &str {
        self.issue.repository()
    }

    /// Returns the pull request for the issue, if there is one.
    pub(crate) fn pull(&self, github: &GitHub) -> Option<Item> {
        github.pulls().into_iter().find(|pull| pull.mentions(&self.issue))
    }
}
