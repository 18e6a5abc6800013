//! `GET /api/events`: facts as they come, as server-sent events.
//!
//! The number of an event is that of its fact in the store, so a reader that comes back goes on
//! where it was, at another server on the same store, too.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Extension, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;

use super::answers::filter;
use super::request::QueryParameters;
use crate::web::Web;
use crate::web::access::Visitor;
use crate::web::problem::Problem;

const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
/// Interval between signs of life, so that proxies keep the connection open and a dead reader is
/// noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Time after which a browser comes back to a stream that ended.
const COME_BACK: Duration = Duration::from_secs(2);

pub(super) async fn stream(
    State(web): State<Arc<Web>>,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    query: QueryParameters,
) -> Result<Response, Problem> {
    query.only(&["run", "task", "after"])?;
    let filter = filter(&query)?;
    let after = match last_event(&headers)? {
        Some(last) => Some(last),
        None => query.number("after", 0, i64::MAX.unsigned_abs())?,
    };
    let after = match after {
        Some(after) => after,
        None => web.service.store().newest_fact().await?,
    };
    let Some(facts) = web.hub.read(filter, after) else {
        let detail = "too many read the events already; come again later";
        let mut response = Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, HeaderValue::from_static("30"));
        return Ok(response);
    };
    let hello = Event::default().comment("facts follow").retry(COME_BACK);
    let events = facts.map(|fact| Event::default().id(fact.sequence.to_string()).data(fact.document));
    let events = futures_util::stream::iter([hello])
        .chain(events)
        .map(Ok::<_, Infallible>);
    let events = events.take_until(web.closing.clone().cancelled_owned());
    // Whoever logs out reads on in no other window either.
    let over = web.access.over(web.service.store().clone(), &visitor);
    let events = events.take_until(Box::pin(over));
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    Ok(Sse::new(events).keep_alive(keep_alive).into_response())
}

fn last_event(headers: &HeaderMap) -> Result<Option<u64>, Problem> {
    let Some(value) = headers.get(LAST_EVENT) else {
        return Ok(None);
    };
    let number = value.to_str().ok().and_then(|text| text.parse().ok());
    let number = number.filter(|number: &u64| i64::try_from(*number).is_ok());
    let refused = || Problem::bad_request("`Last-Event-ID` must be the number of an event of this server");
    number.map(Some).ok_or_else(refused)
}
