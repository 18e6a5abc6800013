//! Containers on the real engine: limits, streams, removal, and what is said when something is missing.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::routing::get;
use bollard::query_parameters::{KillContainerOptions, RemoveImageOptions};
use coding_agent::environment::container::{Container, Ending};
use coding_agent::environment::docker::Docker;
use coding_agent::environment::{Build, Config, Environment, EnvironmentError, NetworkMode};
use coding_agent::task::id::{RunId, TaskId};
use futures_util::FutureExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};

const IMAGE: &str = "coding-agent-executor-python:latest";

/// An installation of its own on the engine: what other tests start is not seen from here.
struct Site {
    docker: Docker,
    /// The engine without our code in between, to look at what it made.
    engine: bollard::Docker,
    folder: tempfile::TempDir,
    instance: String,
}

impl Site {
    async fn new(config: &Config) -> Self {
        let instance = RunId::new().to_string();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("executor"), "#!/bin/sh\necho executor here\n").unwrap();
        Self {
            docker: Docker::connect(config, docker_host().as_deref(), &instance)
                .await
                .unwrap(),
            engine: bollard::Docker::connect_with_defaults().unwrap(),
            folder,
            instance,
        }
    }

    async fn start(&self, run: RunId) -> Container {
        self.start_image(run, IMAGE).await.unwrap()
    }

    async fn start_image(&self, run: RunId, image: &str) -> Result<Container, EnvironmentError> {
        self.docker.start(&task(), run, image, &self.executor()).await
    }

    fn executor(&self) -> PathBuf {
        self.folder.path().join("executor")
    }

    fn environment_with_dockerfile(&self, dockerfile: &str) -> Environment {
        let path = self.folder.path().join("Dockerfile");
        std::fs::write(&path, dockerfile).unwrap();
        Environment {
            image: format!("coding-agent-test-{}:local", self.instance),
            recommended_for: String::new(),
            libraries: String::new(),
            build: Some(Build {
                dockerfile: path,
                args: [("BASE_IMAGE".to_owned(), IMAGE.to_owned())].into(),
            }),
        }
    }

    async fn remove_image(&self, image: &str) {
        self.engine
            .remove_image(image, None::<RemoveImageOptions>, None)
            .await
            .unwrap();
    }
}

/// Tells the story, and takes away all that it left even when it ends badly.
async fn on_engine(config: Config, story: impl AsyncFnOnce(&Site)) {
    let site = Site::new(&config).await;
    let outcome = AssertUnwindSafe(Box::pin(story(&site))).catch_unwind().await;
    site.docker.sweep(&HashSet::new()).await.unwrap();
    if let Err(panic) = outcome {
        resume_unwind(panic);
    }
}

fn docker_host() -> Option<String> {
    std::env::var("DOCKER_HOST").ok()
}

fn task() -> TaskId {
    "github:owner/repository#12".parse().unwrap()
}

async fn shell(container: &Container, script: &str) -> (String, Ending) {
    let (stdout, ending) = container
        .run(&["sh", "-c", script], tokio::io::empty(), 1024 * 1024)
        .await
        .unwrap();
    (String::from_utf8(stdout).unwrap(), ending)
}

