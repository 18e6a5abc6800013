-- Conversations in Slack and LINE: what is known of each.

CREATE TABLE chat_sessions (
    id TEXT PRIMARY KEY NOT NULL,
    document TEXT NOT NULL,
    active_at BIGINT NOT NULL
);

-- Messages and clicks of people, each once. The document is empty when it was answered.

CREATE TABLE chat_messages (
    id TEXT PRIMARY KEY NOT NULL,
    session TEXT NOT NULL,
    at BIGINT NOT NULL,
    document TEXT NOT NULL,
    handled_at BIGINT
);

CREATE INDEX chat_messages_by_time ON chat_messages (handled_at, at);

-- What is to be said there. Each change of a text raises `wanted`; `shown` follows when the messenger has taken it. `begun` is
-- 1 while nobody knows whether it did; `message` is the messenger's own name for it.

CREATE TABLE chat_outbox (
    id TEXT PRIMARY KEY NOT NULL,
    session TEXT NOT NULL,
    at BIGINT NOT NULL,
    document TEXT NOT NULL,
    wanted BIGINT NOT NULL,
    shown BIGINT NOT NULL,
    begun BIGINT NOT NULL,
    not_before BIGINT NOT NULL,
    message TEXT
);

CREATE INDEX chat_outbox_by_time ON chat_outbox (at);

-- Tasks whose progress is told in a conversation.

CREATE TABLE chat_watches (
    task TEXT PRIMARY KEY NOT NULL,
    session TEXT NOT NULL,
    document TEXT NOT NULL,
    since BIGINT NOT NULL
);
