//! Servers behind a certificate authority of one's own, which each provider's section names for
//! itself.

use std::path::Path;

use coding_agent::config::Config;
use coding_agent::conversation::decode;
use coding_agent::llm::config::ProviderName;
use coding_agent::llm::error::LlmError;
use coding_agent::llm::model::Model as Llm;
use serde_json::json;

use crate::fake::model::{self, Model};
use crate::fake::tls::{Front, Tls};
use crate::{KEY, PROVIDERS, chat, model_of};

/// Returns the model of a config.yaml in `folder` whose provider is at `front`. The provider's own
/// section names `ca_file`, if there is one.
fn configured(folder: &Path, provider: ProviderName, front: &Front, ca_file: Option<&str>) -> Llm {
    let (name, origin) = (provider.as_str(), front.origin());
    let mut section = match provider {
        ProviderName::Ollama => json!({ "endpoint": origin }),
        ProviderName::Lmstudio => json!({ "base_url": origin }),
        ProviderName::Openai => json!({ "base_url": format!("{origin}/v1"), "api_key": KEY }),
        ProviderName::Anthropic => json!({ "base_url": origin, "api_key": KEY }),
    };
    section["model"] = json!(model::NAME);
    if let Some(file) = ca_file {
        section["ca_file"] = json!(file);
    }
    let config = json!({
        "task_sources": ["github"],
        "github": { "token": "a-token", "repositories": ["acme/widgets"] },
        "llm": { "provider": name, name: section },
    });
    let path = folder.join("config.yaml");
    // JSON is YAML as well.
    std::fs::write(&path, config.to_string()).unwrap();
    let no_variable = |_: &str| None::<String>;
    let config = Config::load(&path, &no_variable).unwrap();
    model_of(&config.llm).unwrap()
}

#[tokio::test]
async fn every_provider_trusts_the_authority_that_its_own_section_names() {
    let tls = Tls::by_an_authority();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("acme.pem"), tls.trusted()).unwrap();
    for provider in PROVIDERS {
        let model = Model::start().await;
        let front = Front::start(&tls, model.socket());
        model.done("Greeted.");

        let trusting = configured(folder.path(), provider, &front, Some("acme.pem"));
        let reply = chat(&trusting, true).get_response().await.unwrap();
        let examined = trusting.examine().await;
        let error = configured(folder.path(), provider, &front, None)
            .examine()
            .await
            .unwrap_err();

        assert!(decode::turn(&reply).unwrap().done, "{provider:?}");
        assert!(examined.is_ok(), "{provider:?}: {examined:?}");
        assert!(matches!(error, LlmError::Unreachable { .. }), "{provider:?}: {error:?}");
        assert!(
            error.to_string().ends_with(
                "the server's certificate comes from an authority that is not trusted here; name that authority's \
                 certificate in ca_file"
            ),
            "{provider:?}: {error}"
        );
        // Nothing of what is to be said reaches a server that is not trusted.
        assert_eq!(model.requests().len(), 1, "{provider:?}");
        model.finish();
    }
}
