//! Processes of the container that want into the streams between it and the worker, or fill them.

use crate::attempt::{Attempt, End};
use crate::class::Class;

/// Runs `try` for the number `p` of each process of the program's own in the container, and fails
/// where there is none or where it succeeds.
fn held_off(name: &'static str, tries: &str) -> Attempt {
    let command = format!(
        "n=0; for d in /proc/[0-9]*; do [ \"$(cat $d/comm 2>/dev/null)\" = coding-agent-ex ] || continue; p=${{d#/proc/}}; n=$((n+1)); \
         if ( {tries} ) 2>/dev/null; then echo got in at $p; exit 1; fi; done; [ $n -gt 0 ]"
    );
    Attempt::new(Class::Hose, name, End::Delivered)
        .succeeds(&command)
        .works()
}

/// Fills a stream; the run may fall, and nothing else.
fn fills(name: &'static str, command: &str) -> Attempt {
    Attempt::new(Class::Hose, name, End::Any)
        .runs(command)
        .works()
        .may_end_here(1)
}

pub fn all() -> Vec<Attempt> {
    let system_call = |name, body: &str| {
        let program = format!(
            "python3 -c \"import ctypes, os, sys; l = ctypes.CDLL(None, use_errno=True); p = int(sys.argv[1]); {body}\" $p"
        );
        held_off(name, &program)
    };
    let ends = |name, signal: &str| {
        let command = format!(
            "for d in /proc/[0-9]*; do [ \"$(cat $d/comm 2>/dev/null)\" = coding-agent-ex ] && kill -{signal} ${{d#/proc/}}; done; sleep 3"
        );
        Attempt::new(Class::Hose, name, End::Any)
            .succeeds("pgrep coding-agent-ex")
            .runs(&command)
            .works()
            .may_end_here(1)
    };
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"x"}}"#;
    vec![
        held_off("stream", "echo '{}' > /proc/$p/fd/1").short(),
        held_off("errors", "echo '{}' > /proc/$p/fd/2"),
        held_off("input", "head -c 1 < /proc/$p/fd/0"),
        held_off(
            "memory-file",
            "dd if=/dev/zero of=/proc/$p/mem bs=1 count=1 seek=4194304",
        ),
        held_off("environment-file", "cat /proc/$p/environ"),
        system_call("traced", "sys.exit(l.ptrace(16, p, 0, 0) != 0)").short(),
        system_call(
            "descriptor",
            "f = l.syscall(434, p, 0); sys.exit(f < 0 or l.syscall(438, f, 1, 0) < 0)",
        ),
        system_call(
            "vector",
            "b = ctypes.create_string_buffer(8); v = (ctypes.c_void_p * 2)(ctypes.addressof(b), 8); \
             a = int(open('/proc/self/maps').readline().split('-')[0], 16); r = (ctypes.c_void_p * 2)(a, 8); \
             sys.exit(l.process_vm_writev(p, v, 1, r, 1, 0) < 0)",
        ),
        ends("stopped", "STOP"),
        ends("ended", "KILL").short(),
        fills(
            "own-output",
            &format!("timeout 10 yes '{notification}' | head -c 200000000"),
        ),
        fills(
            "own-errors",
            &format!("timeout 10 yes '{notification}' | head -c 200000000 >&2"),
        ),
        fills("one-line", "timeout 10 head -c 100000000 /dev/zero | tr '\\0' x"),
        fills(
            "tunnel",
            "timeout 10 python3 -c \"import socket\nfor _ in range(200):\n  s = socket.create_connection(('127.0.0.1', 3128)); s.settimeout(1)\n  \
             try: s.sendall(b'x' * 500000)\n  except OSError: pass\"",
        ),
    ]
}
