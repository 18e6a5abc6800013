//! Every fact once: as a line of the JSONL journal and to live subscribers. And the log files beside it.
