-- The pull and merge requests that are looked after once they are open.

CREATE TABLE followed (
    task TEXT PRIMARY KEY NOT NULL,
    -- The document of whoever looks after it.
    notes TEXT NOT NULL,
    active_at BIGINT NOT NULL,
    ended_at BIGINT
);

CREATE INDEX followed_by_activity ON followed (active_at) WHERE ended_at IS NULL;
