//! Evaluates documents for other programs: an MCP server with the tools `evaluate_document` and
//! `evaluate_documents`, which ask the configured reviewer, and `search_code`, `ingest_code` and
//! `prune_code`, which work on the code index of a folder.
//!
//! Every error is one of JSON-RPC's, with a text for people in `data.formatted`. Where only some of
//! several documents come to no review, these have the reason in the answer. A call that its client
//! cancels ends at the reviewer, too, and what that was answered until then is counted. The
//! protocol's versions are those that rmcp knows, from 2024-11-05 on.

mod answer; // what is answered
mod arguments; // what is asked
pub mod stored; // how a stored evaluation stands
mod history; // what was evaluated before
mod searching; // places of a folder
mod frames; // lines that are no requests

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, Implementation, JsonObject,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext, Service, ServiceRole, serve_server_with_ct};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{interval, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::review::document::Document;
use crate::review::evidence::{self, Known};
use crate::review::score::Score;
use crate::reviewer::{self, Call, Reviewer};
use answer::Evaluation;
use arguments::{EVALUATE_DOCUMENT, EVALUATE_DOCUMENTS, EvaluationRequest};
use history::History;
pub use history::Records;
pub use searching::Folders;
use searching::{INGEST_CODE, PRUNE_CODE, SEARCH_CODE};

/// Longest request that is read.
const MAX_REQUEST_BYTES: usize = 16 * 1024 * 1024;
/// Most reviews at once; further ones wait.
const REVIEWS_AT_ONCE: usize = 4;
/// Time between two notes on progress.
const PROGRESS: Duration = Duration::from_secs(5);
/// The methods that are answered and do not go without parameters.
const METHODS: [&str; 2] = ["initialize", "tools/call"];
/// Longest time for recording what is under way when the server ends.
const RECORDING: Duration = Duration::from_secs(30);

/// The server: a reviewer, and the score that counts where a call names none.
pub struct Evaluations {
    reviewer: Reviewer,
    folders: Folders,
    history: History,
    target_score: Score,
    reviews: Semaphore,
    under_way: TaskTracker,
}

/// The server with a text for people in each of its errors.
struct WithFormattedErrors(Evaluations);

impl Evaluations {
    pub fn new(reviewer: Reviewer, target_score: Score, records: Records, folders: Folders) -> Self {
        Self {
            history: History {
                records,
                redactor: Arc::clone(&reviewer.redactor),
            },
            reviewer,
            folders,
            target_score,
            reviews: Semaphore::new(REVIEWS_AT_ONCE),
            under_way: TaskTracker::new(),
        }
    }

    /// Serves until the client closes the stream, or until `stop`. What is evaluated, and what that
    /// used, is recorded, also where it is under way then.
    pub async fn serve(
        self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        let under_way = self.under_way.clone();
        let (reader, writer, pumps) = frames::checked(reader, writer, MAX_REQUEST_BYTES);
        let transport =
            AsyncRwTransport::<RoleServer, _, _>::new_server(reader, writer).with_max_line_length(MAX_REQUEST_BYTES);
        let formatted = WithFormattedErrors(self);
        let served = match serve_server_with_ct(formatted, transport, stop.child_token()).await {
            Ok(service) => service
                .waiting()
                .await
                .map(|_| ())
                .context("the server ended with an error"),
            Err(_) if stop.is_cancelled() => Ok(()),
            Err(error) => Err(error).context("the handshake with the client failed"),
        };
        // Calls that are under way have been cancelled. They go on in tasks of their own, which the
        // end of the process would break off before what they were answered is counted.
        under_way.close();
        if timeout(RECORDING, under_way.wait()).await.is_err() {
            tracing::warn!("what was under way at the end was not recorded in time");
        }
        pumps.finish().await;
        served
    }

    async fn evaluate(
        &self,
        asked: &EvaluationRequest,
        context: &RequestContext<RoleServer>,
    ) -> Result<Vec<Evaluation>, ErrorData> {
        let _under_way = self.under_way.token();
        let begun = Instant::now();
        let total = asked.documents.len();
        let mut evaluations = Vec::new();
        for (number, document) in asked.documents.iter().enumerate() {
            let target_score = asked.target_score.unwrap_or(self.target_score);
            // Recorded before its turn, one that waits long would look broken off.
            let turn = unless_cancelled(context, (number, total), begun, self.turn()).await?;
            let longest = self.reviewer.longest_answers();
            let entry = self.history.begin(asked, number, target_score, longest).await;
            let mut calls = Vec::new();
            let review = Box::pin(self.review(&document.content, asked, &mut calls));
            let evaluation = unless_cancelled(context, (number, total), begun, review).await;
            drop(turn);
            // Paid is also what a cancelled call was answered. What a program uses nobody tells.
            if let reviewer::Judge::Model(_) = self.reviewer.judge {
                self.history.count(&calls).await;
            }
            self.history.end(entry, &evaluation).await;
            let evaluation = match evaluation {
                Ok(evaluation) => evaluation,
                Err(error) if asked.is_one || context.ct.is_cancelled() => return Err(error),
                // The reviews of the others were paid for, too.
                Err(error) => Evaluation::missing(target_score, &error),
            };
            evaluations.push(Evaluation {
                name: document.name.clone(),
                ..evaluation
            });
        }
        tell(context, total, total, "done").await;
        Ok(evaluations)
    }

    async fn on_index(
        &self,
        tool: &str,
        arguments: JsonObject,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        tokio::select! {
            found = self.folders.call(tool, arguments, &self.reviewer.redactor) => found.map(Into::into),
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }

    /// Waits until one more document may be reviewed, which it may for as long as the permit lives.
    async fn turn(&self) -> Result<SemaphorePermit<'_>, ErrorData> {
        let permit = self.reviews.acquire().await;
        permit.map_err(|_| ErrorData::internal_error("the server is ending", None))
    }

    /// Returns the evaluation of a document; the reviewer's calls are added to `calls`.
    async fn review(
        &self,
        content: &str,
        asked: &EvaluationRequest,
        calls: &mut Vec<Call>,
    ) -> Result<Evaluation, ErrorData> {
        let review = self.reviewer.review(content, calls).await;
        let mut review = review.map_err(|error| answer::no_review(&error))?;
        let target_score = asked.target_score.unwrap_or(self.target_score);
        let mut unproven = Vec::new();
        // Without the project there is nothing that evidence could be checked against.
        if let Some(project) = &asked.project {
            let files = arguments::files(project.clone(), evidence::cited_paths(&review.blockers)).await;
            let known = Known {
                files,
                ..Known::default()
            };
            let blockers = std::mem::take(&mut review.blockers);
            (review.blockers, unproven) = evidence::weigh(blockers, &Document::default(), &known, None);
        }
        Ok(Evaluation {
            name: None,
            passed: review.passes(target_score),
            target_score,
            review,
            unproven_blockers: unproven,
            error: None,
        })
    }
}

/// Waits for what the document with this number, of so many, needs, and reports meanwhile how long
/// the call takes. A call that its client cancels is not waited for.
async fn unless_cancelled<T>(
    context: &RequestContext<RoleServer>,
    (number, total): (usize, usize),
    begun: Instant,
    work: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    tokio::pin!(work);
    let mut ticks = interval(PROGRESS);
    loop {
        tokio::select! {
            done = &mut work => return done,
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
            _ = ticks.tick() => {
                let seconds = begun.elapsed().as_secs();
                tell(context, number, total, &format!("document {} of {total}, {seconds} s", number + 1)).await;
            }
        }
    }
}

/// Reports the progress of a call to a client that asked for it.
async fn tell(context: &RequestContext<RoleServer>, done: usize, total: usize, message: &str) {
    let Some(token) = context.meta.get_progress_token() else {
        return;
    };
    let count = |number: usize| u32::try_from(number).map_or(f64::MAX, f64::from);
    let progress = ProgressNotificationParam::new(token, count(done))
        .with_total(count(total))
        .with_message(message);
    let _ = context.peer.notify_progress(progress).await;
}

impl ServerHandler for Evaluations {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("coding-agent", env!("CARGO_PKG_VERSION")))
            .with_instructions(
                "Evaluate a plan or another document before you act on it, and make it better until it passes.",
            )
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items({
            let mut tools = arguments::tools();
            tools.extend(searching::tools());
            tools
        }))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let asked = match request.name.as_ref() {
            EVALUATE_DOCUMENT => arguments::one(arguments)?,
            EVALUATE_DOCUMENTS => arguments::several(arguments)?,
            tool @ (SEARCH_CODE | INGEST_CODE | PRUNE_CODE) => return self.on_index(tool, arguments, &context).await,
            other => {
                let names = [
                    EVALUATE_DOCUMENT,
                    EVALUATE_DOCUMENTS,
                    SEARCH_CODE,
                    INGEST_CODE,
                    PRUNE_CODE,
                ]
                .join(", ");
                return Err(ErrorData::invalid_params(
                    format!("there is no tool {other}; there are {names}"),
                    None,
                ));
            }
        };
        let evaluations = self.evaluate(&asked, &context).await?;
        let redactor = &self.reviewer.redactor;
        let result = match &evaluations[..] {
            [evaluation] if asked.is_one => answer::one(evaluation, redactor),
            _ => answer::several(evaluations, redactor)?,
        };
        Ok(result.into())
    }

    /// Refuses what is no request of MCP. One whose parameters do not fit its method comes here,
    /// too.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if METHODS.contains(&request.method.as_str()) {
            let what = format!("the parameters of {} cannot be read", request.method);
            return Err(ErrorData::invalid_params(what, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

impl Service<RoleServer> for WithFormattedErrors {
    async fn handle_request(
        &self,
        request: <RoleServer as ServiceRole>::PeerReq,
        context: RequestContext<RoleServer>,
    ) -> Result<<RoleServer as ServiceRole>::Resp, ErrorData> {
        let answered = Service::handle_request(&self.0, request, context).await;
        answered.map_err(answer::formatted)
    }

    async fn handle_notification(
        &self,
        notification: <RoleServer as ServiceRole>::PeerNot,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Service::handle_notification(&self.0, notification, context).await
    }

    fn get_info(&self) -> ServerConfig {
        ServerHandler::get_info(&self.0)
    }
}
