//! Docker engines as they are found in the world: the oldest one that is supported, a new one, one
//! that is too old, none.

use insta::assert_snapshot;
use serde_json::json;

use super::{greeting, greets, left_on, plan, told};
use crate::fake::engine::{Engine, Machine, USUAL, Version};
use crate::fake::github::Item;
use crate::world::{IMAGE, World};

#[tokio::test]
async fn the_oldest_supported_engine_is_worked_with() {
    is_worked_with(Version {
        engine: "20.10.0",
        api: (12, 41),
    })
    .await;
}

#[tokio::test]
async fn an_engine_newer_than_this_program_is_worked_with() {
    is_worked_with(Version {
        engine: "29.1.0",
        api: (44, 54),
    })
    .await;
}

/// Checks a whole run, and `doctor`, through an engine of that version alone.
async fn is_worked_with(version: Version) {
    let mut world = World::start().await;
    let engine = Engine::start(version).await;
    world.sets("DOCKER_HOST", engine.address());
    greets(world.model.plans(plan()));
    let issue = greeting(&world);

    let ended = world.run().await;
    let doctor = world.command(&["doctor"]).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls()[0].file("README.md").as_deref(), Some("Hello\n"));
    let named = format!("Engine {}, API 1.{}", version.engine, version.api.1);
    assert!(doctor.stdout.contains(&named), "{doctor:?}");
    let asked = engine.asked();
    let is_stream = |request: &String| request.starts_with("POST /exec/") && request.ends_with("/start");
    assert!(asked.contains(&"POST /containers/create".to_owned()), "{asked:?}");
    assert!(asked.iter().any(is_stream), "{asked:?}");
    assert!(asked.iter().any(|request| request.ends_with("/attach")), "{asked:?}");
    world.finish().await;
}

#[tokio::test]
async fn an_engine_that_attaches_to_no_container_is_worked_with() {
    let mut world = World::start().await;
    let machine = Machine {
        attaches_to_none: true,
        ..Machine::default()
    };
    let engine = Engine::on(machine, USUAL).await;
    world.sets("DOCKER_HOST", engine.address());
    greets(world.model.plans(plan()));
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let asked = engine.asked();
    assert!(asked.iter().any(|request| request.ends_with("/attach")), "{asked:?}");
    world.finish().await;
}

#[tokio::test]
async fn an_engine_that_is_too_old_keeps_the_task_until_there_is_a_newer_one() {
    let engine = Engine::start(Version {
        engine: "19.03.15",
        api: (12, 40),
    })
    .await;
    let mut world = World::start().await;
    world.sets("DOCKER_HOST", engine.address());
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### ⏳ Waiting until <time>

    The Docker engine at `tcp://<address>` is too old: it is Engine 19.03.15, API 1.40, and Engine 20.10 (API 1.41) is the oldest that works; install a newer one, or set DOCKER_HOST.

    Then it goes on by itself, and reads what was written here meanwhile. Put the label `coding agent` on to have it go on at once.

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    ");
    let doctor = world.command(&["doctor"]).await;
    assert!(doctor.stdout.contains("-> install a newer one"), "{doctor:?}");
    let asked = engine.asked();
    assert!(!asked.iter().any(|request| request.starts_with("POST")), "{asked:?}");
    is_worked_on_with_the_usual_engine(world, &issue).await;
}

