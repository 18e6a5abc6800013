//! The object that everything of an installation belongs to, and the network policy of its pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::names::{self, MANAGER};
use super::pod::Owner;
use super::verdict::PolicyState;
use crate::environment::container::name::{LABEL_INSTANCE, LABEL_NETWORK};
use crate::environment::error::EnvironmentError;

impl Cluster {
    /// Returns what everything of this installation belongs to, and makes it if it is missing:
    /// whoever deletes it removes all pods and the policy. Asked for each time: a pod that belongs
    /// to something deleted is collected at once.
    pub(super) async fn owner(&self) -> Result<Owner, EnvironmentError> {
        let what = "making the object that the pods belong to";
        let api: Api<ConfigMap> = Api::namespaced(self.client(), self.namespace());
        let name = names::installation(&self.shared.instance);
        let mut wanted = ConfigMap {
            data: Some(BTreeMap::from([(
                "about".to_owned(),
                "The pods of one installation of coding-agent belong to this; deleting it deletes them.".to_owned(),
            )])),
            ..ConfigMap::default()
        };
        wanted.metadata.name = Some(name.clone());
        wanted.metadata.labels = Some(names::labels_of_all(&self.shared.instance));
        let found = match self.ask(api.get(&name)).await {
            Err(failure) if failure.is_absent() => self.ask(api.create(&PostParams::default(), &wanted)).await,
            found => found,
        };
        let found = match found {
            // Another process was faster.
            Err(failure) if failure.is_conflict() => self.ask(api.get(&name)).await,
            found => found,
        };
        let found = found.map_err(|failure| self.error_of(what, failure))?;
        Ok(Owner {
            name,
            uid: found.metadata.uid.unwrap_or_default(),
        })
    }

    /// Makes the network policy what it must be: the pods of this installation reach nothing, and
    /// nothing reaches them. Returns which state of it that is.
    pub(super) async fn apply_policy(&self) -> Result<PolicyState, EnvironmentError> {
        let owner = self.owner().await?;
        let api = self.policies();
        let policy = policy(&self.shared.instance, &owner);
        let params = PatchParams::apply(MANAGER).force();
        let applied = self.ask(api.patch(&owner.name, &params, &Patch::Apply(&policy))).await;
        let applied = applied.map_err(|failure| self.error_of("making the network policy of the pods", failure))?;
        Ok(PolicyState::of(applied))
    }

    /// Returns the state of the network policy; `None` if there is none.
    pub(super) async fn policy_state(&self) -> Result<Option<PolicyState>, EnvironmentError> {
        let name = names::installation(&self.shared.instance);
        match self.ask(self.policies().get(&name)).await {
            Ok(policy) => Ok(Some(PolicyState::of(policy))),
            Err(failure) if failure.is_absent() => Ok(None),
            Err(failure) => Err(self.error_of("looking at the network policy of the pods", failure)),
        }
    }

    fn policies(&self) -> Api<NetworkPolicy> {
        Api::namespaced(self.client(), self.namespace())
    }
}

/// Describes the policy that denies both directions. Pods with an open network are not among those
/// that it selects.
pub(super) fn policy(instance: &str, owner: &Owner) -> Value {
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {
            "name": owner.name,
            "labels": names::labels_of_all(instance),
            "ownerReferences": owner.reference(),
        },
        "spec": {
            "podSelector": {
                "matchLabels": { LABEL_INSTANCE: instance },
                "matchExpressions": [{ "key": LABEL_NETWORK, "operator": "NotIn", "values": ["open"] }],
            },
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": [],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_denies_both_directions_to_all_pods_but_open_ones() {
        let owner = Owner {
            name: "coding-agent-here".to_owned(),
            uid: "1-2-3".to_owned(),
        };
        insta::assert_json_snapshot!(policy("here", &owner), @r#"
        {
          "apiVersion": "networking.k8s.io/v1",
          "kind": "NetworkPolicy",
          "metadata": {
            "labels": {
              "app.kubernetes.io/managed-by": "coding-agent",
              "coding-agent.instance": "here"
            },
            "name": "coding-agent-here",
            "ownerReferences": [
              {
                "apiVersion": "v1",
                "blockOwnerDeletion": false,
                "controller": false,
                "kind": "ConfigMap",
                "name": "coding-agent-here",
                "uid": "1-2-3"
              }
            ]
          },
          "spec": {
            "egress": [],
            "ingress": [],
            "podSelector": {
              "matchExpressions": [
                {
                  "key": "coding-agent.network",
                  "operator": "NotIn",
                  "values": [
                    "open"
                  ]
                }
              ],
              "matchLabels": {
                "coding-agent.instance": "here"
              }
            },
            "policyTypes": [
              "Ingress",
              "Egress"
            ]
          }
        }
        "#);
    }
}
