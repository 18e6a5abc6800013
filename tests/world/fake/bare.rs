//! A bare git repository on disk: what a forge has behind each repository.
//!
//! Questions are answered by the real `git`, so that a push is a push and a diff is a diff. But
//! each process of it takes some milliseconds, and a run asks some seventy times: a reference is
//! read from its file where that says the same, and what git said of commits that were named by
//! their ids is remembered. Nothing of the user's own git configuration is read.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::process::Command;
use std::process::Output;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::Mutex;

/// Settings of every repository, as its file `config` has them. They are written at once: calling
/// `git config` seven times takes longer than everything else that makes a repository.
const SETTINGS: &str = "\
# Housekeeping would go on in the background after the test has ended.
[gc]
\tauto = 0
[receive]
\tautogc = false
[http]
\treceivepack = true
[uploadpack]
\tallowFilter = true
# As real forges keep them: packed, and large files as they are.
[fastimport]
\tunpackLimit = 1
[core]
\tbigFileThreshold = 1m
\tcompression = 0
";

/// Where each reference leads to a commit; elsewhere it may lead to a tag or a tree.
const LEAD_TO_COMMITS: [&str; 3] = ["refs/heads/", "refs/pull/", "refs/merge-requests/"];

/// A bare repository, known by its path.
#[derive(Clone, Debug)]
pub struct Bare {
    path: PathBuf,
    /// What git said of commits that were named by their ids, by its arguments.
    known: Arc<Mutex<HashMap<String, String>>>,
}

/// A commit, as `git log` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    pub id: String,
    pub parents: Vec<String>,
    pub author: String,
    pub email: String,
    pub date: String,
    pub message: String,
}

/// How one file differs between two commits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    pub path: String,
    pub additions: u64,
    pub deletions: u64,
    /// `added`, `removed` or `modified`.
    pub how: &'static str,
}

impl Bare {
    /// Creates an empty repository whose HEAD names `branch`.
    pub fn create(path: &Path, branch: &str) -> Self {
        std::fs::create_dir_all(path).expect("the folder of a repository can be made");
        let bare = Self {
            path: path.to_owned(),
            known: Arc::default(),
        };
        bare.git(&["init", "--quiet", "--bare", "--initial-branch", branch]);
        let config = std::fs::File::options().append(true).open(path.join("config"));
        config
            .and_then(|mut config| config.write_all(SETTINGS.as_bytes()))
            .expect("settings can be added to those of git");
        bare
    }

