//! Images: present, pulled, built, or missing with the mend.

use std::sync::Mutex;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use coding_agent::environment::{Config, Engine, EngineAccess, Environment, EnvironmentError};
use coding_agent::task::id::RunId;

use super::registry::{DOWN, LIMITED, Registry};
use super::site::{access, on_engine, shell};

#[tokio::test]
async fn a_missing_image_is_named_with_the_mend() {
    on_engine(Config::default(), async |site| {
        let environment = Environment {
            // A registry that is surely not there, so that the answer is the same on every machine.
            image: "127.0.0.1:1/coding-agent/missing:1".to_owned(),
            recommended_for: String::new(),
            libraries: String::new(),
            build: None,
            allow: None,
            project_files: None,
        };
        let error = site.docker.ensure_image(&environment, &|_| ()).await.unwrap_err();
        assert!(matches!(error, EnvironmentError::ImageMissing { .. }), "{error}");
        let text = error.to_string();
        assert!(text.contains("connection refused") && text.contains("docker pull 127.0.0.1:1/"), "{text}");

        let error = site.start_image(RunId::new(), &environment.image).await.unwrap_err();
        insta::assert_snapshot!(error, @"the image 127.0.0.1:1/coding-agent/missing:1 is missing: it is not on this machine; bring it with `docker pull 127.0.0.1:1/coding-agent/missing:1`, or give the environment a `build` section");
    })
    .await;
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_built() {
    on_engine(Config::default(), async |site| {
        std::fs::write(site.folder.path().join("greeting"), "hello from the context\n").unwrap();
        let mut environment =
            site.environment_with_dockerfile("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nCOPY greeting /greeting\n");
        environment.image = format!("127.0.0.1:1/{}", environment.image);
        let lines = Mutex::new(Vec::new());

        let record = |line: String| lines.lock().unwrap().push(line);
        site.docker.ensure_image(&environment, &record).await.unwrap();

        assert!(site.docker.has_image(&environment.image).await.unwrap());
        let lines = lines.into_inner().unwrap();
        assert!(
            lines.iter().any(|line| line.contains("Step 3/3 : COPY greeting")),
            "{lines:#?}"
        );
        let container = site.start_image(RunId::new(), &environment.image).await.unwrap();
        assert_eq!(shell(&container, "cat /greeting").await.0, "hello from the context\n");
        container.remove().await.unwrap();
        site.remove_image(&environment.image).await;
    })
    .await;
}

#[tokio::test]
async fn an_image_that_is_missing_is_pulled() {
    on_engine(Config::default(), async |site| {
        let registry = Registry::start(&site.instance).await;
        let environment = Environment {
            image: format!("{}/{}", registry.address, site.instance),
            recommended_for: String::new(),
            libraries: String::new(),
            build: None,
            allow: None,
            project_files: None,
        };
        let lines = Mutex::new(Vec::new());
        assert_eq!(site.docker.why_not_pullable(&environment.image).await, None);

        let record = |line: String| lines.lock().unwrap().push(line);
        site.docker.ensure_image(&environment, &record).await.unwrap();

        assert!(site.docker.has_image(&environment.image).await.unwrap());
        assert_eq!(lines.into_inner().unwrap()[0], format!("pulling {}", environment.image));
        site.remove_image(&environment.image).await;
        registry.server.abort();
    })
    .await;
}

#[tokio::test]
async fn a_registry_that_refuses_for_now_is_asked_again_and_lacks_nothing() {
    on_engine(Config::default(), async |site| {
        let registry = Registry::start(&site.instance).await;
        let environment = Environment {
            image: format!("{}/{}", registry.address, site.instance),
            recommended_for: String::new(),
            libraries: String::new(),
            build: None,
            allow: None,
            project_files: None,
        };
        registry.is_in(LIMITED);
        let lines = Mutex::new(Vec::new());
        let record = |line: String| lines.lock().unwrap().push(line);
        let error = site.docker.ensure_image(&environment, &record).await.unwrap_err();
        assert!(matches!(error, EnvironmentError::RegistryUnavailable { .. }), "{error}");
        let lines = lines.into_inner().unwrap();
        let attempts = lines.iter().filter(|line| line.contains("at the moment")).count();
        assert_eq!(attempts, 4, "{lines:#?}");

        registry.is_in(DOWN);
        // It is told before the next attempt.
        let recover = |line: String| {
            if line.contains("at the moment") {
                registry.recovers();
            }
        };
        site.docker.ensure_image(&environment, &recover).await.unwrap();

        assert!(site.docker.has_image(&environment.image).await.unwrap());
        site.remove_image(&environment.image).await;
        registry.server.abort();
    })
    .await;
}

#[tokio::test]
async fn an_image_that_is_named_by_its_digest_is_pulled_by_it_and_gets_no_tag() {
    on_engine(Config::default(), async |site| {
        let registry = Registry::start(&site.instance).await;
        let name = format!("{}/{}", registry.address, site.instance);
        for image in [
            format!("{name}@{}", registry.digest),
            format!("{name}:1.0@{}", registry.digest),
        ] {
            let environment = Environment {
                image: image.clone(),
                recommended_for: String::new(),
                libraries: String::new(),
                build: None,
                allow: None,
                project_files: None,
            };
            site.docker.ensure_image(&environment, &|_| ()).await.unwrap();

            assert!(site.docker.has_image(&image).await.unwrap());
            let found = site.engine.inspect_image(&image).await.unwrap();
            assert_eq!(found.repo_digests.unwrap(), [format!("{name}@{}", registry.digest)]);
            assert_eq!(found.repo_tags.unwrap_or_default(), [""; 0]);
        }
        let other = format!("{name}@sha256:{}", "0".repeat(64));
        assert!(!site.docker.has_image(&other).await.unwrap());
        site.remove_image(&format!("{name}@{}", registry.digest)).await;
        registry.server.abort();
    })
    .await;
}

#[tokio::test]
async fn a_build_that_fails_says_where() {
    on_engine(Config::default(), async |site| {
        let dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nRUN echo the reason && exit 9\n";
        let mut environment = site.environment_with_dockerfile(dockerfile);
        environment.image = format!("127.0.0.1:1/{}", environment.image);

        let error = site.docker.ensure_image(&environment, &|_| ()).await.unwrap_err();

        assert!(matches!(error, EnvironmentError::ImageMissing { .. }), "{error}");
        let text = error.to_string();
        assert!(
            text.contains("the reason") && text.contains("non-zero code: 9"),
            "{text}"
        );
    })
    .await;
}

#[tokio::test]
async fn an_image_of_roots_is_worked_in_by_somebody_else() {
    on_engine(Config::default(), async |site| {
        let environment =
            site.environment_with_dockerfile("ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nUSER root\nENV HOME=/root\n");
        site.docker.ensure_image(&environment, &|_| ()).await.unwrap();
        let container = site.start_image(RunId::new(), &environment.image).await.unwrap();

        let (stdout, ending) = shell(
            &container,
            "id -u; id -g; echo $HOME; touch ~/file project/file && echo written",
        )
        .await;
        assert_eq!(stdout, "1000\n1000\n/workspace\nwritten\n", "{}", ending.stderr);

        container.remove().await.unwrap();
        site.remove_image(&environment.image).await;
    })
    .await;
}

#[tokio::test]
async fn a_private_image_is_pulled_with_the_credentials_of_dockers_own_file() {
    on_engine(Config::default(), async |site| {
        // The last three letters are those that differ between the two alphabets of base64.
        let credentials = "ann:w~o>?rd~~~???>>>";
        let registry = Registry::private(credentials, &site.instance).await;
        let environment = Environment {
            image: format!("{}/{}", registry.address, site.instance),
            recommended_for: String::new(),
            libraries: String::new(),
            build: None,
            allow: None,
            project_files: None,
        };
        let refused = site.docker.ensure_image(&environment, &|_| ()).await.unwrap_err();
        assert!(matches!(refused, EnvironmentError::ImageMissing { .. }), "{refused}");

        let folder = site.folder.path();
        let auth = STANDARD.encode(credentials);
        let logged_in = serde_json::json!({ "auths": { registry.address.to_string(): { "auth": auth } } });
        std::fs::write(folder.join("config.json"), logged_in.to_string()).unwrap();
        let access = EngineAccess {
            config_folder: Some(folder.to_owned()),
            ..access()
        };
        let engine = Engine::connect(&Config::default(), &access, &site.instance)
            .await
            .unwrap();
        engine.ensure_image(&environment, &|_| ()).await.unwrap();

        assert!(engine.has_image(&environment.image).await.unwrap());
        site.remove_image(&environment.image).await;
        registry.server.abort();
    })
    .await;
}
