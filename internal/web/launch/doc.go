// Package launch keeps a queue of studies and benches that run as processes of their own. Each
// has a directory; the server that started it may be killed, and the next one finds it there,
// shows it and can stop it.
//
//	q, err := launch.Open("lab/launches", launch.Options{AtOnce: 2, Allow: list})
//	l, err := q.Submit(launch.Request{Who: "ada", Study: &launch.StudyRequest{Text: text}})
//	version, err := q.Wait(ctx, 0) // until something has changed
//	chunk, err := q.Tail(l.ID, launch.Stderr, 0)
//	l, err = q.Stop(l.ID, "ada") // what was measured is kept
//	q.Close()                    // and everything goes on
//
// A launch is perflab tune or perflab bench below a supervisor: this program once more, in a
// session of its own. The supervisor is there to know how the child ends when no server is: a
// child that is killed can write nothing itself, and a shell cannot write a file that a power
// cut leaves whole. Who writes what in the directory of a launch:
//
//	launch.json     the server: what was asked for, and all that is known of it
//	study.yaml      the server: the study's text
//	alive           held by the supervisor for as long as it lives
//	job-1.json      the server, before the first start: what the supervisor shall start
//	process-1.json  the supervisor: the child, before it does anything
//	stop-1.json     the server: how urgently the child shall end
//	exit-1.json     the supervisor: how it ended
//	stdout.log, stderr.log
//
// Invariants. Everything is on the disk before it is done, so that a kill at any instant leaves
// what can be gone on from: a launch that had begun is never begun twice, and one that had not
// is begun by the next server. A process is known by number, start and boot, so that a later
// one of the same number is none of ours. One server runs the queue of a directory; others
// show it, and one of them takes over when that one is gone. What a launch may use is decided
// by package allow when it is asked for, and again when it is started.
//
// Deliberately absent: Windows, where nothing can outlive its parent and be asked to stop; a
// second machine's processes, which an agent would have to start.
package launch
