//! Recognises the errors by which servers refuse what the user says directly behind the result of a
//! call.

/// Words, in lower case, of which one is in each of these errors: of Mistral's API, and of vLLM
/// with its tokenizer; of the templates of Mistral's models, in llama.cpp, LM Studio and Ollama.
const PHRASES: [&str; 2] = ["unexpected role 'user' after role 'tool'", "roles must alternate"];

/// Tells whether an error with these words, in lower case, refuses the order of the messages.
pub(crate) fn is_refused(words: &str) -> bool {
    PHRASES.iter().any(|phrase| words.contains(phrase))
}
