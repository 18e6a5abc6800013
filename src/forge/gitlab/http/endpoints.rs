//! Endpoints that the `gitlab` crate does not have, or has twice.

use std::borrow::Cow;
use std::convert::Infallible;

use chrono::{DateTime, SecondsFormat, Utc};
use gitlab::api::common::NameOrId;
use gitlab::api::endpoint_prelude::{BodyError, Endpoint, FormParams, Method, Pageable, QueryParams};

use crate::forge::item::address::ItemAddress;
use crate::task::id::ItemKind;

/// A request for something below a project or one of its items. The crate has a type of its own for
/// each such endpoint, and two, without a common trait, where issues and merge requests have the
/// same at the same path below the item and with the same parameters.
pub(crate) struct Below<'a> {
    method: Method,
    place: Place<'a>,
    /// The path below the place, with a leading `/`; empty for the place itself.
    part: String,
    parameters: Vec<(&'static str, &'a str)>,
}

/// The project or the item that a request is for something below.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    Project(&'a str),
    Item(ItemAddress<'a>),
}

impl<'a> From<&'a str> for Place<'a> {
    fn from(project: &'a str) -> Self {
        Self::Project(project)
    }
}

impl<'a> From<ItemAddress<'a>> for Place<'a> {
    fn from(item: ItemAddress<'a>) -> Self {
        Self::Item(item)
    }
}

impl<'a> Below<'a> {
    pub(crate) fn get(place: impl Into<Place<'a>>, part: impl Into<String>) -> Self {
        Self {
            method: Method::GET,
            place: place.into(),
            part: part.into(),
            parameters: Vec::new(),
        }
    }

    pub(crate) fn post(place: impl Into<Place<'a>>, part: impl Into<String>) -> Self {
        let method = Method::POST;
        Self {
            method,
            ..Self::get(place, part)
        }
    }

    pub(crate) fn put(place: impl Into<Place<'a>>, part: impl Into<String>) -> Self {
        let method = Method::PUT;
        Self {
            method,
            ..Self::get(place, part)
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

impl Endpoint for Below<'_> {
    fn method(&self) -> Method {
        self.method.clone()
    }

    fn endpoint(&self) -> Cow<'static, str> {
        let part = &self.part;
        let item = match self.place {
            Place::Project(project) => return format!("projects/{}{part}", NameOrId::from(project)).into(),
            Place::Item(item) => item,
        };
        let items = match item.kind {
            ItemKind::Issue => "issues",
            ItemKind::MergeRequest => "merge_requests",
        };
        let project = NameOrId::from(item.repository);
        format!("projects/{project}/{items}/{}{part}", item.number).into()
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

impl Pageable for Below<'_> {}

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
