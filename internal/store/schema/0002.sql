-- The parts of a study are asked for on each of its pages.
CREATE INDEX entries_parent ON entries (parent);