#[tokio::test]
async fn without_an_engine_the_task_is_kept_until_there_is_one() {
    let mut world = World::start().await;
    world.sets("DOCKER_HOST", "unix:///nowhere/docker.sock");
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    assert_snapshot!(told(&ended, &issue), @"
    exit code: 1
    labels: coding agent paused
    -----
    ### ⏳ Waiting until <time>

    The Docker engine at `unix:///nowhere/docker.sock` cannot be used: Socket not found: /nowhere/docker.sock; start it, or set DOCKER_HOST.

    Then it goes on by itself, and reads what was written here meanwhile. Put the label `coding agent` on to have it go on at once.

    Planned.

    - [ ] greet the reader

    <sub>Environment `python` · 1 model turn · <tokens> · <time> · run `<run>`</sub>

    <!-- coding-agent:<run>:progress -->
    ");
    is_worked_on_with_the_usual_engine(world, &issue).await;
}

#[tokio::test]
async fn an_engine_that_is_stopped_in_the_middle_of_a_pull_keeps_the_task_until_it_is_back() {
    let mut world = World::start().await;
    let machine = Machine {
        breaks_off_pulls: true,
        ..Machine::default()
    };
    let engine = Engine::on(machine, USUAL).await;
    world.sets("DOCKER_HOST", engine.address());
    world.configure(|config| config["command_executor"]["environments"]["python"] = json!("127.0.0.1:1/missing:1"));
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;

    let said = left_on(&issue);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(said.contains("coding agent paused"), "{said}");
    assert!(said.contains("cannot be used: pulling an image"), "{said}");
    let asked = engine.asked();
    let pulls = asked.iter().filter(|asked| *asked == "POST /images/create").count();
    assert_eq!(pulls, 1, "{asked:?}");
    world.configure(|config| config["command_executor"]["environments"]["python"] = json!(IMAGE));
    is_worked_on_with_the_usual_engine(world, &issue).await;
}

#[tokio::test]
async fn a_proxy_before_the_engine_that_asks_no_registry_makes_no_image_missing() {
    let mut world = World::start().await;
    let machine = Machine {
        hides_registries: true,
        ..Machine::default()
    };
    let engine = Engine::on(machine, USUAL).await;
    world.sets("DOCKER_HOST", engine.address());
    world.configure(|config| config["command_executor"]["environments"]["python"] = json!("127.0.0.1:9/missing:1"));

    let doctor = world.command(&["doctor"]).await;

    let told = doctor.stdout.lines().find(|line| line.contains("environment python"));
    let expected = "127.0.0.1:9/missing:1 is not there; it will be pulled at the first need if a registry has it";
    assert!(told.is_some_and(|told| told.contains(expected)), "{doctor:?}");
    let asked = engine.asked();
    let is_question = |asked: &String| asked.starts_with("GET /distribution/");
    assert!(asked.iter().any(is_question), "{asked:?}");
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    world.finish().await;
}

/// The refusal of an engine on a machine that does not let it have the controller of processors: a
/// rootless one under systemd's defaults, and many small servers for homes.
const NO_PROCESSORS: (&str, &str) = (
    "NanoCpus",
    "NanoCPUs can not be set, as your kernel does not support CPU CFS scheduler or the cgroup is not mounted",
);

#[tokio::test]
async fn an_engine_without_the_controller_of_processors_is_worked_with_and_says_so() {
    let machine = Machine {
        info: json!({ "CpuCfsQuota": false, "CpuCfsPeriod": false }),
        refuses: vec![NO_PROCESSORS],
        ..Machine::default()
    };
    let doctor = is_worked_with_unlimited(machine, &["cpu_limit"]).await;
    assert!(
        doctor.contains("the engine cannot keep cpu_limit of command_executor.resources"),
        "{doctor}"
    );
}

#[tokio::test]
async fn limits_that_an_engine_refuses_without_a_warning_are_left_out() {
    let machine = Machine {
        // Whether its file system was mounted with quotas, an engine does not tell.
        info: json!({ "Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "xfs"]] }),
        refuses: vec![
            NO_PROCESSORS,
            (
                "PidsLimit",
                "crun: the requested cgroup controller `pids` is not available",
            ),
            (
                "Memory",
                "crun: opening file `memory.max` for writing: No such file or directory",
            ),
            (
                "StorageOpt",
                "--storage-opt is supported only for overlay over xfs with 'pquota' mount option",
            ),
        ],
        ..Machine::default()
    };
    is_worked_with_unlimited(machine, &["cpu_limit", "pids_limit", "memory_limit", "disk_limit"]).await;
}

#[tokio::test]
async fn an_engine_that_lacks_what_services_need_is_found_before_a_run() {
    for (words, remedy) in [
        (
            "container-init binary not found on the host: could not find \"catatonit\" in one of [/usr/libexec/podman]",
            "install catatonit",
        ),
        (
            "failed to create task for container: exec: \"docker-init\": executable file not found in $PATH",
            "install docker-init",
        ),
    ] {
        let mut world = World::start().await;
        let machine = Machine {
            refuses: vec![("Init", words)],
            ..Machine::default()
        };
        let engine = Engine::on(machine, USUAL).await;
        world.sets("DOCKER_HOST", engine.address());

        let without = world.command(&["doctor"]).await;
        world.configure(|config| {
            config["command_executor"]["services"] = json!({ "db": { "image": IMAGE, "command": ["sleep", "60"] } });
        });
        let with = world.command(&["doctor"]).await;

        assert_eq!(without.code, Some(0), "no service, nothing to find: {without:?}");
        assert_eq!(with.code, Some(1), "{with:?}");
        let told = with.stdout.lines().find(|line| line.starts_with("BAD   services"));
        assert!(told.is_some_and(|told| told.contains(words)), "{with:?}");
        assert!(with.stdout.contains(remedy), "{with:?}");
        world.finish().await;
    }
}

#[tokio::test]
async fn a_service_is_tried_beside_a_container_and_nothing_of_it_stays() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["command_executor"]["services"] = json!({ "db": { "image": IMAGE, "command": ["sleep", "60"] } });
    });
    let engine = Engine::on(Machine::default(), USUAL).await;
    world.sets("DOCKER_HOST", engine.address());

    let doctor = world.command(&["doctor"]).await;

    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let asked = engine.asked();
    let is_start = |asked: &&String| asked.starts_with("POST /containers/") && asked.ends_with("/start");
    let started = asked.iter().filter(is_start).count();
    assert_eq!(started, 2, "the run's and the service's: {asked:?}");
    assert_eq!(world.containers().await, [""; 0]);
    world.finish().await;
}

