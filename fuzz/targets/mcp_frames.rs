//! What an MCP server writes: the client ends with an answer or an error, and does not wait for ever.
#![no_main]

use std::io::Cursor;
use std::time::Duration;

use async_trait::async_trait;
use coding_agent::tool::ToolServer;
use coding_agent::tool::connect::{Connect, Connection};
use coding_agent::tool::mcp::McpServer;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
    let server = McpServer::new("fuzzed", None, None, PATIENCE, Box::new(Bytes(bytes.to_vec())));
    runtime.expect("a thread can wait").block_on(async {
        let _ = server.list().await;
        let _ = server.call("tool", &serde_json::Map::new()).await;
        server.close().await;
    });
});

const PATIENCE: Duration = Duration::from_secs(2);

struct Bytes(Vec<u8>);

#[async_trait]
impl Connect for Bytes {
    async fn connect(&self) -> anyhow::Result<Connection> {
        Ok(Connection {
            reader: Box::new(Cursor::new(self.0.clone())),
            writer: Box::new(tokio::io::sink()),
            end: Box::new(|| Box::pin(async {})),
        })
    }
}
