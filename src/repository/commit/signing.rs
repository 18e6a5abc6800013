//! The SSH key that signs delivered commits. It stays on the worker, out of every container.
//!
//! Git signs through `ssh-keygen`. A key that others can read, that needs a passphrase or that
//! signs the same commit differently each time is refused before use, with a remedy. Whether the
//! forge accepts the signature (whose key it is, whether the address is verified) cannot be checked
//! here.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use crate::repository::commit::identity::committed;
use crate::repository::git::command::Git;
use crate::repository::{CommitId, Config, RepositoryError};

const LARGEST_FILE: u64 = 64 * 1024;
const FIRST_LINE: &str = "-----BEGIN OPENSSH PRIVATE KEY-----";
const LAST_LINE: &str = "-----END OPENSSH PRIVATE KEY-----";
/// Beginning of the decoded key.
const MAGIC: &[u8] = b"openssh-key-v1\0";
/// Kinds of key with deterministic signatures. ECDSA is randomized, and a key on a token waits for
/// a touch.
const STEADY: [&str; 2] = ["ssh-ed25519", "ssh-rsa"];

/// A usable signing key. Only [`SigningKey::read`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SigningKey {
    file: PathBuf,
    /// The public key as one line, for the forge.
    public: String,
}

impl SigningKey {
    /// Checks a private key file without running a program. The error is the end of a sentence that
    /// begins with the file.
    pub fn read(file: &Path) -> Result<Self, String> {
        let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
        let about = std::fs::metadata(file).map_err(unreadable)?;
        let shown = file.display();
        // `ssh-keygen`, too, refuses a user's own key that the group may read.
        let is_own = about.uid() == rustix::process::getuid().as_raw();
        if about.mode() & 0o007 != 0 || (is_own && about.mode() & 0o070 != 0) {
            return Err(format!(
                "may be read by others (its mode is {:04o}); keep it to its owner: chmod 600 {shown}",
                about.mode() & 0o7777
            ));
        }
        if about.len() > LARGEST_FILE {
            return Err("is larger than 64 KiB; this is no key".to_owned());
        }
        let text = std::fs::read_to_string(file).map_err(unreadable)?;
        let head = KeyHeader::of(&text).ok_or_else(|| {
            format!(
                "is no OpenSSH private key; make one with `ssh-keygen -t ed25519 -N '' -f FILE`, or bring this one into that form with \
                 `ssh-keygen -p -N '' -f {shown}`"
            )
        })?;
        if head.cipher != "none" {
            return Err(format!(
                "is protected by a passphrase, which nobody is there to type; give the program a key of its own, or take the \
                 passphrase off with `ssh-keygen -p -N '' -f {shown}`"
            ));
        }
        if !STEADY.contains(&head.kind.as_str()) {
            return Err(format!(
                "is a key of the kind {}, which cannot give a commit the same signature twice; make one with \
                 `ssh-keygen -t ed25519 -N '' -f FILE`",
                head.kind.escape_debug()
            ));
        }
        Ok(Self {
            // Git runs in another folder.
            file: std::path::absolute(file).map_err(unreadable)?,
            public: format!("{} {}", head.kind, STANDARD.encode(head.public)),
        })
    }

    /// Returns the configured key, if there is one.
    pub(in crate::repository) fn of(config: &Config) -> Result<Option<Self>, RepositoryError> {
        let Some(file) = &config.signing_key_file else {
            return Ok(None);
        };
        Self::read(file)
            .map(Some)
            .map_err(|reason| RepositoryError::Unexpected {
                what: "signing the commits".to_owned(),
                reason: format!("git.signing_key_file: the file {} {reason}", file.display()),
            })
    }

    pub fn public(&self) -> &str {
        &self.public
    }

    /// Makes a `git commit-tree -S` sign with this key.
    pub(super) fn by<'a>(&self, git: Git<'a>) -> Git<'a> {
        let mut key = OsString::from("user.signingKey=");
        key.push(&self.file);
        git.args(["-c", "gpg.format=ssh", "-c"]).arg(key)
    }

    /// Tries to sign a commit, in a temporary repository below `folder`.
    pub async fn try_out(&self, config: &Config, folder: &Path) -> Result<(), RepositoryError> {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let place = folder.join(format!(".doctor-{}", Uuid::now_v7()));
        let tried = async {
            Git::new(config, "making a repository to sign in")
                .args(["init", "--quiet", "--bare", "--template=", "--"])
                .arg(&place)
                .bytes()
                .await?;
            let git = Git::new(config, "signing a commit").directory(&place);
            let git = self
                .by(git)
                .args(["commit-tree", "-S", CommitId::nothing().as_str()])
                .args(["-m", "Nothing"])
                .env("TMPDIR", &place);
            committed(git, config, None).await.map(drop)
        };
        let tried = tried.await;
        // A left-over repository does no harm; the next try uses another.
        let _ = tokio::fs::remove_dir_all(&place).await;
        tried
    }
}

/// The unencrypted part of an OpenSSH private key.
struct KeyHeader {
    cipher: String,
    kind: String,
    public: Vec<u8>,
}

impl KeyHeader {
    fn of(text: &str) -> Option<Self> {
        let body = text.trim().strip_prefix(FIRST_LINE)?.strip_suffix(LAST_LINE)?;
        let body: String = body.split_whitespace().collect();
        let bytes = STANDARD.decode(body).ok()?;
        let rest = &mut bytes.strip_prefix(MAGIC)?;
        let cipher = String::from_utf8(field(rest)?.to_vec()).ok()?;
        let (_derivation, _its_options) = (field(rest)?, field(rest)?);
        let (_how_many, after) = rest.split_at_checked(4)?;
        *rest = after;
        let public = field(rest)?.to_vec();
        let kind = String::from_utf8(field(&mut public.as_slice())?.to_vec()).ok()?;
        Some(Self { cipher, kind, public })
    }
}

/// Takes a field: four bytes of length, then that many bytes.
fn field<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<4>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (field, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(field)
}
