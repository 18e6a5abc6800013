//! The user of a container's processes: the image's own, or 1000 instead of root.

/// The user for images that name none, or root.
const ORDINARY: &str = "1000:1000";

/// The user of a container in the engine's notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    /// Whether the image does not know this user, who then has no home directory.
    pub(crate) is_foreign: bool,
}

/// The uid and gid of a user, who owns the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) uid: u64,
    pub(crate) gid: u64,
}

/// Returns the image's user, or an unprivileged one instead of root.
pub(crate) fn of_image(user: &str) -> User {
    let name = user.split(':').next().unwrap_or_default();
    let is_foreign = matches!(name, "" | "root") || name.parse() == Ok(0_u64);
    User {
        name: if is_foreign { ORDINARY } else { user }.to_owned(),
        is_foreign,
    }
}

impl User {
    /// Returns uid and gid if the name has both as numbers, so that `/etc/passwd` need not be read.
    pub(crate) fn numbers(&self) -> Option<Owner> {
        let (uid, gid) = self.name.split_once(':')?;
        Some(Owner {
            uid: uid.parse().ok()?,
            gid: gid.parse().ok()?,
        })
    }

    /// Looks the user up in the text of the image's `/etc/passwd`.
    pub(crate) fn look_up(&self, passwd: &str) -> Option<Owner> {
        let name = self.name.split(':').next()?;
        let known = passwd.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            let (uid, gid) = (fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?);
            (fields[0] == name || name.parse() == Ok(uid)).then_some(Owner { uid, gid })
        });
        // A numeric user without an entry gets group 0 from the engine.
        known.or_else(|| name.parse().ok().map(|uid| Owner { uid, gid: 0 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_works_as_root() {
        for user in ["", "root", "0", "0:0", "root:root", "00"] {
            assert_eq!(of_image(user).name, "1000:1000", "{user}");
            assert!(of_image(user).is_foreign);
        }
        assert_eq!(of_image("agent").name, "agent");
        assert_eq!(of_image("1001:5").numbers(), Some(Owner { uid: 1001, gid: 5 }));
    }

    #[test]
    fn a_name_is_looked_up_in_the_images_own_list() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nagent:x:1000:1002::/home/agent:/bin/sh\n";
        let agent = Owner { uid: 1000, gid: 1002 };
        for user in ["agent", "agent:staff", "1000"] {
            assert_eq!(of_image(user).look_up(passwd), Some(agent), "{user}");
        }
        assert_eq!(of_image("77").look_up(passwd), Some(Owner { uid: 77, gid: 0 }));
        assert_eq!(of_image("nobody-here").look_up(passwd), None);
    }
}
