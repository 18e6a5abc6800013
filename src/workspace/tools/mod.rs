//! Filters between the model and the tools.

mod file_text; // the text of a file, in as many answers as it takes
mod hidden_lines; // a file's own lines in place of those with redaction marks
pub(crate) mod edit_form; // the form in which files are changed
pub(crate) mod path_filter; // file tools without access to excluded files
pub(crate) mod redaction_guard; // file tools that write no redaction marks
pub mod code_search; // tools that look into the code index
pub mod repository_tools; // tools that read the bare repository
#[cfg(test)]
mod one_file; // a server with one file
