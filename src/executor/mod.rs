//! The program inside the container: an MCP server on stdio with the seven workspace tools.
