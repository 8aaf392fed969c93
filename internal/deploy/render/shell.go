package render

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"perflab/internal/engine"
	"perflab/internal/engine/cluster"
)

// shell writes one bash program: a script of one's own, or a Slurm job.
type shell struct {
	plan  Plan
	slurm bool
	b     strings.Builder
}

// Script is a bash script that starts the deployment, waits until every replica is
// ready, says how to measure it, and ends all that it started when it is interrupted,
// told to stop, or one process ends. Processes of other machines are started by ssh,
// and end too when the connection is lost.
func Script(p Plan) (string, error) {
	for _, n := range p.Nodes {
		if n.Addr == Addr(n.Name) {
			return "", missing("node %s has no address: name the hosts", n.Name)
		}
	}
	s := shell{plan: p}
	all, err := p.processes(false)
	if err != nil {
		return "", err
	}
	s.line("#!/usr/bin/env bash")
	s.b.WriteString(p.head("", "Usage: bash "+p.Name+".sh          starts it, and ends it at Ctrl-C", "       bash "+p.Name+".sh stop     ends one that runs elsewhere"))
	s.line("set -euo pipefail")
	s.line("set -m # each process leads a group of its own, by which it is ended whole")
	s.line("dir=${PERFLAB_RUN_DIR:-$PWD/%s-run} # logs and files, on every host", p.Name)
	s.line("timeout_s=%d grace_s=${GRACE_S:-20}", p.timeoutS())
	s.needs(secrets(all))
	s.b.WriteString(commonShell)
	if slices.ContainsFunc(slices.Concat(all...), func(q process) bool { return q.node != "" }) {
		s.b.WriteString(remoteShell)
	} else {
		s.b.WriteString(localShell)
	}
	s.b.WriteString(controlShell)
	s.start(all)
	s.b.WriteString(waitShell)
	return s.b.String(), nil
}

func (s *shell) line(format string, args ...any) { fmt.Fprintf(&s.b, format+"\n", args...) }

// needs stops early where the reader's environment lacks a secret.
func (s *shell) needs(names []string) {
	for _, name := range names {
		s.line(": \"${%s:?set %[1]s in the environment: its value is not written down here}\"", name)
	}
}

// start launches every process, each waiting for what the one before it says. Engines behind
// routers load at the same time, in all replicas; the routers come when they are ready.
func (s *shell) start(all [][]process) {
	var engines, routers []process
	for i, list := range all {
		s.line("\n# replica %d", i)
		for _, q := range list {
			switch {
			case q.router:
				routers = append(routers, q)
				continue
			case q.serves:
				engines = append(engines, q)
			}
			s.process(q)
		}
	}
	s.line("")
	for _, q := range engines {
		s.await(q)
	}
	if len(routers) > 0 {
		s.line("\n# routers")
		if s.slurm && s.plan.ownImage() {
			s.line("image=%s", engine.Quote(s.plan.Router))
		}
		for _, q := range routers {
			s.process(q)
		}
		s.line("")
	}
	var urls []string
	for _, list := range all {
		urls = append(urls, s.await(list[len(list)-1]))
	}
	s.line("echo %s", double("ready: "+strings.Join(urls, " ")))
	if s.plan.Bench != "" {
		s.line("echo %s", double("measure it: "+s.plan.bench(urls...)))
	}
}

// await waits until a process that serves is ready, and returns where it is reached.
func (s *shell) await(q process) (url string) {
	url = "http://" + s.host(q) + ":" + strconv.Itoa(q.port)
	s.line("await_health %s %s", q.name, double(url+s.plan.health()))
	return url
}

