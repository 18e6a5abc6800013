//! Examines the cluster that runs the containers: its server, the rights in the namespace, the
//! network of the pods, and a pod.

use std::time::Instant;

use super::containers::try_containers;
use super::told_apart;
use crate::config::Config;
use crate::environment::{Engine, EngineAccess, EnvironmentError, Kubernetes, NetworkMode, Rights, find_executor};
use crate::finding::Finding;
use crate::service::instance;

const SUBJECT: &str = "Kubernetes";

/// Examines the cluster, and starts a pod as a run does.
pub(super) async fn examine(config: &Config, cluster: &Kubernetes, access: &EngineAccess) -> Vec<Finding> {
    let section = &config.command_executor;
    let executor = find_executor(section, None);
    let can_start = executor.is_ok();
    let mut findings = vec![match executor {
        Ok(path) => Finding::good("executor", path.display()),
        Err(reason) => told_apart("executor", reason, "name it in command_executor.executor_path"),
    }];
    let usual = format!(
        "look at `kubectl -n {0} get events`, and at environment.kubernetes",
        cluster.namespace
    );
    let engine = match Engine::connect(section, access, &instance(&config.state_dir)).await {
        Ok(engine) => engine,
        Err(error) => {
            findings.push(told_apart(SUBJECT, error, &usual));
            return findings;
        }
    };
    findings.push(Finding::good(SUBJECT, engine.describe()));
    match engine.rights().await {
        Ok(rights) => findings.extend(rights.map(|rights| of_rights(&rights))),
        Err(error) => findings.push(told_apart("rights", error, &usual)),
    }
    if section.network.mode == NetworkMode::Open {
        findings.push(Finding::doubtful(
            "network",
            "command_executor.network.mode is open, so the pods reach whatever the cluster lets them reach",
            "write mode: allowlist, and name the hosts that they need",
        ));
    } else if can_start {
        findings.push(match engine.try_network().await {
            Ok(reached) if reached.is_empty() => Finding::good(
                "network",
                "a pod reached neither others nor the API server, nodes, names or the internet",
            ),
            Ok(reached) => Finding::doubtful(
                "network",
                format!(
                    "a pod reached neither others nor the API server, names or the internet, but {}: the cluster's network plugin \
                     lets everything pass that goes to a pod's own node",
                    reached.join(", ")
                ),
                "see that nothing listens there that asks for no credentials; other plugins close it",
            ),
            Err(error) => told_apart("network", error, &usual),
        });
    }
    if can_start && !findings.iter().any(Finding::is_bad) {
        findings.push(match start(config, &engine).await {
            Ok(seconds) => Finding::good("pod", format!("one was started and removed, {seconds:.1} s")),
            Err(error) => told_apart("pod", error, &usual),
        });
    }
    let unkept = engine.unkept_limits();
    if !unkept.is_empty() {
        findings.push(Finding::doubtful(
            "limits",
            format!(
                "a pod cannot ask for {} of command_executor.resources",
                unkept.join(", ")
            ),
            "set podPidsLimit in the configuration of the kubelets",
        ));
    }
    findings
}

async fn start(config: &Config, engine: &Engine) -> Result<f64, EnvironmentError> {
    let section = &config.command_executor;
    let Some(environment) = section.environments.get(&section.default_environment) else {
        return Ok(0.0);
    };
    let begun = Instant::now();
    Box::pin(try_containers(section, engine, environment)).await??;
    Ok(begun.elapsed().as_secs_f64())
}

fn of_rights(rights: &Rights) -> Finding {
    const SUBJECT: &str = "rights";
    if !rights.lacking.is_empty() {
        return Finding::bad(
            SUBJECT,
            format!("the account may not {}", rights.lacking.join(", ")),
            "give it the role in packaging/kubernetes/role.yaml",
        );
    }
    if !rights.superfluous.is_empty() {
        return Finding::doubtful(
            SUBJECT,
            format!(
                "the account may also {}, which the program never does",
                rights.superfluous.join(", ")
            ),
            "give it the role in packaging/kubernetes/role.yaml, and nothing else",
        );
    }
    if rights.is_incomplete {
        return Finding::doubtful(
            SUBJECT,
            "the cluster could not say all that the account may do",
            "ask whoever runs it whether an authorizer besides RBAC gives it more",
        );
    }
    Finding::good(SUBJECT, "exactly what the program does")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_that_lack_are_worse_than_rights_too_many() {
        let rights = |lacking: &[&str], superfluous: &[&str]| {
            let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
            of_rights(&Rights {
                lacking: owned(lacking),
                superfluous: owned(superfluous),
                is_incomplete: false,
            })
        };
        assert!(rights(&["create on pods"], &["get on secrets"]).is_bad());
        assert!(!rights(&[], &["get on secrets"]).is_bad());
        assert_eq!(
            rights(&[], &[]),
            Finding::good("rights", "exactly what the program does")
        );
    }
}
