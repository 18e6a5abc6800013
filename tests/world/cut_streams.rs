//! Streams between the program and a container that are cut, at any byte and again and again: what
//! was asked for goes on in the container, happens once, and its answer arrives whole.

use serde_json::json;

use crate::fake::model::Plan;
use crate::fake::site::Site;
use crate::world::cutting_proxy::CuttingProxy;
use crate::world::processes::{self, mark};
use crate::world::scripts::{COMMAND, counted, output};
use crate::world::{Ended, World};

/// Lists the processes of executors that serve something.
const SERVING: &str = "pgrep -af '[e]xecutor (multiplex|tunnel|--root)' | cut -d' ' -f3 | sort";

/// Has the model run `commands`, one for each turn, and says that it is done.
fn runs(world: &World, commands: &[&str]) {
    let script = world.model.plans(Plan::of(&["count"]).in_environment("python"));
    let script = commands.iter().fold(script, |script, command| {
        script.calls(COMMAND, json!({ "command": command }))
    });
    script.done("Counted.");
    world.github.open_issue("Count").label("coding agent");
}

fn assert_done(world: &World, ended: &Ended) {
    ended.prints("github:acme/widgets#1: done\n", world);
}

#[tokio::test]
async fn a_command_runs_once_and_its_result_arrives_however_often_the_stream_is_cut() {
    // The one at once, and the 29 that are planned before the last two. With a planned one still to
    // come, the rest may be over sooner than that.
    const CUTS: usize = 30;
    let mut world = World::start().await;
    let proxy = CuttingProxy::before(&mut world);
    let counts = "n=0; until [ -e /tmp/enough ]; do n=$((n+1)); echo $n | tee -a counted.txt; sleep 0.1; done; \
                  echo run >> /tmp/runs; wc -l < counted.txt";
    let looks = format!("cat /tmp/runs; seq $(wc -l < counted.txt) | cmp - counted.txt && echo the same; {SERVING}");
    runs(&world, &[counts, &looks, "seq 3000"]);

    let program = world.spawn(&["run"]);
    world.model.until(|requests| requests.len() >= 2).await;
    world
        .in_container("cd project; until [ -s counted.txt ]; do sleep 0.1; done")
        .await;
    // While a connection begins, once it has, and in what the last command says.
    proxy.cuts_after((1..10).map(|at| 240 + 47 * at));
    for first in [10, 14, 18, 22] {
        // A connection that lasts, or else the link would be given up at a slow engine.
        proxy.cuts_within([3_000]);
        proxy.cuts_within((first..first + 4).map(|at| 30 * at));
    }
    proxy.cuts_after([9_000, 6_000]);
    proxy.cuts_now();
    proxy.until_cut(CUTS).await;
    world.in_container("touch /tmp/enough").await;
    let ended = program.ended().await;

    assert_done(&world, &ended);
    let first = output(&world, 0);
    let (lines, count) = first.rsplit_once('\n').unwrap();
    assert_eq!(lines, counted(count.trim().parse().unwrap()));
    assert_eq!(output(&world, 1), "run\nthe same\nmultiplex");
    assert_eq!(output(&world, 2), counted(3000));
    assert!(proxy.cuts() > CUTS, "{}", proxy.cuts());
    assert_eq!(world.github.pulls().len(), 1, "{}", world.story());
    world.finish().await;
}

#[tokio::test]
async fn a_project_is_handed_in_whole_over_streams_that_are_cut() {
    let mut world = World::start().await;
    let proxy = CuttingProxy::before(&mut world);
    let limits = [900, 1000, 1500, 2000, 2500];
    proxy.cuts_after(limits);
    runs(
        &world,
        &[&format!(
            "git fsck && git status --porcelain && cat README.md && {SERVING}"
        )],
    );

    let ended = world.run().await;

    assert_done(&world, &ended);
    let said = output(&world, 0);
    assert!(said.contains("# widgets") && said.ends_with("multiplex"), "{said}");
    assert_eq!(proxy.cuts(), limits.len());
    world.finish().await;
}

#[tokio::test]
async fn a_stream_that_is_cut_before_it_has_begun_costs_no_container() {
    let mut world = World::start().await;
    let proxy = CuttingProxy::before(&mut world);
    // In the middle of the request for it.
    proxy.cuts_after([200]);
    runs(&world, &[SERVING]);

    let ended = world.run().await;

    assert_done(&world, &ended);
    // The container's own one may still wait for the stream that it never got.
    let serving = output(&world, 0).replace("multiplex\n", "");
    assert_eq!(serving, "--root\ntunnel");
    assert_eq!(proxy.cuts(), 1);
    world.finish().await;
}

