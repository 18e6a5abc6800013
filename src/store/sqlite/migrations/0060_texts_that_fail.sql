-- Since when a text could not be said: the waits between the attempts grow with it, and one that fails for too long is given up.

ALTER TABLE chat_outbox ADD COLUMN failing_since BIGINT;

-- The next text of each conversation is asked for several times a second.

CREATE INDEX chat_outbox_unsaid ON chat_outbox (session, at) WHERE shown < wanted;