// double puts a text in double quotes in which only ${...} expands.
func double(text string) string {
	var b strings.Builder
	for i, r := range text {
		if strings.ContainsRune("\"`\\", r) || r == '$' && !strings.HasPrefix(text[i:], "${addr[") {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return `"` + b.String() + `"`
}

// host is where the serving process is reached.
func (s *shell) host(q process) string {
	i := s.plan.node(q.node)
	if i < 0 {
		return "127.0.0.1"
	}
	addr := s.plan.Nodes[i].Addr
	switch {
	case addr == Addr(q.node):
		return fmt.Sprintf("${addr[%d]}", i)
	case addr == "":
		addr = q.node
	}
	if strings.Contains(addr, ":") {
		return "[" + addr + "]"
	}
	return addr
}

// process writes the files and the launch of one process.
func (s *shell) process(q process) {
	where := engine.Quote(q.node)
	for _, f := range q.files {
		s.line("put_file %s %s %s", where, s.word(word{{file, f.Name}}, q), engine.Quote(f.Text))
	}
	parts := []string{"launch", q.name, where}
	argv := q.argv
	if s.slurm {
		var step string
		if step, argv = s.step(q); step != "" {
			parts = []string{"launch", q.name, step}
		}
	}
	env := q.visible()
	if s.slurm && len(argv) < len(q.argv) {
		env = q.env // srun gives each rank its device
	}
	for _, v := range env {
		parts = append(parts, v.name+"="+s.word(v.value, q))
	}
	for _, w := range argv {
		parts = append(parts, s.word(w, q))
	}
	s.b.WriteString(wrap(parts))
	switch {
	case q.once:
		s.line("await_end %s", q.name)
	case q.up != "":
		s.line("await_text %s %s", q.name, engine.Quote(q.up))
	}
}

// wrap breaks a command over lines.
func wrap(words []string) string {
	const width = 110
	var b strings.Builder
	at := 0
	for i, w := range words {
		if i > 0 && at+1+len(w) > width {
			b.WriteString(" \\\n  ")
			at = 2
		} else if i > 0 {
			b.WriteByte(' ')
			at++
		}
		b.WriteString(w)
		at += len(w)
	}
	return b.String() + "\n"
}

// word is a word as bash reads it.
func (s *shell) word(w word, q process) string {
	fileAt := func(name string) string { return `"$dir"/` + engine.Quote(q.name+"."+name) }
	addressOf := func(node string) string {
		if !s.slurm {
			return ""
		}
		return fmt.Sprintf(`"${addr[%d]}"`, s.plan.node(node))
	}
	return w.quoted(fileAt, addressOf)
}

// commonShell is what a script and a Slurm job share: waiting, and ending what was
// started. Waiting is done in the background, so that a signal is taken at once. Nothing that
// runs while traps are set uses $(...) or <(...): where a signal comes while bash 5.2 reads one, it
// takes the trap's text for the rest of it, and ends with a syntax error.
const commonShell = `
names=() pids=()

started() { names+=("$1") pids+=("$2"); }
pause() { sleep "$1" & wait "$!" || true; }

find_pid() { # NAME: its process in pid
  local i
  pid=
  for i in "${!names[@]}"; do
    if [ "${names[i]}" = "$1" ]; then pid=${pids[i]}; fi
  done
}

fail() {
  echo "$1" >&2
  if [ -n "${2:-}" ]; then tail -n 20 "$dir/$2.log" >&2 || true; fi
  exit 1
}

still() { # NAME SINCE WHAT: it runs, and there is time left
  find_pid "$1"
  kill -0 "$pid" 2>/dev/null || fail "$1 ended before $3; the end of its log:" "$1"
  [ $((SECONDS - $2)) -lt "$timeout_s" ] || fail "$1: $timeout_s s passed before $3; the end of its log:" "$1"
}

await_text() {
  local since=$SECONDS
  until grep -qF -- "$2" "$dir/$1.log" 2>/dev/null; do
    still "$1" "$since" "it printed '$2'"
    pause 0.5
  done
}

await_end() { # it is to end by itself, and then counts no longer
  local i
  find_pid "$1"
  wait "$pid" || fail "$1 failed; the end of its log:" "$1"
  for i in "${!names[@]}"; do
    if [ "${names[i]}" = "$1" ]; then
      names=("${names[@]:0:i}" "${names[@]:i+1}") pids=("${pids[@]:0:i}" "${pids[@]:i+1}")
      return
    fi
  done
}

await_health() {
  local since=$SECONDS
  until { curl -fsS -o /dev/null --max-time 5 "$2" 2>/dev/null & wait "$!"; }; do
    still "$1" "$since" "it was ready at $2"
    pause 0.5
  done
}

end_all() { # the last first; what does not end in time is killed
  local i left signal=TERM since=$SECONDS
  while true; do
    left=0
    for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
      if kill -0 -- "-${pids[i]}" 2>/dev/null; then
        left=1
        if [ -n "$signal" ]; then kill "-$signal" -- "-${pids[i]}" 2>/dev/null || true; fi
      fi
    done
    if [ "$left" = 0 ] || [ $((SECONDS - since)) -gt $((grace_s + 10)) ]; then return 0; fi # else the status of before the trap
    signal=
    if [ $((SECONDS - since)) -ge "$grace_s" ]; then signal=KILL; fi
    sleep 0.2
  done
}
`

// localShell starts a process on this machine.
const localShell = `
launch() { # NAME '' KEY=value... COMMAND...
  local name=$1
  shift 2
  env "$@" >"$dir/$name.log" 2>&1 </dev/null &
  started "$name" "$!"
}

put_file() { printf '%s' "$3" >"$2"; }
`

// remoteShell starts processes on other machines too. The command goes over standard
// input, where no list of processes shows its environment; when that input ends, as
// with a lost connection, what was started is ended.
const remoteShell = `
IFS= read -r -d '' remote <<'REMOTE' || true
IFS= read -r line || exit 1
eval "set -- $line"
exec 3<&0
set -m
env "$@" </dev/null 3<&- & p=$!
{ while IFS= read -r _ <&3; do :; done; kill -TERM -- "-$p"; sleep 10; kill -KILL -- "-$p"; } 2>/dev/null & w=$!
exec 3<&-
trap "kill -TERM -- -$p" TERM HUP INT
wait "$p"; s=$?
while kill -0 "$p" 2>/dev/null; do wait "$p"; s=$?; done # a signal cuts a wait short
kill -KILL -- "-$p" 2>/dev/null
kill -TERM -- "-$w" 2>/dev/null
exit "$s"
REMOTE

launch() { # NAME HOST KEY=value... COMMAND...
  local name=$1 host=$2 line
  shift 2
  if [ -z "$host" ]; then
    env "$@" >"$dir/$name.log" 2>&1 </dev/null &
    started "$name" "$!"
    return
  fi
  rm -f "$dir/$name.in"
  mkfifo -m 600 "$dir/$name.in"
  exec {line}<>"$dir/$name.in"
  ssh -o BatchMode=yes -o ServerAliveInterval=15 "$host" "bash -c '$remote'" <&"$line" >"$dir/$name.log" 2>&1 &
  started "$name" "$!"
  { printf '%q ' "$@"; echo; } >&"$line"
}

put_file() { # HOST PATH TEXT
  local to_dir to
  if [ -z "$1" ]; then
    printf '%s' "$3" >"$2"
  else
    printf -v to_dir '%q' "$dir"
    printf -v to '%q' "$2"
    printf '%s' "$3" | ssh -o BatchMode=yes "$1" "mkdir -p $to_dir && cat >$to"
  fi
}
`

// controlShell is stop, and the end.
const controlShell = `
begun_at() { # when a process began: its number alone may be another's by now
  if [ -r "/proc/$1/stat" ]; then
    sed -n 's/.*) \([^ZX]\)/\1/p' "/proc/$1/stat" | cut -d ' ' -f 20
  else
    ps -o lstart= -p "$1" 2>/dev/null || true
  fi
}

finish() {
  local status=$?
  trap - EXIT INT TERM HUP
  end_all
  rm -f "$dir/pid"
  exit "$status"
}

mkdir -p "$dir"
mine= when=
if [ -f "$dir/pid" ]; then
  { read -r mine; read -r when; } <"$dir/pid" || true
  if [ -z "$mine" ] || [ -z "$when" ] || [ "$(begun_at "$mine")" != "$when" ]; then mine=; fi
fi
case ${1:-start} in
  stop)
    if [ -z "$mine" ]; then fail "nothing of $dir runs"; fi
    kill -TERM "$mine"
    while [ "$(begun_at "$mine")" = "$when" ]; do pause 0.2; done
    exit
    ;;
  start) if [ -n "$mine" ]; then fail "process $mine runs it already: stop that first"; fi ;;
  *) fail "usage: $0 [start|stop]" ;;
esac
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
{ echo "$$"; begun_at "$$"; } >"$dir/pid"
`

// waitShell ends when a process has ended, for figures over what is left are void.
const waitShell = `
while true; do
  for name in "${names[@]}"; do
    find_pid "$name"
    kill -0 "$pid" 2>/dev/null || fail "$name has ended; the end of its log:" "$name"
  done
  pause 1
done
`

// step is the place of a process in the job, and its command as srun starts it.
func (s *shell) step(q process) (string, []word) {
	at := slices.IndexFunc(q.argv, func(w word) bool { return len(w) == 1 && w[0].text == cluster.MPILauncher })
	if at < 0 {
		return fmt.Sprintf("\"--nodes=1 --ntasks=1 -w ${node[%d]}\"", max(0, s.plan.node(q.node))), q.argv
	}
	var nodes []string
	for _, w := range q.argv[:at] {
		for _, p := range w {
			if p.kind == address {
				nodes = append(nodes, fmt.Sprintf("${node[%d]}", s.plan.node(p.text)))
			}
		}
	}
	per := len(q.devices)
	return fmt.Sprintf("\"--mpi=pmix --nodes=%d --ntasks=%d --ntasks-per-node=%d -w %s\"", len(nodes), len(nodes)*per, per, strings.Join(nodes, ",")), q.argv[at:]
}