#[tokio::test]
async fn a_container_has_the_limits_it_was_promised() {
    on_engine(Config::default(), async |site| {
        let run = RunId::new();
        let container = site.start(run).await;

        let inspected = site.engine.inspect_container(container.id(), None).await.unwrap();
        let host = inspected.host_config.unwrap();
        assert_eq!(inspected.name.as_deref(), Some(&*format!("/coding-agent-{run}")));
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!((host.memory, host.memory_swap), (Some(4 << 30), Some(4 << 30)));
        assert_eq!(host.pids_limit, Some(512));
        assert_eq!(host.init, Some(true));
        assert_eq!(inspected.mounts.unwrap_or_default(), []);
        let labels = inspected.config.unwrap().labels.unwrap();
        assert_eq!(labels["coding-agent.task"], "github:owner/repository#12");
        assert_eq!(labels["coding-agent.run"], run.to_string());

        let script = "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; id -un; pwd; stat -c %U project; \
                      touch project/file && coding-agent-executor; stat -c '%U %a' /usr/local/bin/coding-agent-executor";
        let (stdout, ending) = shell(&container, script).await;
        insta::assert_snapshot!(stdout, @r"
        CapEff:	0000000000000000
        NoNewPrivs:	1
        agent
        /workspace
        agent
        executor here
        root 755
        ");
        assert_eq!(ending.exit_code, 0, "{}", ending.stderr);
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
async fn three_megabytes_go_in_and_come_back() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;
        let sent: Vec<u8> = (0..3 << 20)
            .map(|at: u32| at.to_le_bytes()[1] ^ at.to_le_bytes()[0])
            .collect();

        let (back, ending) = container.run(&["cat"], &sent[..], 4 << 20).await.unwrap();

        assert!(back == sent, "{} bytes came back", back.len());
        assert_eq!(
            ending,
            Ending {
                exit_code: 0,
                stderr: String::new()
            }
        );
    })
    .await;
}

#[tokio::test]
async fn a_command_tells_how_it_ended() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;

        let (stdout, ending) = shell(&container, "echo out; echo err >&2; exit 7").await;
        assert_eq!((&*stdout, ending.exit_code, &*ending.stderr), ("out\n", 7, "err\n"));

        // Much more than is kept, to both streams at once.
        let script = "head -c 300000 /dev/zero | tr '\\0' e >&2; echo the end >&2; head -c 500000 /dev/zero";
        let (stdout, ending) = shell(&container, script).await;
        assert_eq!((stdout.len(), ending.stderr.len()), (500_000, 64 * 1024));
        assert!(ending.stderr.ends_with("the end\n"));

        let (_, ending) = shell(&container, "kill -9 $$").await;
        assert_eq!(ending.exit_code, 137);

        let missing = container
            .run(&["no-such-program"], tokio::io::empty(), 4096)
            .await
            .unwrap();
        assert!(matches!(missing.1.exit_code, 126 | 127), "{missing:?}");
    })
    .await;
}

#[tokio::test]
async fn a_command_that_reads_nothing_does_not_hold_up_its_feeder() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;
        let endless = tokio::io::repeat(b'x');
        let (stdout, ending) = container.run(&["echo", "enough"], endless, 4096).await.unwrap();
        assert_eq!((&stdout[..], ending.exit_code), (&b"enough\n"[..], 0));
    })
    .await;
}

#[tokio::test]
async fn too_much_output_and_too_long_a_silence_are_errors() {
    let config = Config {
        timeout_seconds: 1,
        ..Config::default()
    };
    on_engine(config, async |site| {
        let container = site.start(RunId::new()).await;

        let error = container.run(&["cat", "/dev/zero"], tokio::io::empty(), 1 << 20).await.unwrap_err();
        insta::assert_snapshot!(error, @"reading a command's output from the container: it is longer than 1048576 bytes");

        let error = container.run(&["sleep", "60"], tokio::io::empty(), 10).await.unwrap_err();
        insta::assert_snapshot!(error, @"'sleep 60' in the container: nothing moved for 1 s");
    })
    .await;
}

#[tokio::test]
async fn an_attached_process_talks_until_its_input_ends() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;
        let script = "echo $GREETING; while read line; do echo got $line; done; echo bye >&2; exit 3";
        let mut process = container
            .attach(&["sh", "-c", script], &["GREETING=hello"])
            .await
            .unwrap();

        let mut greeting = [0; 6];
        process.stdout.read_exact(&mut greeting).await.unwrap();
        assert_eq!(&greeting, b"hello\n");
        process.stdin.write_all(b"one\n").await.unwrap();
        let mut answer = [0; 8];
        process.stdout.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"got one\n");

        process.stdin.shutdown().await.unwrap();
        let mut rest = String::new();
        process.stdout.read_to_string(&mut rest).await.unwrap();
        let ending = process.ending.await.unwrap();
        assert_eq!((&*rest, ending.exit_code, &*ending.stderr), ("", 3, "bye\n"));
    })
    .await;
}