/// Checks a whole run on that machine, and that each limit that is left out is warned of. Returns
/// what `doctor` says.
async fn is_worked_with_unlimited(machine: Machine, keys: &[&str]) -> String {
    let mut world = World::start().await;
    if keys.contains(&"disk_limit") {
        // The others have a default.
        world.configure(|config| config["command_executor"]["resources"]["disk_limit"] = json!("20g"));
    }
    let engine = Engine::on(machine, USUAL).await;
    world.sets("DOCKER_HOST", engine.address());
    greets(world.model.plans(plan()));
    let issue = greeting(&world);

    let ended = world.run().await;
    let doctor = world.command(&["doctor"]).await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    let log = world.story();
    for key in keys {
        let warning = format!("command_executor.resources.{key} is ignored");
        assert!(log.contains(&warning), "{key}: {log}");
    }
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    world.finish().await;
    doctor.stdout
}

#[tokio::test]
async fn an_engine_on_another_kind_of_processor_needs_an_executor_for_it() {
    let mut world = World::start().await;
    let (other, images) = match std::env::consts::ARCH {
        "aarch64" => ("x86_64", "amd64"),
        _ => ("aarch64", "arm64"),
    };
    let machine = Machine {
        info: json!({ "Architecture": other }),
        images: Some(images),
        ..Machine::default()
    };
    let engine = Engine::on(machine, USUAL).await;
    world.sets("DOCKER_HOST", engine.address());
    world.model.plans(plan());
    let issue = greeting(&world);

    let ended = world.run().await;
    let doctor = world.command(&["doctor"]).await;

    let wanted =
        format!("the containers are for {other}; build one with `make build TARGET={other}-unknown-linux-musl`");
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let said = left_on(&issue);
    assert!(said.contains("coding agent failed") && said.contains(&wanted), "{said}");
    assert!(doctor.stdout.contains("BAD   executor"), "{doctor:?}");
    let remedy = wanted.split("; ").nth(1).unwrap_or_default();
    assert!(doctor.stdout.contains(remedy), "{doctor:?}");
    let asked = engine.asked();
    assert!(!asked.contains(&"POST /containers/create".to_owned()), "{asked:?}");
    world.finish().await;
}

/// Mends the engine, and starts the run again as a person does who does not want to wait.
async fn is_worked_on_with_the_usual_engine(mut world: World, issue: &Item) {
    let usual = std::env::var("DOCKER_HOST").unwrap_or_default();
    world.sets("DOCKER_HOST", &usual);
    greets(world.model.script());
    issue.label("coding agent");

    let ended = world.run().await;

    assert_eq!(ended.code, Some(0), "{ended:?}\n{}", world.story());
    assert_eq!(issue.labels(), ["coding agent done"]);
    assert_eq!(world.github.pulls().len(), 1);
    world.finish().await;
}
