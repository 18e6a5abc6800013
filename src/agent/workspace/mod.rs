//! Opening a run's workspace, setting it up, and taking the result out.

pub(crate) mod branch_name; // name of the branch for the result
pub mod confidentiality; // items that fewer people may read than the repository
pub(crate) mod fetching; // fetches the mirror, and tells of it
pub(crate) mod unfinished_work; // the copy in the store, for other machines
pub(crate) mod source; // the mirror, and the base commit of the work
pub(crate) mod large_files; // contents of Git LFS, and what the model is told of them
pub(crate) mod submodules; // folders that belong to other repositories
pub(crate) mod execute; // the program's own commands in the container
pub(crate) mod project_tests; // the commands that run the project's own tests
pub(crate) mod set_up; // the plan's set-up commands
pub(crate) mod open; // opens container and tools
pub(crate) mod snapshots; // saves the work at intervals, and commits it
