//! Pictures in every provider's own form, and models that take none.

use std::io::Cursor;

use coding_agent::conversation::Message;
use coding_agent::llm::config::role::Role;
use coding_agent::llm::config::{Config, ProviderName};
use coding_agent::llm::models::Models;
use coding_agent::picture::{Picture, prepared};
use image::{DynamicImage, ImageFormat, RgbImage};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use crate::fake::model::Model;
use crate::{PROVIDERS, clean, config};

fn picture(name: &str, format: ImageFormat) -> Picture {
    let mut bytes = Cursor::new(Vec::new());
    DynamicImage::ImageRgb8(RgbImage::new(20, 10))
        .write_to(&mut bytes, format)
        .unwrap();
    prepared(&bytes.into_inner(), name).unwrap()
}

/// Returns a configuration whose model takes pictures.
fn seeing(model: &Model, provider: ProviderName) -> Config {
    let mut config = config(model, provider);
    config.ollama.options.pictures = true;
    config.lmstudio.options.pictures = true;
    config.openai.options.pictures = true;
    config.anthropic.options.pictures = true;
    config
}

/// Sends a question with two pictures; returns the history that is kept.
async fn asks(config: &Config) -> Vec<Message> {
    let llm = Models::new(config).unwrap().of(Role::Worker, None);
    let mut chat = llm.chat(Arc::from([]), false, CancellationToken::new());
    chat.send_system_prompt(&clean("You look."));
    let pictures = vec![
        picture("one.png", ImageFormat::Png),
        picture("two.jpg", ImageFormat::Jpeg),
    ];
    chat.send_pictures(&clean("What is this?"), pictures);
    // What follows belongs to the same message.
    chat.send_user_message(&clean("Look well."));
    assert_eq!(chat.get_response().await.unwrap().text, "Black.");
    chat.messages().to_vec()
}

#[tokio::test]
async fn pictures_reach_every_provider_in_its_own_form() {
    for provider in PROVIDERS {
        let model = Model::start().await;
        model.says("Black.");
        let history = asks(&seeing(&model, provider)).await;
        let request = model.requests().pop().unwrap();
        let [png, jpeg] = request.pictures().try_into().unwrap();
        let Message::User { pictures, .. } = &history[1] else {
            panic!("{history:?}");
        };
        assert_eq!(png.1, pictures[0].bytes());
        assert_eq!(jpeg.1, pictures[1].bytes());
        if provider != ProviderName::Ollama {
            assert_eq!((png.0.as_str(), jpeg.0.as_str()), ("image/png", "image/jpeg"));
        }
        let said = request.last_user_message();
        assert_eq!(said, "What is this?\n\nLook well.", "{provider:?}");
        model.finish();
    }
}

#[tokio::test]
async fn a_model_that_takes_none_is_told_of_them_and_so_is_a_far_one_where_personal_data_is_masked() {
    let model = Model::start().await;
    for (is_seeing, masks) in [(false, false), (true, true)] {
        model.says("Black.");
        let mut config = if is_seeing {
            seeing(&model, ProviderName::Openai)
        } else {
            config(&model, ProviderName::Openai)
        };
        config.masks_personal_data = masks;
        // The fake is on this machine: only a far model is kept from pictures.
        let llm = Models::new(&config).unwrap().of(Role::Worker, None);
        assert!(llm.is_near());
        assert_eq!(llm.takes_pictures(), is_seeing);
        asks(&config).await;
        let request = model.requests().pop().unwrap();
        assert_eq!(request.pictures().len(), if is_seeing { 2 } else { 0 });
        let names = "one.png (image/png, 20 × 10), two.jpg (image/jpeg, 20 × 10)";
        assert_eq!(request.last_user_message().contains(names), !is_seeing);
    }
    let mut far = seeing(&model, ProviderName::Openai);
    "https://models.example.com/v1".clone_into(&mut far.openai.base_url);
    assert!(Models::new(&far).unwrap().of(Role::Worker, None).takes_pictures());
    far.masks_personal_data = true;
    assert!(!Models::new(&far).unwrap().of(Role::Worker, None).takes_pictures());
    model.finish();
}