    /// Copies every branch of this repository into a new one: a fork.
    pub fn fork(&self, path: &Path, branch: &str) -> Self {
        let fork = Self::create(path, branch);
        fork.git(&[
            "fetch",
            "--quiet",
            &self.path.to_string_lossy(),
            "+refs/heads/*:refs/heads/*",
        ]);
        fork
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts one commit on a branch, which is made from `start` when it does not exist. Returns the
    /// commit id.
    pub fn commit(&self, branch: &str, start: &str, message: &str, files: &[(&str, &str)]) -> String {
        let files: Vec<_> = files
            .iter()
            .map(|(path, content)| (path.as_bytes(), content.as_bytes()))
            .collect();
        self.commit_bytes(branch, start, message, &files)
    }

    /// As `commit`, for names and contents that are no text.
    pub fn commit_bytes(&self, branch: &str, start: &str, message: &str, files: &[(&[u8], &[u8])]) -> String {
        let parent = self
            .resolve(&format!("refs/heads/{branch}"))
            .or_else(|| self.resolve(start));
        let now = chrono::Utc::now().timestamp();
        let mut stream = format!("commit refs/heads/{branch}\ncommitter Alice <alice@example.org> {now} +0000\n");
        let _ = write!(stream, "data {}\n{message}\n", message.len());
        if let Some(parent) = parent {
            let _ = writeln!(stream, "from {parent}");
        }
        let mut stream = stream.into_bytes();
        for (path, content) in files {
            stream.extend_from_slice(b"M 100644 inline ");
            stream.extend_from_slice(&quoted(path));
            stream.extend_from_slice(format!("\ndata {}\n", content.len()).as_bytes());
            stream.extend_from_slice(content);
            stream.push(b'\n');
        }
        self.git_fed(&["fast-import", "--quiet", "--force"], &stream);
        self.resolve(&format!("refs/heads/{branch}"))
            .expect("the branch was just written")
    }

    /// Puts a commit on a branch that has another repository's commit at a path.
    pub fn link(&self, branch: &str, path: &str, commit: &str) {
        let now = chrono::Utc::now().timestamp();
        let stream = format!(
            "commit refs/heads/{branch}\ncommitter Alice <alice@example.org> {now} +0000\ndata 4\nLink\n\
             from refs/heads/{branch}^0\nM 160000 {commit} {path}\n"
        );
        self.git_fed(&["fast-import", "--quiet", "--force"], stream.as_bytes());
    }

    /// Writes an object as it is, with faults that no git would write today; returns its id.
    pub fn object(&self, kind: &str, content: &[u8]) -> String {
        let arguments = ["hash-object", "-t", kind, "-w", "--literally", "--stdin"];
        self.git_fed(&arguments, content).trim().to_owned()
    }

    /// Returns the commit that a name stands for.
    ///
    /// The file of a reference holds its id, and a reference without a file is not there. Git moves
    /// a reference by renaming a new file, so that the old id is read or the new one.
    pub fn resolve(&self, name: &str) -> Option<String> {
        let file = is_reference(name).then(|| self.path.join(name));
        match file.map(std::fs::read_to_string) {
            Some(Ok(content)) if leads_to_commit(name) && is_id(content.trim_end()) => {
                return Some(content.trim_end().to_owned());
            }
            Some(Err(error)) if error.kind() == ErrorKind::NotFound && self.has_only_loose() => return None,
            // Packed, symbolic, a tag, an expression or an id: git knows.
            _ => {}
        }
        let name = format!("{name}^{{commit}}");
        self.try_git(&["rev-parse", "--verify", "--quiet", "--end-of-options", &name])
            .map(|id| id.trim().to_owned())
    }

    /// Returns the tree of a commit.
    pub fn tree(&self, commit: &str) -> String {
        self.git(&["rev-parse", &format!("{commit}^{{tree}}")])
            .trim()
            .to_owned()
    }

    /// Returns the branches with their commits, sorted by name.
    pub fn branches(&self) -> Vec<(String, String)> {
        if let Some(branches) = self.loose_branches() {
            return branches;
        }
        let listed = self.git(&[
            "for-each-ref",
            "--format=%(refname:lstrip=2) %(objectname)",
            "refs/heads",
        ]);
        let pairs = listed.lines().filter_map(|line| line.rsplit_once(' '));
        pairs.map(|(name, id)| (name.to_owned(), id.to_owned())).collect()
    }

    /// Returns the branches as their files have them, unless there may be others, or one is not a
    /// commit's id.
    fn loose_branches(&self) -> Option<Vec<(String, String)>> {
        let heads = self.path.join("refs/heads");
        let (mut branches, mut folders) = (Vec::new(), vec![heads.clone()]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).ok()? {
                let path = entry.ok()?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_none_or(|extension| extension != "lock") {
                    let content = std::fs::read_to_string(&path).ok()?;
                    let id = content.trim_end();
                    let name = path.strip_prefix(&heads).ok()?.to_str()?;
                    branches.push((name.to_owned(), is_id(id).then(|| id.to_owned())?));
                }
            }
        }
        branches.sort();
        self.has_only_loose().then_some(branches)
    }

    /// Tells whether each reference is a file of its own. It is asked after the files were read:
    /// what is packed is written there before its file goes.
    fn has_only_loose(&self) -> bool {
        ["packed-refs", "reftable"]
            .iter()
            .all(|other| !self.path.join(other).exists())
    }

    pub fn set_reference(&self, name: &str, id: &str) {
        self.git(&["update-ref", name, id]);
    }

    /// Renames a branch, and has HEAD name it still.
    pub fn rename_branch(&self, branch: &str, name: &str) {
        self.git(&["branch", "--move", branch, name]);
    }

    pub fn delete_reference(&self, name: &str) {
        self.git(&["update-ref", "-d", name]);
    }

    /// Refuses every push to a branch, with a reason.
    pub fn reject_pushes_to(&self, branch: &str, reason: &str) {
        self.judge_updates(&format!(
            "[ \"$1\" != 'refs/heads/{branch}' ] || {{ echo '{reason}' >&2; exit 1; }}"
        ));
    }

    /// Declines the next push of a branch, with a reason.
    pub fn decline_next_push(&self, reason: &str) {
        let hook = self.path.join("hooks/pre-receive");
        let script = format!(
            "#!/bin/sh\ngrep -q ' refs/heads/' || exit 0\nmkdir \"$0-declined\" 2> /dev/null || exit 0\n\
             echo '{reason}' >&2\nexit 1\n"
        );
        std::fs::create_dir_all(self.path.join("hooks")).expect("a folder for hooks can be made");
        std::fs::write(&hook, script).expect("a hook can be written");
        std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a hook can be made executable");
    }

    /// Refuses every push of a ref that is neither a branch nor a tag, with a reason.
    pub fn reject_other_references(&self, reason: &str) {
        self.judge_updates(&format!(
            "case $1 in refs/heads/*|refs/tags/*) ;; *) echo '{reason}' >&2; exit 1 ;; esac"
        ));
    }

