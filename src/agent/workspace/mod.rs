//! Opens a run's workspace, fills it, and takes the work out.

pub(crate) mod branch_name; // the branch that a result goes to
pub mod confidentiality; // work on what not everybody may read
pub(crate) mod source; // the mirror, and the commit that the work starts from
pub(crate) mod execute; // the program's own commands in the container
pub(crate) mod set_up; // the plan's set-up commands
pub(crate) mod open; // opens container and tools
pub(crate) mod snapshots; // keeps the work while it is done, and commits it
