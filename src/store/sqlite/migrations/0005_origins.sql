-- The task that a pull or merge request was opened for: runs of both work on one branch, so they take turns.

ALTER TABLE followed ADD COLUMN origin TEXT;
