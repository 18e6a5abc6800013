//! What stands between the model and the tools.

pub(crate) mod path_filter; // file tools that see less than there is
pub(crate) mod redaction_guard; // file tools that write no redaction marks
pub mod repository_tools; // the tools that look into the bare repository