    /// Refuses every push that leaves out commits of a branch, with a reason.
    pub fn reject_forced_pushes(&self, reason: &str) {
        let nothing = "0".repeat(40);
        self.judge_updates(&format!(
            "case $1 in refs/heads/*) ;; *) exit 0 ;; esac\ncase {nothing} in $2|$3) exit 0 ;; esac\n\
             git merge-base --is-ancestor $2 $3 || {{ echo '{reason}' >&2; exit 1; }}"
        ));
    }

    /// Refuses every push that leaves out commits of a branch, by git's own setting.
    pub fn deny_non_fast_forwards(&self) {
        self.git(&["config", "receive.denyNonFastForwards", "true"]);
    }

    /// Has a script judge each reference of a push: its name, where it is, and where it is to be.
    fn judge_updates(&self, script: &str) {
        let hook = self.path.join("hooks/update");
        std::fs::create_dir_all(self.path.join("hooks")).expect("a folder for hooks can be made");
        std::fs::write(&hook, format!("#!/bin/sh\n{script}\n")).expect("a hook can be written");
        std::fs::set_permissions(&hook, PermissionsExt::from_mode(0o755)).expect("a hook can be made executable");
    }

    /// Returns the references below a name, with the message of each one's commit.
    pub fn messages_below(&self, name: &str) -> Vec<(String, String)> {
        let format = "--format=%(refname)%00%(contents)%01";
        let listed = self.git(&["for-each-ref", format, name]);
        let listed = listed.split('\u{1}').filter_map(|entry| entry.split_once('\0'));
        listed
            .map(|(name, message)| (name.trim().to_owned(), message.to_owned()))
            .collect()
    }

    /// Points a reference to a commit that is nothing but this message, as anybody can who may push.
    pub fn set_message(&self, name: &str, message: &str) {
        let tree = self.git_fed(&["mktree"], b"");
        let author = "Mallory <mallory@example.org> 1700000000 +0000";
        let commit = format!("tree {}\nauthor {author}\ncommitter {author}\n\n{message}", tree.trim());
        let id = self.git_fed(&["hash-object", "-t", "commit", "-w", "--stdin"], commit.as_bytes());
        self.set_reference(name, id.trim());
    }

    /// Brings a branch of this or another repository here under a name of ours.
    pub fn take(&self, from: &Bare, branch: &str, reference: &str) {
        if from.path == self.path {
            let id = self
                .resolve(&format!("refs/heads/{branch}"))
                .expect("the branch is there");
            return self.set_reference(reference, &id);
        }
        let refspec = format!("+refs/heads/{branch}:{reference}");
        self.git(&["fetch", "--quiet", "--no-tags", &from.path.to_string_lossy(), &refspec]);
    }

    /// Returns the text of a file, or nothing if it is not there.
    pub fn file(&self, commit: &str, path: &str) -> Option<String> {
        self.try_git(&["cat-file", "blob", &format!("{commit}:{path}")])
    }

