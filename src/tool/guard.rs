//! A small process between the worker and an MCP server: when the worker dies, however it dies, the server and all its
//! descendants die with it.
