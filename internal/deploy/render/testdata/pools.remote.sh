#!/usr/bin/env bash
# Command: CUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server --model-path m --tp-size 2 --api-key '[redacted]' --enable-metrics --disaggregation-mode prefill --host 127.0.0.1 --port 8100 --disaggregation-bootstrap-port 5600
# CUDA_VISIBLE_DEVICES=2,3 python3 -m sglang.launch_server --model-path m --tp-size 2 --api-key '[redacted]' --enable-metrics --disaggregation-mode decode --host 127.0.0.1 --port 8101
# python3 -m sglang_router.launch_router --pd-disaggregation --prefill http://127.0.0.1:8100 5600 --decode http://127.0.0.1:8101 --policy random --api-key '[redacted]' --host 127.0.0.1 --port 30000 --prometheus-port 29000
# 1 replica of 4 GPUs, over 2 machines
# KV caches go over the network that is chosen where they are sent, perhaps a slow one: --disaggregation-ib-device names another.
#
# Usage: bash apart.sh          starts it, and ends it at Ctrl-C
#        bash apart.sh stop     ends one that runs elsewhere
set -euo pipefail
set -m # each process leads a group of its own, by which it is ended whole
dir=${PERFLAB_RUN_DIR:-$PWD/apart-run} # logs and files, on every host
timeout_s=900 grace_s=${GRACE_S:-20}
: "${API_KEY:?set API_KEY in the environment: its value is not written down here}"

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

# replica 0
launch replica-0.prefill-0 a CUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server --model-path m --tp-size \
  2 --api-key "${API_KEY}" --enable-metrics --disaggregation-mode prefill --host 0.0.0.0 --port 20000 \
  --disaggregation-bootstrap-port 20016
launch replica-0.decode-0 b CUDA_VISIBLE_DEVICES=0,1 python3 -m sglang.launch_server --model-path m --tp-size \
  2 --api-key "${API_KEY}" --enable-metrics --disaggregation-mode decode --host 0.0.0.0 --port 20032

await_health replica-0.prefill-0 "http://10.0.0.1:20000/health"
await_health replica-0.decode-0 "http://10.0.0.2:20032/health"

# routers
launch replica-0 a CUDA_VISIBLE_DEVICES='' python3 -m sglang_router.launch_router --pd-disaggregation \
  --prefill http://10.0.0.1:20000 20016 --decode http://10.0.0.2:20032 --policy random --api-key "${API_KEY}" \
  --host 0.0.0.0 --port 8000 --prometheus-port 20048

await_health replica-0 "http://10.0.0.1:8000/health"
echo "ready: http://10.0.0.1:8000"
echo "measure it: perflab bench --base-url http://10.0.0.1:8000"

while true; do
  for name in "${names[@]}"; do
    find_pid "$name"
    kill -0 "$pid" 2>/dev/null || fail "$name has ended; the end of its log:" "$name"
  done
  pause 1
done
