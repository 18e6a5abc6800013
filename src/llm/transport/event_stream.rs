//! Takes a streamed reply apart into JSON events, however the network cut it.
//!
//! Events are told apart by bytes and decoded whole, so a character that comes in two pieces is
//! never damaged.

use serde_json::{Value, json};

/// The form in which a provider separates the events of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// Server-sent events: `data:` lines, each event ended by an empty line.
    ServerSentEvents,
    /// One JSON value per line.
    Lines,
}

/// An event of a stream.
#[derive(Debug, PartialEq)]
pub(crate) enum StreamEvent {
    Json(Value),
    /// The end mark of chat completions.
    Done,
}

/// Decodes a stream piece by piece; holds at most one event that is not complete.
#[derive(Debug)]
pub(crate) struct EventStream {
    framing: Framing,
    /// The line that is not complete.
    line: Vec<u8>,
    /// The `data` of the event that is not complete.
    data: Vec<u8>,
    has_data: bool,
}

/// The mark that some servers write before the first byte.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

impl EventStream {
    pub(crate) fn new(framing: Framing) -> Self {
        Self {
            framing,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
        }
    }

    /// Takes the next piece and returns the events that it completes.
    ///
    /// # Errors
    /// If an event is not JSON.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<Vec<StreamEvent>, String> {
        let mut events = Vec::new();
        let mut rest = piece;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.end_line(line.strip_suffix(b"\r").unwrap_or(&line), &mut events)?;
        }
        self.line.extend_from_slice(rest);
        Ok(events)
    }

    /// Returns the event that the end of the stream completes, if one does.
    pub(crate) fn finish(&mut self) -> Result<Vec<StreamEvent>, String> {
        let mut events = Vec::new();
        let line = std::mem::take(&mut self.line);
        self.end_line(&line, &mut events)?;
        self.end_event(&mut events)?;
        Ok(events)
    }

    fn end_line(&mut self, line: &[u8], events: &mut Vec<StreamEvent>) -> Result<(), String> {
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
        if self.framing == Framing::Lines {
            if !line.trim_ascii().is_empty() {
                events.push(StreamEvent::Json(json(line)?));
            }
            return Ok(());
        }
        if line.is_empty() {
            return self.end_event(events);
        }
        // Written by older servers of llama.cpp in the place of a name.
        if let Some(error) = line.strip_prefix(b"error:") {
            events.push(StreamEvent::Json(json!({ "error": json(error)? })));
            return Ok(());
        }
        // Comments, names and numbers of events say nothing that the data does not.
        if let Some(data) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.has_data = true;
        }
        Ok(())
    }

    fn end_event(&mut self, events: &mut Vec<StreamEvent>) -> Result<(), String> {
        let data = std::mem::take(&mut self.data);
        let has_data = std::mem::take(&mut self.has_data);
        match data.trim_ascii() {
            _ if !has_data => {}
            b"" => {}
            b"[DONE]" => events.push(StreamEvent::Done),
            data => events.push(StreamEvent::Json(json(data)?)),
        }
        Ok(())
    }
}

fn json(text: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(text).map_err(|error| format!("an event of the stream is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(framing: Framing, pieces: &[&[u8]]) -> Vec<StreamEvent> {
        let mut stream = EventStream::new(framing);
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(stream.push(piece).unwrap());
        }
        events.extend(stream.finish().unwrap());
        events
    }

    #[test]
    fn comments_names_and_empty_events_are_passed_over() {
        let text = "\u{feff}: keepalive\r\n\r\nevent: ping\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\nid: 4\r\n\r\ndata:\r\n\r\ndata:[DONE]\r\n\r\n";
        assert_eq!(
            decoded(Framing::ServerSentEvents, &[text.as_bytes()]),
            [StreamEvent::Json(json!({ "a": 1 })), StreamEvent::Done]
        );
        assert_eq!(
            decoded(Framing::Lines, &[b"{\"a\":1}\n\n \n{\"b\":2}"]),
            [
                StreamEvent::Json(json!({ "a": 1 })),
                StreamEvent::Json(json!({ "b": 2 }))
            ]
        );
        assert!(EventStream::new(Framing::Lines).push(b"<html>\n").is_err());
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_the_network_cuts(text in "[a-z\u{3042}\u{1f600}\"\\\\]{1,40}", size in 1_usize..9) {
            let event = json!({ "text": text });
            for (framing, sent) in [
                (Framing::ServerSentEvents, format!("data: {event}\r\n\r\n: x\n\ndata: {event}\n\n")),
                (Framing::Lines, format!("{event}\n{event}\n")),
            ] {
                let pieces: Vec<&[u8]> = sent.as_bytes().chunks(size).collect();
                let expected = [StreamEvent::Json(event.clone()), StreamEvent::Json(event.clone())];
                prop_assert_eq!(&decoded(framing, &pieces), &expected);
            }
        }
    }
}
