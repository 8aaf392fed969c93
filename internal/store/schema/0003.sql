-- Facets count what lies in nothing else, in one order of all their facts: the index has all that is counted.
CREATE INDEX entries_facets ON entries (parent, kind, verdict, state, engine, model, hardware, workload, simulated, started);
