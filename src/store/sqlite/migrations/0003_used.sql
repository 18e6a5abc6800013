-- Tokens that all runs together have used, by day (UTC, ISO 8601).

CREATE TABLE used (
    day TEXT PRIMARY KEY NOT NULL,
    input BIGINT NOT NULL,
    output BIGINT NOT NULL,
    cached BIGINT NOT NULL
);
