//! How git logs in where a forge's API gives it credentials.

use crate::forge::GitCredentials;
use crate::repository::git::address::Login;

/// Returns a forge's credentials as git's login.
pub(crate) fn login(credentials: GitCredentials) -> Login {
    Login {
        user: credentials.username,
        password: credentials.password,
        is_new: credentials.is_new,
        trust: credentials.trust,
    }
}