#[tokio::test]
async fn a_removed_container_leaves_nothing_and_can_be_removed_again() {
    on_engine(Config::default(), async |site| {
        let run = RunId::new();
        let first = site.start(run).await;
        assert_eq!(site.docker.find(run).await.unwrap().unwrap().id(), first.id());

        let second = site.start(run).await;
        assert_ne!(first.id(), second.id());
        assert!(
            site.engine.inspect_container(first.id(), None).await.is_err(),
            "the older one is gone"
        );

        let (one, other) = tokio::join!(second.remove(), second.remove());
        one.and(other).unwrap();
        second.remove().await.unwrap();
        assert!(site.engine.inspect_container(second.id(), None).await.is_err());
        assert!(site.docker.find(run).await.unwrap().is_none());
    })
    .await;
}

#[tokio::test]
async fn a_sweep_takes_what_is_ours_and_not_wanted() {
    on_engine(Config::default(), async |site| {
        on_engine(Config::default(), async |neighbour| {
            let (wanted, unwanted) = (RunId::new(), RunId::new());
            let theirs = neighbour.start(RunId::new()).await;
            let kept = site.start(wanted).await;
            site.start(unwanted).await;

            assert_eq!(site.docker.sweep(&HashSet::from([wanted])).await.unwrap(), 1);

            assert!(site.docker.find(unwanted).await.unwrap().is_none());
            assert_eq!(shell(&kept, "echo here").await.0, "here\n");
            assert_eq!(shell(&theirs, "echo here").await.0, "here\n");
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn a_container_that_dies_is_told_apart_from_a_command_that_fails() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;
        let mut process = container.attach(&["sh", "-c", "echo; cat"], &[]).await.unwrap();
        process.stdout.read_exact(&mut [0]).await.unwrap();
        let kill = None::<KillContainerOptions>;
        site.engine.kill_container(container.id(), kill).await.unwrap();

        let mut rest = Vec::new();
        // Whether the stream ends or breaks is the engine's choice; the ending tells what it was.
        let _ = process.stdout.read_to_end(&mut rest).await;
        let error = process.ending.await.unwrap_err();
        assert!(matches!(error, EnvironmentError::ContainerLost { .. }), "{error}");

        for _ in 0..2 {
            let error = container.run(&["true"], tokio::io::empty(), 10).await.unwrap_err();
            assert!(matches!(error, EnvironmentError::ContainerLost { .. }), "{error}");
            container.remove().await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_missing_image_is_named_with_the_mend() {
    on_engine(Config::default(), async |site| {
        let environment = Environment {
            // A registry that is surely not there, so that the answer is the same on every machine.
            image: "127.0.0.1:1/coding-agent/missing:1".to_owned(),
            recommended_for: String::new(),
            libraries: String::new(),
            build: None,
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
        };
        let lines = Mutex::new(Vec::new());

        let record = |line: String| lines.lock().unwrap().push(line);
        site.docker.ensure_image(&environment, &record).await.unwrap();

        assert!(site.docker.has_image(&environment.image).await.unwrap());
        assert_eq!(lines.into_inner().unwrap()[0], format!("pulling {}", environment.image));
        site.remove_image(&environment.image).await;
        registry.server.abort();
    })
    .await;
}

/// A registry with one image in it, of one layer with one file. Engines take loopback registries without TLS.
struct Registry {
    address: SocketAddr,
    server: tokio::task::JoinHandle<()>,
}

impl Registry {
    async fn start(content: &str) -> Self {
        let mut layer = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        layer.append_data(&mut header, "content", content.as_bytes()).unwrap();
        let layer = layer.into_inner().unwrap();
        let config = serde_json::json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": {},
            "rootfs": { "type": "layers", "diff_ids": [digest(&layer)] },
        });
        let config = serde_json::to_vec(&config).unwrap();
        let part = |kind: &str, bytes: &[u8]| {
            serde_json::json!({
                "mediaType": format!("application/vnd.docker.{kind}"),
                "size": bytes.len(),
                "digest": digest(bytes),
            })
        };
        let manifest = serde_json::json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": part("container.image.v1+json", &config),
            "layers": [part("image.rootfs.diff.tar", &layer)],
        });
        let manifest = serde_json::to_vec(&manifest).unwrap();
        let kept = [config, layer, manifest.clone()].map(|bytes| (digest(&bytes), bytes));
        // By digest, or by the one tag there is.
        let kept = kept.into_iter().chain([("latest".to_owned(), manifest)]);
        let kept: Arc<HashMap<String, Vec<u8>>> = Arc::new(kept.collect());

        let serve = async move |Path((_, _, name)): Path<(String, String, String)>| {
            let bytes = kept.get(&name).cloned().ok_or(StatusCode::NOT_FOUND)?;
            let headers = [
                ("content-type", MANIFEST.to_owned()),
                ("docker-content-digest", digest(&bytes)),
            ];
            Ok::<_, StatusCode>((headers, bytes))
        };
        let routes = Router::new()
            .route("/v2/", get(async || ()))
            .route("/v2/{repository}/{kind}/{name}", get(serve));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { address, server }
    }
}

const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";

fn digest(bytes: &[u8]) -> String {
    let suite = rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .unwrap();
    let hash = suite.common.hash_provider.hash(bytes);
    let hexadecimal = hash
        .as_ref()
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    format!("sha256:{hexadecimal}")
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
async fn without_a_network_there_is_none() {
    let mut config = Config::default();
    config.network.mode = NetworkMode::None;
    on_engine(config, async |site| {
        let container = site.start(RunId::new()).await;
        assert_eq!(shell(&container, "ls /sys/class/net").await.0, "lo\n");
    })
    .await;
}

#[tokio::test]
async fn too_many_processes_fail_in_the_container_and_nowhere_else() {
    let mut config = Config::default();
    config.resources.pids_limit = 16;
    on_engine(config, async |site| {
        let container = site.start(RunId::new()).await;
        let (stdout, _) = shell(&container, "for i in $(seq 50); do sleep 20 & done; echo reached").await;
        assert_ne!(stdout, "reached\n", "the shell should have run out of processes");
        container.remove().await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn the_engine_is_reached_over_tcp_as_well() {
    // A second way to the same engine: bytes are handed on as they come, half-closed ends too.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let socket = docker_host().map_or("/var/run/docker.sock".to_owned(), |host| {
        host.replacen("unix://", "", 1)
    });
    let proxy = tokio::spawn(async move {
        loop {
            let (mut outside, _) = listener.accept().await.unwrap();
            let mut inside = UnixStream::connect(&socket).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut outside, &mut inside).await });
        }
    });

    on_engine(Config::default(), async |site| {
        let docker = Docker::connect(&Config::default(), Some(&address), &site.instance)
            .await
            .unwrap();
        assert!(docker.describe().starts_with("Engine "), "{}", docker.describe());
        let container = docker
            .start(&task(), RunId::new(), IMAGE, &site.executor())
            .await
            .unwrap();
        let (back, ending) = container.run(&["cat"], &b"over tcp"[..], 100).await.unwrap();
        assert_eq!((&back[..], ending.exit_code), (&b"over tcp"[..], 0));
        container.remove().await.unwrap();
    })
    .await;
    proxy.abort();
}

#[tokio::test]
async fn a_kept_stream_answers_at_once() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;
        let mut process = container.attach(&["cat"], &[]).await.unwrap();
        let started = Instant::now();
        for _ in 0..100 {
            process.stdin.write_all(b"ping\n").await.unwrap();
            let mut answer = [0; 5];
            process.stdout.read_exact(&mut answer).await.unwrap();
        }
        // Some 30 ms on an idle machine; the bound only tells a stream from a process per line (some 8 s).
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    })
    .await;
}
