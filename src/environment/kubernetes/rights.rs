//! Asks the cluster what the program may do.

use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, ResourceRule, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec, SelfSubjectRulesReview,
    SelfSubjectRulesReviewSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::cluster::Cluster;
use crate::environment::error::EnvironmentError;
use crate::environment::rights::{NEEDED, Rights, Rule, compare};

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
        let mut rules: Vec<Rule> = status.resource_rules.into_iter().map(rule).collect();
        if status.incomplete {
            rules.extend(self.rights_asked_for().await?);
        }
        Ok(compare(&rules, status.incomplete))
    }

    /// Asks for each right that the program needs, one by one: an authorizer that cannot list what
    /// it grants, such as a webhook, still says yes or no.
    async fn rights_asked_for(&self) -> Result<Vec<Rule>, EnvironmentError> {
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client());
        let mut granted = Vec::new();
        for (group, resource, verbs) in NEEDED {
            let (kind, part) = resource
                .split_once('/')
                .map_or((resource, None), |(kind, part)| (kind, Some(part)));
            for verb in verbs {
                let review = SelfSubjectAccessReview {
                    spec: SelfSubjectAccessReviewSpec {
                        resource_attributes: Some(ResourceAttributes {
                            namespace: Some(self.namespace().to_owned()),
                            group: Some(group.to_owned()),
                            resource: Some(kind.to_owned()),
                            subresource: part.map(str::to_owned),
                            verb: Some((*verb).to_owned()),
                            ..ResourceAttributes::default()
                        }),
                        ..SelfSubjectAccessReviewSpec::default()
                    },
                    ..SelfSubjectAccessReview::default()
                };
                let answered = self.ask(api.create(&PostParams::default(), &review)).await;
                let status = answered
                    .map_err(|failure| self.error_of("asking what the program may do", failure))?
                    .status;
                if status.is_some_and(|status| status.allowed) {
                    granted.push(Rule {
                        groups: vec![group.to_owned()],
                        resources: vec![resource.to_owned()],
                        verbs: vec![(*verb).to_owned()],
                        names: Vec::new(),
                    });
                }
            }
        }
        Ok(granted)
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

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use http_body_util::BodyExt;
    use kube::Client;
    use kube::client::Body;
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;

    /// Answers as a server does whose authorizers cannot list what they grant: everything but
    /// `delete` and what belongs to `pods/log`.
    async fn answer(request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let is_of_all = request.uri().path().ends_with("selfsubjectrulesreviews");
        let bytes = request.into_body().collect().await.unwrap().to_bytes();
        let mut review: Value = serde_json::from_slice(&bytes).unwrap();
        review["status"] = if is_of_all {
            json!({ "incomplete": true, "nonResourceRules": [], "resourceRules": [] })
        } else {
            let asked = &review["spec"]["resourceAttributes"];
            assert_eq!(asked["namespace"], "coding-agent");
            json!({ "allowed": asked["verb"] != "delete" && asked["subresource"] != "log" })
        };
        Ok(Response::new(Body::from(serde_json::to_vec(&review).unwrap())))
    }

    #[tokio::test]
    async fn what_a_server_does_not_list_is_asked_one_by_one() {
        let cluster = Cluster::over(Client::new(service_fn(answer), "coding-agent"));
        let rights = cluster.compared_rights().await.unwrap();
        assert_eq!(rights.lacking, ["delete on pods", "get on pods/log"]);
        assert_eq!((rights.superfluous.len(), rights.is_incomplete), (0, true));
    }
}
