//! The environment and settings of every git process.
//!
//! They override the configuration of any repository, so that nothing in a stranger's repository is
//! ever run.

/// Variables that are inherited from our own environment: search path, proxies and certificates.
pub(super) const PASSED_ON: [&str; 14] = [
    "PATH",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "CURL_CA_BUNDLE",
];

pub(super) const ENVIRONMENT: [(&str, &str); 16] = [
    ("HOME", "/nonexistent"),
    ("XDG_CONFIG_HOME", "/nonexistent"),
    ("LC_ALL", "C"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_ALLOW_PROTOCOL", "http:https"),
    // A small pack can declare an object of any size; git then refuses instead of filling the
    // memory.
    ("GIT_ALLOC_LIMIT", "1g"),
    ("GIT_PAGER", "cat"),
];

/// Settings that override the configuration of any repository. Redirects are not followed, because
/// git would send the authorization header to the new host.
pub(super) const SETTINGS: [&str; 30] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.alternateRefsCommand=:",
    "core.sshCommand=false",
    "core.gitProxy=",
    "core.askPass=",
    "core.quotePath=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.bigFileThreshold=16m",
    "core.logAllRefUpdates=false",
    "credential.helper=",
    "safe.directory=*",
    "safe.bareRepository=all",
    "gc.auto=0",
    "maintenance.auto=false",
    // Received packs are kept: unpacked large files would be compressed again for each container.
    "transfer.unpackLimit=1",
    "transfer.fsckObjects=true",
    "fetch.fsckObjects=true",
    "receive.fsckObjects=true",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "push.recurseSubmodules=no",
    "push.gpgSign=false",
    "commit.gpgSign=false",
    "http.followRedirects=false",
    "diff.external=",
    "color.ui=false",
];

/// Arguments of every push: no hook is run, and nothing goes along with the refs that are named.
pub(in crate::repository) const PUSH: [&str; 5] = [
    "push",
    "--porcelain",
    "--no-verify",
    "--no-follow-tags",
    "--no-recurse-submodules",
];

/// Bytes in a second below which a connection counts as silent in a look-up. How long a silence may
/// last is configured (`stall_seconds`). A transfer has another measure (`silence`).
pub(super) const SILENCE: &str = "http.lowSpeedLimit=1";

/// Faults, as `git fsck` names them, that old honest histories have and every forge serves. What
/// the forge gives may have them: names and authors of the past do no harm without a checkout, and
/// the container's git checks out no path that leads out. Faults by which an object cannot be read
/// are in nobody's history, and refused; what comes out of a container may have none of all these.
pub(in crate::repository) const TOLERATED: [&str; 42] = [
    "badDate",
    "badDateOverflow",
    "badEmail",
    "badFilemode",
    "badGpgsig",
    "badHeaderContinuation",
    "badName",
    "badTagName",
    "badTimezone",
    "duplicateEntries",
    "emptyName",
    "extraHeaderEntry",
    "fullPathname",
    "gitattributesLarge",
    "gitattributesLineLength",
    "gitattributesSymlink",
    "gitignoreSymlink",
    "gitmodulesBlob",
    "gitmodulesLarge",
    "gitmodulesName",
    "gitmodulesParse",
    "gitmodulesPath",
    "gitmodulesSymlink",
    "gitmodulesUpdate",
    "gitmodulesUrl",
    "hasDot",
    "hasDotdot",
    "hasDotgit",
    "largePathname",
    "mailmapSymlink",
    "missingAuthor",
    "missingCommitter",
    "missingEmail",
    "missingNameBeforeEmail",
    "missingSpaceBeforeDate",
    "missingSpaceBeforeEmail",
    "missingTaggerEntry",
    "multipleAuthors",
    "nulInCommit",
    "treeNotSorted",
    "zeroPaddedDate",
    "zeroPaddedFilemode",
];
