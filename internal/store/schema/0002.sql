-- The parts of a study are asked for on each of its pages, and the newest entries on the first.
CREATE INDEX entries_parent ON entries (parent);
CREATE INDEX entries_usual ON entries (pinned DESC, started DESC, id);
