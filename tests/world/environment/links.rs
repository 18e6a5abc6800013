//! Images whose files are symbolic links, as on NixOS or openSUSE.

use coding_agent::certificates::Trust;
use coding_agent::environment::Config;
use coding_agent::task::id::RunId;

use super::site::{on_engine, shell};

#[tokio::test]
async fn users_and_certificates_of_an_image_are_read_through_links() {
    let config = Config {
        trust: Trust::new(vec![b"a company's own".to_vec().into()], Some("bundles".into())),
        ..Config::default()
    };
    on_engine(config, async |site| {
        let dockerfile = "ARG BASE_IMAGE\nFROM ${BASE_IMAGE}\nUSER root\n\
                          RUN mkdir /kept && mv /etc/passwd /kept/passwd && ln -s ../kept/passwd /etc/passwd && \
                          mv /etc/ssl/certs/ca-certificates.crt /kept/bundle && ln -s bundle /kept/link && \
                          ln -s /kept/link /etc/ssl/certs/ca-certificates.crt && \
                          (echo -----BEGIN CERTIFICATE-----; echo b25seSBpbiB0aGUgaW1hZ2U=; echo -----END CERTIFICATE-----) >>/kept/bundle\n\
                          USER agent\n";
        let environment = site.environment_with_dockerfile(dockerfile);
        site.docker.ensure_image(&environment, &|_| ()).await.unwrap();
        let container = site.start_image(RunId::new(), &environment.image).await.unwrap();

        let script = "stat -c %U project; grep b25seSBpbiB0aGUgaW1hZ2U= /usr/local/share/coding-agent-certificates.pem";
        let (stdout, ending) = shell(&container, script).await;
        assert_eq!(stdout, "agent\nb25seSBpbiB0aGUgaW1hZ2U=\n", "{}", ending.stderr);

        container.remove().await.unwrap();
        site.remove_image(&environment.image).await;
    })
    .await;
}
