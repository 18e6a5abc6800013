-- A page of the history is found by an index, whatever it is filtered by: also where no run is like that. A repository is its task's
-- id without the number.
CREATE INDEX ended_runs_by_state ON runs (state, id) WHERE finished_at IS NOT NULL;
CREATE INDEX ended_runs_by_repository ON runs (RTRIM(task, '0123456789'), id) WHERE finished_at IS NOT NULL;
CREATE INDEX ended_runs_by_repository_and_state ON runs (RTRIM(task, '0123456789'), state, id) WHERE finished_at IS NOT NULL;
