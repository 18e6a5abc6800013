//! Asks the cluster what the program may do.

use k8s_openapi::api::authorization::v1::{ResourceRule, SelfSubjectRulesReview, SelfSubjectRulesReviewSpec};
use kube::Api;
use kube::api::PostParams;

use super::cluster::Cluster;
use crate::environment::error::EnvironmentError;
use crate::environment::rights::{Rights, Rule, compare};

impl Cluster {
    /// Asks the cluster what this account may do, and compares it with what the program does.
    pub(super) async fn compared_rights(&self) -> Result<Rights, EnvironmentError> {
        let what = "asking what the program may do";
        let review = SelfSubjectRulesReview {
            spec: SelfSubjectRulesReviewSpec {
                namespace: Some(self.namespace().to_owned()),
            },
            ..SelfSubjectRulesReview::default()
        };
        let api: Api<SelfSubjectRulesReview> = Api::all(self.client());
        let answered = self.ask(api.create(&PostParams::default(), &review)).await;
        let status = answered
            .map_err(|failure| self.error_of(what, failure))?
            .status
            .unwrap_or_default();
        let rules: Vec<Rule> = status.resource_rules.into_iter().map(rule).collect();
        Ok(compare(&rules, status.incomplete))
    }
}

fn rule(rule: ResourceRule) -> Rule {
    Rule {
        groups: rule.api_groups.unwrap_or_default(),
        resources: rule.resources.unwrap_or_default(),
        verbs: rule.verbs,
        names: rule.resource_names.unwrap_or_default(),
    }
}
