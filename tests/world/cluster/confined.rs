//! A pod as the cluster has it, and seen from inside by a command that wants out.

use serde_json::{Value, json};

use super::runs;
use super::work::pod_of;
use crate::world::World;
use crate::world::clusters::named;
use crate::world::scripts::output;

#[tokio::test]
async fn a_pod_is_as_restricted_as_it_can_be() {
    let mut world = World::start().await;
    world.configure(|config| {
        config["environment"]["kubernetes"]["service_account"] = json!("coding-agent-runs");
        config["command_executor"]["resources"]["disk_limit"] = json!("300m");
    });
    let (script, issue) = runs(&world, &[]);
    script.done("Looked.").holds().done("Looked.");
    let program = world.spawn(&["run"]);
    world.model.until_held(1).await;
    let pod = pod_of(&world).await;
    world.model.release();
    program.ended().await;

    assert_eq!(issue.labels(), ["coding agent done"], "{}", world.story());
    let spec = &pod["spec"];
    assert_eq!(spec["serviceAccountName"], "coding-agent-runs");
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert_eq!(spec["enableServiceLinks"], false);
    assert_eq!(spec["dnsPolicy"], "None");
    assert_eq!(spec["restartPolicy"], "Never");
    assert!(spec["activeDeadlineSeconds"].as_u64().is_some());
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    let inits = spec["initContainers"].as_array().unwrap();
    let containers = inits.iter().chain(spec["containers"].as_array().unwrap());
    for container in containers {
        let security = &container["securityContext"];
        assert_eq!(security["allowPrivilegeEscalation"], false, "{container}");
        assert_eq!(security["runAsNonRoot"], true, "{container}");
        assert_eq!(security["capabilities"], json!({ "drop": ["ALL"] }), "{container}");
        for limit in ["cpu", "memory", "ephemeral-storage"] {
            let limits = &container["resources"];
            assert!(limits["limits"][limit].is_string(), "{limit}: {container}");
            assert_eq!(limits["limits"][limit], limits["requests"][limit], "{container}");
        }
    }
    let kinds: Vec<&Value> = spec["volumes"].as_array().unwrap().iter().collect();
    assert!(kinds.iter().all(|volume| volume["emptyDir"].is_object()), "{kinds:?}");
    world.finish().await;
}

#[tokio::test]
async fn a_command_that_wants_out_gets_nowhere() {
    let world = World::start().await;
    let places: Vec<String> = ["OUTSIDE", "NEIGHBOUR", "API", "SERVICE"].map(named).to_vec();
    let tries = format!(
        r#"python3 - {} 169.254.169.254:80 <<'END'
import os, socket, sys
for place in sys.argv[1:]:
    host, port = place.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), 2).close()
        print("reached", place)
    except OSError:
        pass
for name in ["kubernetes.default.svc.cluster.local", "example.org"]:
    try:
        print("resolved", socket.gethostbyname(name))
    except OSError:
        pass
print(*(name for name in os.environ if "TOKEN" in name or name.endswith("_SERVICE_HOST") and not name.startswith("KUBERNETES")))
print(os.path.exists("/var/run/secrets/kubernetes.io"), os.getuid() != 0)
END
cat /proc/self/status | grep -E 'CapEff|CapBnd|NoNewPrivs|^Seccomp:' | tr -s '\t' ' '
ls /dev | tr '\n' ' '; touch /usr/local/bin/own 2>/dev/null && echo wrote; cat /usr/local/bin/coding-agent-executor >/dev/null 2>&1 && echo read
mount -t tmpfs none /mnt 2>/dev/null && echo mounted; unshare -Ur true 2>/dev/null && echo unshared; true"#,
        places.join(" ")
    );
    let (script, issue) = runs(&world, &[&tries]);
    script.done("Tried.");

    super::is_done(&world, &issue).await;

    let said = output(&world, 0);
    for word in ["reached", "resolved", "wrote", "mounted", "read\n"] {
        assert!(!said.contains(word), "{said}");
    }
    assert!(said.contains("False True"), "{said}");
    assert!(said.contains("CapEff: 0000000000000000"), "{said}");
    assert!(said.contains("CapBnd: 0000000000000000"), "{said}");
    assert!(said.contains("NoNewPrivs: 1") && said.contains("Seccomp: 2"), "{said}");
    world.finish().await;
}