#[tokio::test]
async fn connections_through_the_way_out_live_on() {
    let site = Site::start();
    let mut world = World::start().await;
    world.configure(|config| config["command_executor"]["network"] = json!({ "allow_private": [site.address()] }));
    let proxy = CuttingProxy::before(&mut world);
    let asks = format!(
        "curl -sS http://{0}/held/one; for i in $(seq 40); do curl -sS http://{0}/$i; done",
        site.address()
    );
    runs(&world, &[&asks]);

    let program = world.spawn(&["run"]);
    world
        .until("a connection through the way out", || site.most_at_once() == 1)
        .await;
    proxy.cuts_after([600, 2_000, 3_000, 4_000, 5_000]);
    proxy.cuts_now();
    proxy.until_cut(2).await;
    site.release();
    let ended = program.ended().await;

    assert_done(&world, &ended);
    let expected: Vec<String> = (1..=40).map(|number| format!("hello from /{number}")).collect();
    assert_eq!(
        output(&world, 0),
        format!("hello from /held/one\n{}", expected.join("\n"))
    );
    assert_eq!(site.asked().len(), 41);
    assert!(proxy.cuts() >= 5, "{}", proxy.cuts());
    world.finish().await;
}

#[tokio::test]
async fn nobody_in_the_container_gets_between_the_program_and_the_executor() {
    let mut world = World::start().await;
    let proxy = CuttingProxy::before(&mut world);
    // Connections that say nothing, nonsense, and what a worker without the key would say.
    let visits = r"python3 - <<'END'
import socket, os
def visit():
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(20)
    stream.connect('\0coding-agent-executor')
    return stream
heard = set()
for says in [b'\x12' + bytes(72), b'\x01' + bytes(26), b'\xff' * 40000, os.urandom(200), b'']:
    stream = visit()
    challenge = stream.recv(100)
    try:
        stream.sendall(says)
        heard.add((len(challenge), challenge[0], stream.recv(100)))
    except (BrokenPipeError, ConnectionResetError):
        heard.add((len(challenge), challenge[0], b''))
print(heard)
taken = socket.socket(socket.AF_UNIX)
try:
    taken.bind('\0coding-agent-executor')
except OSError as error:
    print(error.strerror)
idle = [visit() for _ in range(200)]
print(len(idle))
END";
    runs(&world, &[visits, "echo still there"]);

    let program = world.spawn(&["run"]);
    world.model.until(|requests| requests.len() >= 3).await;
    proxy.cuts_now();
    let ended = program.ended().await;

    assert_done(&world, &ended);
    assert_eq!(output(&world, 0), "{(33, 16, b'')}\nAddress already in use\n200");
    assert_eq!(output(&world, 1), "still there");
    world.finish().await;
}

#[tokio::test]
async fn a_container_that_was_taken_over_lives_through_cuts_as_well() {
    const CUTS: usize = 5;
    let mut world = World::start().await;
    world.model.allows_restarts();
    let proxy = CuttingProxy::before(&mut world);
    let nap = mark();
    let waits = "until [ -e /tmp/enough ]; do sleep 0.1; done; echo run >> /tmp/runs";
    let looks = format!("cat /tmp/runs; {SERVING}");
    runs(&world, &[&format!("sleep {nap}"), waits, &looks, "seq 3000"]);

    let program = world.spawn(&["run"]);
    processes::until_some(&nap).await;
    program.kill().await;
    let program = world.spawn(&["run"]);
    world.model.until(|requests| requests.len() >= 3).await;
    proxy.cuts_within((1..CUTS as u64).map(|at| 100 * at));
    proxy.cuts_now();
    proxy.until_cut(CUTS).await;
    world.in_container("touch /tmp/enough").await;
    let ended = program.ended().await;

    assert_done(&world, &ended);
    assert_eq!(output(&world, 2), "run\nmultiplex");
    assert_eq!(output(&world, 3), counted(3000));
    world.finish().await;
}

#[tokio::test]
async fn who_takes_the_container_over_ends_what_still_runs_in_it() {
    let world = World::start().await;
    world.model.allows_restarts();
    let nap = mark();
    runs(
        &world,
        &[
            &format!("sleep {nap}; echo late > late.txt"),
            &format!("pgrep -f '[s]leep {nap}'; ls"),
        ],
    );

    let program = world.spawn(&["run"]);
    processes::until_some(&nap).await;
    program.kill().await;
    let ended = world.run().await;

    assert_done(&world, &ended);
    assert_eq!(output(&world, 1), "README.md");
    assert_eq!(processes::with_mark(&nap), [0; 0]);
    world.finish().await;
}
