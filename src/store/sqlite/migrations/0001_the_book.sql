-- The book of runs. Written for SQLite and PostgreSQL alike: ids and documents are text, times are microseconds since
-- 1970 in UTC, and there is nothing that only one of the two understands.

CREATE TABLE runs (
    id TEXT PRIMARY KEY NOT NULL,
    task TEXT NOT NULL,
    title TEXT NOT NULL,
    state TEXT NOT NULL,
    record TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    finished_at BIGINT,
    not_before BIGINT,
    -- Who works on it. The token is new with every claim: whoever holds an older one saves nothing any more.
    lease_token TEXT,
    lease_worker TEXT,
    lease_host TEXT,
    lease_expires_at BIGINT
);

CREATE UNIQUE INDEX one_unfinished_run_per_task ON runs (task) WHERE finished_at IS NULL;
CREATE INDEX unfinished_runs_by_age ON runs (id) WHERE finished_at IS NULL;
CREATE INDEX unfinished_runs_by_worker ON runs (lease_worker) WHERE finished_at IS NULL;
CREATE INDEX runs_by_task ON runs (task, id);
CREATE INDEX runs_by_state ON runs (state);

-- One row a message, so that the thousandth costs what the first did.
CREATE TABLE messages (
    run TEXT NOT NULL REFERENCES runs (id),
    position BIGINT NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (run, position)
);

-- What people ask of a run that another process may be working on.
CREATE TABLE requests (
    id TEXT PRIMARY KEY NOT NULL,
    run TEXT NOT NULL REFERENCES runs (id),
    request TEXT NOT NULL
);

CREATE INDEX requests_by_run ON requests (run, id);

CREATE TABLE remembered (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);
