-- What is kept no longer is found by when it ended, and spared where a change request of it is still looked after.

CREATE INDEX finished_runs_by_end ON runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX followed_by_origin ON followed (origin) WHERE ended_at IS NULL;
