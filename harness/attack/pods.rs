//! A container that wants into the cluster that it may run in: its API server, its nodes, other
//! pods, the machine below.
//!
//! Played on an engine without a cluster as well, where the same must hold.

use crate::attempt::{Attempt, End};
use crate::class::Class;

/// Fails where one of `addresses`, as `host:port` or a variable's, accepts a connection.
fn unreached(name: &'static str, addresses: &str) -> Attempt {
    let program = format!(
        r#"python3 - {addresses} <<'END'
import os, socket, sys
try:
    own = socket.gethostbyname(socket.gethostname())
except OSError:
    own = "127.0.0.1"
subnet = own.rsplit(".", 1)[0]
for place in sys.argv[1:]:
    host, port = place.replace("SUBNET", subnet).rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 1).close()
        sys.exit("reached " + place)
    except OSError:
        pass
END"#
    );
    held(name, &program)
}

fn held(name: &'static str, command: &str) -> Attempt {
    Attempt::new(Class::Pod, name, End::Delivered).succeeds(command).works()
}

pub fn all() -> Vec<Attempt> {
    let neighbours: Vec<String> = (1..=12)
        .map(|last| format!("SUBNET.{last}:8080 SUBNET.{last}:10250"))
        .collect();
    vec![
        held(
            "token",
            "! find / -xdev \\( -path '*kubernetes.io*' -o -name token -o -name .dockercfg -o -name kubeconfig \\) -not -path '/proc/*' -not -path '/usr/lib/*' -not -path '/workspace/project/*' -readable 2>/dev/null | grep .",
        )
        .short(),
        unreached(
            "server",
            "${KUBERNETES_SERVICE_HOST:-10.96.0.1}:${KUBERNETES_SERVICE_PORT:-443} 10.96.0.1:443 10.0.0.1:6443",
        )
        .short(),
        unreached("metadata", "169.254.169.254:80 169.254.170.2:80 168.63.129.16:80"),
        unreached("neighbours", &neighbours.join(" ")),
        held(
            "names",
            "! timeout 10 getent hosts kubernetes.default.svc.cluster.local && ! timeout 10 getent hosts metadata.google.internal",
        ),
        held(
            "root",
            "[ \"$(id -u)\" != 0 ] && grep -q 'CapEff:.0000000000000000' /proc/self/status && grep -q 'CapBnd:.0000000000000000' /proc/self/status && \
             ! su -c true 2>/dev/null </dev/null && ! setpriv --reuid=0 true 2>/dev/null && ! unshare --user --map-root-user mount -t tmpfs none /mnt 2>/dev/null",
        ),
        held(
            "machine",
            "! mknod /tmp/disk b 8 0 2>/dev/null && ! mount --bind / /mnt 2>/dev/null && ! (echo b > /proc/sysrq-trigger) 2>/dev/null && \
             ! (echo /tmp/x > /proc/sys/kernel/core_pattern) 2>/dev/null && ! ls /host /rootfs /var/lib/kubelet 2>/dev/null && \
             ! find / -xdev -type s -name '*.sock' 2>/dev/null | grep -E 'docker|containerd|crio|podman'",
        ),
        held(
            "executor",
            "E=/usr/local/bin/coding-agent-executor; ! (cat $E > /dev/null) 2>/dev/null && ! (echo x >> $E) 2>/dev/null && ! (echo x > $E.new && mv $E.new $E) 2>/dev/null && \
             ! gcore 1 2>/dev/null && ! (cat /proc/1/environ > /dev/null) 2>/dev/null",
        ),
    ]
}
