//! The lines of the stream, before rmcp reads them: it answers nothing to a line that is no JSON,
//! and a client would wait for an answer for ever.

use rmcp::ErrorData;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::answer;

/// Bytes that wait between the stream and rmcp.
const BUFFER: usize = 64 * 1024;
/// Lines that wait to be written.
const WAITING_LINES: usize = 16;

/// The tasks that carry the lines.
pub(super) struct Pumps(Vec<JoinHandle<()>>);

impl Pumps {
    /// Waits until everything that was answered is written.
    pub(super) async fn finish(self) {
        // The client may still hold its end open.
        if let Some(reading) = self.0.first() {
            reading.abort();
        }
        for task in self.0 {
            let _ = task.await;
        }
    }
}

/// Returns a stream of which every line is a JSON object; the others are answered with an error.
pub(super) fn checked(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    longest: usize,
) -> (DuplexStream, DuplexStream, Pumps) {
    let (requests, requests_out) = duplex(BUFFER);
    let (answers_in, answers) = duplex(BUFFER);
    let (send, lines) = mpsc::channel(WAITING_LINES);
    let reading = tokio::spawn(read(reader, requests, send.clone(), longest));
    let answering = tokio::spawn(answer_lines(answers, send));
    let writing = tokio::spawn(write(lines, writer));
    (requests_out, answers_in, Pumps(vec![reading, answering, writing]))
}

async fn read(
    reader: impl AsyncRead + Unpin,
    mut requests: DuplexStream,
    errors: mpsc::Sender<Vec<u8>>,
    longest: usize,
) {
    let mut reader = BufReader::new(reader);
    while let Some(line) = next_line(&mut reader, longest).await {
        let fault = match line {
            Err(TooLong) => Some(ErrorData::parse_error(
                format!("the line has more than {longest} bytes"),
                None,
            )),
            Ok(line) if line.iter().all(u8::is_ascii_whitespace) => None,
            Ok(mut line) => {
                let fault = fault_of(&line);
                if fault.is_none() {
                    line.push(b'\n');
                    if requests.write_all(&line).await.is_err() {
                        return;
                    }
                }
                fault
            }
        };
        if let Some(fault) = fault {
            let error = answer::formatted(fault);
            let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
            if errors.send(answer.to_string().into_bytes()).await.is_err() {
                return;
            }
        }
    }
}

fn fault_of(line: &[u8]) -> Option<ErrorData> {
    match serde_json::from_slice::<Value>(line) {
        Err(error) => Some(ErrorData::parse_error(format!("the line is not JSON: {error}"), None)),
        Ok(Value::Object(message)) => {
            let is_request = message.get("method").is_some_and(Value::is_string);
            let is_answer = message.contains_key("result") || message.contains_key("error");
            (!is_request && !is_answer).then(|| ErrorData::invalid_request("the message has no method", None))
        }
        Ok(_) => Some(ErrorData::invalid_request("the message is not an object", None)),
    }
}

struct TooLong;

/// Reads a line of at most `longest` bytes, without its end; `None` at the end of the stream.
async fn next_line(reader: &mut (impl AsyncBufReadExt + Unpin), longest: usize) -> Option<Result<Vec<u8>, TooLong>> {
    let mut line = Vec::new();
    let mut is_too_long = false;
    loop {
        let buffer = reader.fill_buf().await.unwrap_or_default();
        if buffer.is_empty() && line.is_empty() && !is_too_long {
            return None;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        if line.len() + piece.len() > longest {
            is_too_long = true;
            line.clear();
        } else if !is_too_long {
            line.extend_from_slice(piece);
        }
        let is_last = buffer.is_empty() || end.is_some();
        let consumed = end.map_or(buffer.len(), |end| end + 1);
        reader.consume(consumed);
        if is_last {
            return Some(if is_too_long { Err(TooLong) } else { Ok(line) });
        }
    }
}

async fn answer_lines(answers: DuplexStream, lines: mpsc::Sender<Vec<u8>>) {
    let mut answers = BufReader::new(answers).split(b'\n');
    while let Ok(Some(line)) = answers.next_segment().await {
        if lines.send(line).await.is_err() {
            return;
        }
    }
}

async fn write(mut lines: mpsc::Receiver<Vec<u8>>, mut writer: impl AsyncWrite + Unpin) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}
