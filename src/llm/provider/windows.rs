//! The window of a model, as servers of chat completions tell it.

use serde_json::Value;

use crate::llm::provider::LoadedWindow;

/// Reads the window out of an entry of LM Studio's lists. A model that is not loaded is loaded by
/// the first request, with a window that nobody can tell before.
pub(super) fn of_lm_studio(entry: &Value, model: &str) -> LoadedWindow {
    if let Some(instances) = entry["loaded_instances"].as_array() {
        let named = instances.iter().find(|instance| instance["id"] == model);
        let length = |instance: &Value| instance["config"]["context_length"].as_u64();
        let least = instances.iter().filter_map(length).min();
        return match named.and_then(length).or(least) {
            Some(window) => LoadedWindow::Loaded(window),
            None if instances.is_empty() => LoadedWindow::NotLoaded,
            None => LoadedWindow::Unknown,
        };
    }
    match (entry["loaded_context_length"].as_u64(), entry["state"].as_str()) {
        (Some(window), _) => LoadedWindow::Loaded(window),
        (None, Some("not-loaded")) => LoadedWindow::NotLoaded,
        (None, _) => LoadedWindow::Unknown,
    }
}

/// Returns the window that a server reports with the model: each has its own name for it, and
/// llama.cpp's is one level deeper.
pub(super) fn told(model: &Value) -> Option<u64> {
    let told = ["max_model_len", "context_length", "context_window"].map(|key| &model[key]);
    told.into_iter()
        .chain([&model["meta"]["n_ctx"]])
        .find_map(Value::as_u64)
}
