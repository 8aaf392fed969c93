-- Counters, each changed in the first statement of a transaction that writes: who has changed one
-- is the only writer until it ends.
CREATE TABLE meta (name TEXT PRIMARY KEY, value BIGINT NOT NULL);
INSERT INTO meta (name, value) VALUES ('version', 1), ('entries', 0), ('metrics', 0), ('roots', 0);

CREATE TABLE roots (n BIGINT PRIMARY KEY, host TEXT NOT NULL, dir TEXT NOT NULL, UNIQUE (host, dir));

CREATE TABLE entries (
    n BIGINT PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    early TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    title TEXT NOT NULL,
    parent TEXT NOT NULL,
    trial DOUBLE PRECISION,
    started DOUBLE PRECISION,
    duration DOUBLE PRECISION,
    state TEXT NOT NULL,
    verdict TEXT NOT NULL,
    simulated INTEGER NOT NULL,
    predicted INTEGER NOT NULL,
    imported TEXT NOT NULL,
    engine TEXT NOT NULL,
    engine_version TEXT NOT NULL,
    image TEXT NOT NULL,
    model TEXT NOT NULL,
    hardware TEXT NOT NULL,
    gpus DOUBLE PRECISION,
    config TEXT NOT NULL,
    workload TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    request_rate DOUBLE PRECISION,
    max_concurrency DOUBLE PRECISION,
    build TEXT NOT NULL,
    host TEXT NOT NULL,
    version TEXT NOT NULL,
    bytes DOUBLE PRECISION NOT NULL,
    pinned INTEGER NOT NULL,
    fault TEXT NOT NULL,
    sum TEXT NOT NULL,
    changed BIGINT NOT NULL,
    note TEXT NOT NULL,
    command TEXT NOT NULL,
    search TEXT NOT NULL
);
CREATE INDEX entries_started ON entries (started);
CREATE INDEX entries_config ON entries (config);
CREATE INDEX entries_early ON entries (early);

-- What a list shows of an entry, as JSON.
CREATE TABLE documents (entry BIGINT PRIMARY KEY, facts TEXT NOT NULL, marks TEXT NOT NULL);

CREATE TABLE places (
    root BIGINT NOT NULL,
    path TEXT NOT NULL,
    entry BIGINT NOT NULL,
    kind TEXT NOT NULL,
    parent TEXT NOT NULL,
    stamp TEXT NOT NULL,
    calls_size BIGINT NOT NULL,
    calls_mod BIGINT NOT NULL,
    PRIMARY KEY (root, path)
);
CREATE INDEX places_entry ON places (entry);

CREATE TABLE metrics (n BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE);

CREATE TABLE figures (
    entry BIGINT NOT NULL,
    metric BIGINT NOT NULL,
    value DOUBLE PRECISION NOT NULL,
    low DOUBLE PRECISION,
    high DOUBLE PRECISION,
    PRIMARY KEY (metric, entry)
) WITHOUT ROWID;
CREATE INDEX figures_entry ON figures (entry);

CREATE TABLE labels (entry BIGINT NOT NULL, kind TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (entry, kind, value));

CREATE TABLE reductions (entry BIGINT PRIMARY KEY, format BIGINT NOT NULL, content BLOB NOT NULL);
