//! Endpoints that the `gitlab` crate does not have, or has twice.

use std::borrow::Cow;
use std::convert::Infallible;

use chrono::{DateTime, SecondsFormat, Utc};
use gitlab::api::common::NameOrId;
use gitlab::api::endpoint_prelude::{BodyError, Endpoint, FormParams, Method, Pageable, QueryParams};

use crate::forge::item::address::ItemAddress;
use crate::task::id::ItemKind;

/// A request for something that issues and merge requests both have, at the same path below the
/// item and with the same parameters. The crate has two types for each, without a common trait.
pub(crate) struct OfItem<'a> {
    method: Method,
    item: ItemAddress<'a>,
    /// Path below the item, with a leading `/`; empty for the item itself.
    part: String,
    parameters: Vec<(&'static str, &'a str)>,
}

impl<'a> OfItem<'a> {
    pub(crate) fn get(item: ItemAddress<'a>, part: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            item,
            part: part.into(),
            parameters: Vec::new(),
        }
    }

    pub(crate) fn post(item: ItemAddress<'a>, part: impl Into<String>) -> Self {
        let method = Method::POST;
        Self {
            method,
            ..Self::get(item, part)
        }
    }

    pub(crate) fn put(item: ItemAddress<'a>, part: impl Into<String>) -> Self {
        let method = Method::PUT;
        Self {
            method,
            ..Self::get(item, part)
        }
    }

    /// Adds a parameter: to the query of a GET, to the form of a write.
    pub(crate) fn with(mut self, name: &'static str, value: &'a str) -> Self {
        self.parameters.push((name, value));
        self
    }

    /// Returns the endpoint as a builder of the crate does, for the client's calls. Nothing can be
    /// missing.
    #[expect(clippy::unnecessary_wraps, reason = "the client's calls take what builders return")]
    pub(crate) fn build(self) -> Result<Self, Infallible> {
        Ok(self)
    }
}

impl Endpoint for OfItem<'_> {
    fn method(&self) -> Method {
        self.method.clone()
    }

    fn endpoint(&self) -> Cow<'static, str> {
        let items = match self.item.kind {
            ItemKind::Issue => "issues",
            ItemKind::MergeRequest => "merge_requests",
        };
        let project = NameOrId::from(self.item.repository);
        format!("projects/{project}/{items}/{}{}", self.item.number, self.part).into()
    }

    fn parameters(&self) -> QueryParams<'_> {
        let mut parameters = QueryParams::default();
        if self.method == Method::GET {
            parameters.extend(self.parameters.iter().copied());
        }
        parameters
    }

    fn body(&self) -> Result<Option<(&'static str, Vec<u8>)>, BodyError> {
        if self.method == Method::GET {
            return Ok(None);
        }
        let mut parameters = FormParams::default();
        parameters.extend(self.parameters.iter().copied());
        parameters.into_body()
    }
}

impl Pageable for OfItem<'_> {}

/// A request for something below a project. The crate has a type of its own for each such endpoint.
pub(crate) struct OfProject<'a> {
    method: Method,
    project: &'a str,
    /// The path below the project, with the `/` before it.
    part: &'static str,
    parameters: Vec<(&'static str, &'a str)>,
}

impl<'a> OfProject<'a> {
    pub(crate) fn get(project: &'a str, part: &'static str) -> Self {
        Self {
            method: Method::GET,
            project,
            part,
            parameters: Vec::new(),
        }
    }

    pub(crate) fn post(project: &'a str, part: &'static str) -> Self {
        let method = Method::POST;
        Self {
            method,
            ..Self::get(project, part)
        }
    }

    /// Adds a parameter: to the query of a GET, to the form of a write.
    pub(crate) fn with(mut self, name: &'static str, value: &'a str) -> Self {
        self.parameters.push((name, value));
        self
    }

    /// Returns the endpoint as a builder of the crate does.
    #[expect(clippy::unnecessary_wraps, reason = "the client's calls take what builders return")]
    pub(crate) fn build(self) -> Result<Self, Infallible> {
        Ok(self)
    }
}

impl Endpoint for OfProject<'_> {
    fn method(&self) -> Method {
        self.method.clone()
    }

    fn endpoint(&self) -> Cow<'static, str> {
        format!("projects/{}{}", NameOrId::from(self.project), self.part).into()
    }

    fn parameters(&self) -> QueryParams<'_> {
        let mut parameters = QueryParams::default();
        if self.method == Method::GET {
            parameters.extend(self.parameters.iter().copied());
        }
        parameters
    }

    fn body(&self) -> Result<Option<(&'static str, Vec<u8>)>, BodyError> {
        if self.method == Method::GET {
            return Ok(None);
        }
        let mut parameters = FormParams::default();
        parameters.extend(self.parameters.iter().copied());
        parameters.into_body()
    }
}

/// Stands between the parts of a body, and in no picture that the program wrote.
macro_rules! boundary {
    () => {
        "coding-agent-6d1c2f0b5a1e4c07"
    };
}

/// A file that is put into a project, for its texts to show.
pub(crate) struct NewUpload<'a> {
    pub(crate) project: &'a str,
    pub(crate) file: &'a str,
    /// Its media type.
    pub(crate) kind: &'a str,
    pub(crate) bytes: &'a [u8],
}

impl Endpoint for NewUpload<'_> {
    fn method(&self) -> Method {
        Method::POST
    }

    fn endpoint(&self) -> Cow<'static, str> {
        format!("projects/{}/uploads", NameOrId::from(self.project)).into()
    }

    fn body(&self) -> Result<Option<(&'static str, Vec<u8>)>, BodyError> {
        let Self { file, kind, bytes, .. } = self;
        let head = format!(
            concat!(
                "--",
                boundary!(),
                "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{}\"\r\nContent-Type: {}\r\n\r\n"
            ),
            file, kind
        );
        let mut body = head.into_bytes();
        body.extend_from_slice(bytes);
        body.extend_from_slice(concat!("\r\n--", boundary!(), "--\r\n").as_bytes());
        Ok(Some((concat!("multipart/form-data; boundary=", boundary!()), body)))
    }
}

/// A file that somebody dropped into a text of a project.
pub(crate) struct Upload<'a> {
    pub(crate) project: &'a str,
    pub(crate) secret: &'a str,
    pub(crate) file: &'a str,
}

impl Endpoint for Upload<'_> {
    fn method(&self) -> Method {
        Method::GET
    }

    fn endpoint(&self) -> Cow<'static, str> {
        let Self { project, secret, file } = self;
        format!("projects/{}/uploads/{secret}/{file}", NameOrId::from(*project)).into()
    }
}

/// Open merge requests in a group and its subgroups, oldest first: those with a label, or those
/// that were updated since a time.
pub(crate) struct GroupMergeRequests<'a> {
    group: &'a str,
    filter: (&'static str, Cow<'a, str>),
}

impl<'a> GroupMergeRequests<'a> {
    pub(crate) fn labelled(group: &'a str, label: &'a str) -> Self {
        let filter = ("labels", label.into());
        Self { group, filter }
    }

    pub(crate) fn updated_after(group: &'a str, time: DateTime<Utc>) -> Self {
        let filter = (
            "updated_after",
            time.to_rfc3339_opts(SecondsFormat::Millis, true).into(),
        );
        Self { group, filter }
    }
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
            .push(self.filter.0, self.filter.1.as_ref())
            .push("non_archived", true)
            .push("order_by", "created_at")
            .push("sort", "asc");
        parameters
    }
}

impl Pageable for GroupMergeRequests<'_> {}
