-- Documents that other programs had evaluated. One without an end is under way, or its process ended before it.

CREATE TABLE evaluations (
    id TEXT PRIMARY KEY NOT NULL,
    begun_at BIGINT NOT NULL,
    ended_at BIGINT,
    document TEXT NOT NULL
);

CREATE INDEX evaluations_by_time ON evaluations (begun_at);
