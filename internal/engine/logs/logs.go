// Package logs reads what engines print: why one failed, with the class of the
// failure and the change of parameters that mends it, and what it says of itself,
// such as the size of its KV cache.
//
//	failure, ok := logs.Diagnose("vllm", log)  // failure.Class == "kv-memory"
//	facts := logs.Read("vllm", log)            // facts.Values["kv_tokens"] == 434231
//
// Invariants: a log is read in one pass, whatever its length; a failure is a line of
// the log; every class and every fact is on a list with its meaning. A line that often
// follows from another cause gives way to one that states a cause. Absent: reading
// files, and lines that only new versions print, until a recording has them.
package logs