    /// Returns every path in a commit.
    pub fn files(&self, commit: &str) -> Vec<String> {
        self.git(&["ls-tree", "-r", "--name-only", commit])
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Returns what `head` has that its common ancestor with `base` has not, as a unified diff.
    pub fn diff(&self, base: &str, head: &str) -> String {
        let [base, head] = [base, head].map(|name| self.id_of(name));
        let range = format!("{base}...{head}");
        self.git_once(
            &["diff", "--no-color", "--no-ext-diff", "--no-renames", &range],
            &[&base, &head],
        )
    }

    /// Returns the changed files, counted.
    pub fn changed(&self, base: &str, head: &str) -> Vec<Changed> {
        let [base, head] = [base, head].map(|name| self.id_of(name));
        let range = format!("{base}...{head}");
        let states = self.git_once(&["diff", "--no-renames", "--name-status", &range], &[&base, &head]);
        let counts = self.git_once(&["diff", "--no-renames", "--numstat", &range], &[&base, &head]);
        let pairs = states.lines().zip(counts.lines());
        pairs.filter_map(|(state, count)| changed(state, count)).collect()
    }

    /// Returns the commits of `head` that are not in `base`, oldest first.
    pub fn commits(&self, base: &str, head: &str) -> Vec<Commit> {
        let [base, head] = [base, head].map(|name| self.id_of(name));
        self.log(&["--reverse", &format!("{base}..{head}")], &[&base, &head])
    }

    /// Returns one commit.
    pub fn commit_named(&self, id: &str) -> Option<Commit> {
        let id = self.id_of(id);
        self.log(&["--max-count=1", &id], &[&id]).pop()
    }

    pub fn merge_base(&self, one: &str, other: &str) -> Option<String> {
        let [one, other] = [one, other].map(|name| self.id_of(name));
        let found = self.try_git_once(&["merge-base", &one, &other], &[&one, &other]);
        found.map(|id| id.trim().to_owned())
    }

    /// Says whether the two merge without a conflict.
    pub fn merges(&self, base: &str, head: &str) -> bool {
        let [base, head] = [base, head].map(|name| self.id_of(name));
        self.try_git_once(&["merge-tree", "--write-tree", &base, &head], &[&base, &head])
            .is_some()
    }

    fn log(&self, arguments: &[&str], commits: &[&str]) -> Vec<Commit> {
        let mut all = vec!["log", "--format=%H%x1f%P%x1f%an%x1f%ae%x1f%aI%x1f%B%x1e"];
        all.extend_from_slice(arguments);
        let text = self.git_once(&all, commits);
        text.split('\u{1e}')
            .filter_map(|record| logged(record.trim_start_matches('\n')))
            .collect()
    }

    /// Returns the id of a commit, or the name itself where it stands for none.
    fn id_of(&self, name: &str) -> String {
        let id = if is_id(name) { None } else { self.resolve(name) };
        id.unwrap_or_else(|| name.to_owned())
    }

    fn git_once(&self, arguments: &[&str], commits: &[&str]) -> String {
        self.try_git_once(arguments, commits)
            .unwrap_or_else(|| self.git(arguments))
    }

    /// Asks git about these commits, and remembers what it says if all are named by their ids: it
    /// will never say anything else. A failure is not remembered, since a commit may still come.
    fn try_git_once(&self, arguments: &[&str], commits: &[&str]) -> Option<String> {
        if !commits.iter().all(|name| is_id(name)) {
            return self.try_git(arguments);
        }
        let question = arguments.join(" ");
        let known = || self.known.lock().expect("nobody panics with it");
        if let Some(said) = known().get(&question) {
            return Some(said.clone());
        }
        let said = self.try_git(arguments)?;
        known().insert(question, said.clone());
        Some(said)
    }

    fn git(&self, arguments: &[&str]) -> String {
        self.git_fed(arguments, b"")
    }

    fn git_fed(&self, arguments: &[&str], input: &[u8]) -> String {
        let output = self.run(arguments, input);
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "git {arguments:?} in {} failed: {complaint}",
            self.path.display()
        );
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn try_git(&self, arguments: &[&str]) -> Option<String> {
        let output = self.run(arguments, b"");
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn run(&self, arguments: &[&str], input: &[u8]) -> Output {
        let mut git = Command::new("git");
        git.arg("--git-dir").arg(&self.path).args(arguments);
        git.env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null");
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = git.spawn().expect("git is installed");
        let mut stdin = child.stdin.take().expect("the input was asked for");
        stdin.write_all(input).expect("git reads its input");
        drop(stdin);
        child.wait_with_output().expect("git ends")
    }
}

/// Tells whether a name is the whole name of a reference, and neither a path that leads elsewhere
/// nor an expression such as `refs/heads/main~1`.
fn is_reference(name: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.');
    let has_signs = name.contains(['~', '^', ':', '?', '*', '[', '\\', '{', ' ']) || name.contains("..");
    name.starts_with("refs/") && name.split('/').all(is_part) && !has_signs
}

fn leads_to_commit(name: &str) -> bool {
    LEAD_TO_COMMITS.iter().any(|folder| name.starts_with(folder))
}

fn is_id(name: &str) -> bool {
    name.len() == 40 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a path in the quotes of `git fast-import`.
fn quoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for &byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', byte]),
            b'\n' => quoted.extend(b"\\n"),
            _ => quoted.push(byte),
        }
    }
    quoted.push(b'"');
    quoted
}

fn changed(state: &str, count: &str) -> Option<Changed> {
    let (letter, path) = state.split_once('\t')?;
    let mut numbers = count.split('\t').map(|number| number.parse().unwrap_or(0));
    let how = match letter {
        "A" => "added",
        "D" => "removed",
        _ => "modified",
    };
    Some(Changed {
        path: path.to_owned(),
        additions: numbers.next()?,
        deletions: numbers.next()?,
        how,
    })
}

fn logged(record: &str) -> Option<Commit> {
    let mut fields = record.splitn(6, '\u{1f}').map(str::to_owned);
    Some(Commit {
        id: fields.next().filter(|id| !id.is_empty())?,
        parents: fields.next()?.split_whitespace().map(str::to_owned).collect(),
        author: fields.next()?,
        email: fields.next()?,
        date: fields.next()?,
        message: fields.next()?.trim_end().to_owned(),
    })
}
