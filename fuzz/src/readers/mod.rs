//! One function for each kind of bytes: it reads them as the program does, and fails where
//! something does not hold that must.

pub mod bodies;
pub mod comments;
pub mod commits;
pub mod configuration;
pub mod frames;
pub mod hosts;
pub mod markdown;
pub mod messengers;
pub mod model;
pub mod outputs;
pub mod people;
pub mod secrets;
pub mod sources;
pub mod words;

/// Reads the bytes, or panics.
pub type Reader = fn(&[u8]);

/// All of them, by the name of their fuzz target and of their folder in the corpus.
pub const READERS: [(&str, Reader); 29] = [
    ("added_objects", commits::added_objects),
    ("answer", model::answer),
    ("bodies", bodies::bodies),
    ("client_hello", hosts::client_hello),
    ("comment_command", people::comment_command),
    ("comments", comments::comments),
    ("commit_message", commits::message),
    ("configuration", configuration::configuration),
    ("difference", outputs::difference),
    ("harmless", markdown::harmless),
    ("hosts", hosts::hosts),
    ("large_file", commits::large_file),
    ("link_frames", frames::link),
    ("mcp_frames", frames::mcp),
    ("messages", messengers::messages),
    ("picture", messengers::picture),
    ("plan", model::plan),
    ("proxy_request", frames::proxy_request),
    ("raw_difference", commits::raw_difference),
    ("redactor", secrets::redactor),
    ("reply", model::reply),
    ("review", model::review),
    ("rules", people::rules),
    ("source", sources::source),
    ("stream", model::stream),
    ("test_output", outputs::test_output),
    ("tunnel_frames", frames::tunnel),
    ("visible", markdown::visible),
    ("words", words::words),
];

/// Returns the bytes as the program gets them where it wants text.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
