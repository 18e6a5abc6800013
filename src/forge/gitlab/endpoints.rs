//! Endpoints that the `gitlab` crate does not have.

use std::borrow::Cow;

use gitlab::api::common::NameOrId;
use gitlab::api::endpoint_prelude::{Endpoint, Method, Pageable, QueryParams};

/// The open merge requests with a label in a group and its subgroups, oldest first.
pub(super) struct GroupMergeRequests<'a> {
    pub(super) group: &'a str,
    pub(super) label: &'a str,
}

impl Endpoint for GroupMergeRequests<'_> {
    fn method(&self) -> Method {
        Method::GET
    }

    fn endpoint(&self) -> Cow<'static, str> {
        format!("groups/{}/merge_requests", NameOrId::from(self.group)).into()
    }

    fn parameters(&self) -> QueryParams<'_> {
        let mut parameters = QueryParams::default();
        parameters
            .push("state", "opened")
            .push("scope", "all")
            .push("labels", self.label)
            .push("non_archived", true)
            .push("order_by", "created_at")
            .push("sort", "asc");
        parameters
    }
}

impl Pageable for GroupMergeRequests<'_> {}
