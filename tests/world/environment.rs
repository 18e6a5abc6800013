//! Containers on the real engine: limits, streams, removal, and what is told apart when something
//! dies.

mod prepared;
mod images;
mod links;
mod registry;
mod used_up;
mod volumes;
mod site;

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Instant;

use bollard::query_parameters::KillContainerOptions;
use coding_agent::environment::{
    Config, Engine, EngineAccess, EnvironmentError, NetworkMode, ProcessExit, Purpose, StartRequest,
};
use coding_agent::task::id::RunId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};

use self::site::{IMAGE, docker_host, on_engine, shell, task};

#[tokio::test]
async fn a_container_is_named_and_confined_as_it_was_promised() {
    on_engine(Config::default(), async |site| {
        let run = RunId::new();
        let container = site.start(run).await;

        let inspected = site.engine.inspect_container(container.id(), None).await.unwrap();
        assert_eq!(inspected.name.as_deref(), Some(&*format!("/coding-agent-{run}")));
        assert_eq!(inspected.mounts.unwrap_or_default(), []);
        let labels = inspected.config.unwrap().labels.unwrap();
        assert_eq!(labels["coding-agent.task"], "github:owner/repository#12");
        assert_eq!(labels["coding-agent.run"], run.to_string());

        // The executor is the container's init.
        let script = "grep -E '^(CapEff|NoNewPrivs)' /proc/self/status; cut -c 1-15 /proc/1/comm; id -un; pwd; \
                      stat -c %U project; touch project/file; \
                      cat /usr/local/bin/coding-agent-executor 2>&- || echo unreadable; \
                      stat -c '%U %a' /usr/local/bin/coding-agent-executor";
        let (stdout, ending) = shell(&container, script).await;
        insta::assert_snapshot!(stdout, @r"
        CapEff:	0000000000000000
        NoNewPrivs:	1
        coding-agent-ex
        agent
        /workspace
        agent
        unreadable
        root 711
        ");
        assert_eq!(ending.exit_code, 0, "{}", ending.stderr);
    })
    .await;
}

#[tokio::test]
async fn a_container_has_the_limits_it_was_promised() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;

        let inspected = site.engine.inspect_container(container.id(), None).await.unwrap();
        let host = inspected.host_config.unwrap();
        assert_eq!((host.memory, host.memory_swap), (Some(4 << 30), Some(4 << 30)));
        assert_eq!(host.pids_limit, Some(512));

        // What the kernel keeps, by either kind of cgroups.
        let script = "cd /sys/fs/cgroup; cat memory.max memory/memory.limit_in_bytes 2>&-; \
                      cat pids.max pids/pids.max 2>&-; cat cpu.max cpu/cpu.cfs_quota_us 2>&- | cut -d ' ' -f 1";
        let (stdout, _) = shell(&container, script).await;
        assert_eq!(stdout, "4294967296\n512\n200000\n");
    })
    .await;
}

#[tokio::test]
async fn docker_is_asked_for_no_capability_and_no_init_of_its_own() {
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;

        let inspected = site.engine.inspect_container(container.id(), None).await.unwrap();
        let host = inspected.host_config.unwrap();
        assert_eq!(host.cap_drop, Some(vec!["ALL".to_owned()]));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!(host.init, Some(false));
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
            ProcessExit {
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
    on_engine(Config::default(), async |site| {
        let container = site.start(RunId::new()).await;

        let error = container.run(&["cat", "/dev/zero"], tokio::io::empty(), 1 << 20).await.unwrap_err();
        insta::assert_snapshot!(error, @"reading a command's output from the container: it is longer than 1048576 bytes");
    })
    .await;
    let config = Config {
        timeout_seconds: 1,
        ..Config::default()
    };
    on_engine(config, async |site| {
        let container = site.start(RunId::new()).await;

        let error = container.run(&["sleep", "60"], tokio::io::empty(), 10).await.unwrap_err();
        insta::assert_snapshot!(error, @"'sleep 60' in the container: it did not end within 1 s");

        // One byte now and then is no life.
        let drip = ["sh", "-c", "while :; do printf x; sleep 0.2; done"];
        let error = container.run(&drip, tokio::io::empty(), 1 << 20).await.unwrap_err();
        insta::assert_snapshot!(error, @"'sh -c while :; do printf x; sleep 0.2; done' in the container: it did not end within 1 s");
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

            let found = site.docker.all().await.unwrap();
            assert_eq!(site.docker.sweep(found, &HashSet::from([wanted])).await.unwrap(), 1);

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
async fn a_command_that_takes_too_much_memory_dies_alone() {
    let mut config = Config::default();
    config.resources.memory_limit = "64m".to_owned();
    on_engine(config, async |site| {
        let container = site.start(RunId::new()).await;
        let (_, ending) = shell(&container, "exec python3 -c 'bytearray(1 << 30)'").await;
        assert_eq!(ending.exit_code, 137, "{}", ending.stderr);
        assert_eq!(shell(&container, "echo alive").await.0, "alive\n");
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
        let access = EngineAccess {
            host: Some(address),
            ..EngineAccess::default()
        };
        let docker = Engine::connect(&Config::default(), &access, &site.instance)
            .await
            .unwrap();
        assert!(docker.describe().starts_with("Engine "), "{}", docker.describe());
        let start = StartRequest {
            task: &task(),
            run: RunId::new(),
            purpose: Purpose::Work,
            environment: "python",
            image: IMAGE,
            executor: &site.executor(),
            set_up: None,
        };
        let container = docker.start(&start).await.unwrap();
        let (back, ending) = container.run(&["cat"], &b"over tcp"[..], 100).await.unwrap();
        assert_eq!((&back[..], ending.exit_code), (&b"over tcp"[..], 0));
        container.remove().await.unwrap();
    })
    .await;
    proxy.abort();
}

#[test]
fn the_static_executor_is_taken_and_the_dynamic_one_is_not() {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_coding-agent"));
    let taken = |path: PathBuf| {
        let config = Config {
            executor_path: Some(path),
            ..Config::default()
        };
        coding_agent::environment::find_executor(&config, None)
    };
    let executor = program.with_file_name("coding-agent-executor-static");
    assert_eq!(
        taken(executor.clone()),
        Ok(executor),
        "scripts/setup executor builds it"
    );
    let refused = taken(program.with_file_name("coding-agent")).unwrap_err();
    assert!(refused.contains("is linked dynamically"), "{refused}");
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
        let stream = started.elapsed();
        // A process for each line would take ten times as long as these ten do.
        let started = Instant::now();
        for _ in 0..10 {
            container.run(&["true"], tokio::io::empty(), 10).await.unwrap();
        }
        let processes = started.elapsed();
        assert!(stream < processes, "{stream:?}, and {processes:?} for ten processes");
    })
    .await;
}
