-- Tokens that were written into a provider's cache have a price of their own.
ALTER TABLE used_by_model ADD COLUMN cache_written BIGINT NOT NULL DEFAULT 0;
