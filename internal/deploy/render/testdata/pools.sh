#!/usr/bin/env bash
# Command: CUDA_VISIBLE_DEVICES=0 VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=5600 HF_TOKEN='[redacted]' vllm serve m --max-num-seqs 64 --max-num-batched-tokens 16384 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' --host 127.0.0.1 --port 8100
# CUDA_VISIBLE_DEVICES=1 VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=5616 HF_TOKEN='[redacted]' vllm serve m --max-num-seqs 64 --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' --host 127.0.0.1 --port 8101
# vllm-router --vllm-pd-disaggregation --prefill http://127.0.0.1:8100 --decode http://127.0.0.1:8101 --policy random --api-key '[redacted]' --host 127.0.0.1 --port 8000 --prometheus-port 29000
# 2 replicas of 2 GPUs
#
# Usage: bash apart.sh          starts it, and ends it at Ctrl-C
#        bash apart.sh stop     ends one that runs elsewhere
set -euo pipefail
set -m # each process leads a group of its own, by which it is ended whole
dir=${PERFLAB_RUN_DIR:-$PWD/apart-run} # logs and files, on every host
timeout_s=900 grace_s=${GRACE_S:-20}
: "${API_KEY:?set API_KEY in the environment: its value is not written down here}"
: "${HF_TOKEN:?set HF_TOKEN in the environment: its value is not written down here}"

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

launch() { # NAME '' KEY=value... COMMAND...
  local name=$1
  shift 2
  env "$@" >"$dir/$name.log" 2>&1 </dev/null &
  started "$name" "$!"
}

put_file() { printf '%s' "$3" >"$2"; }

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
launch replica-0.prefill-0 '' VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=20016 \
  HF_TOKEN="${HF_TOKEN}" CUDA_VISIBLE_DEVICES=0 vllm serve m --max-num-seqs 64 --max-num-batched-tokens 16384 \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' --host 127.0.0.1 --port \
  20000
launch replica-0.decode-0 '' VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=20048 \
  HF_TOKEN="${HF_TOKEN}" CUDA_VISIBLE_DEVICES=1 vllm serve m --max-num-seqs 64 --kv-transfer-config \
  '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' --host 127.0.0.1 --port 20032

# replica 1
launch replica-1.prefill-0 '' VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=20096 \
  HF_TOKEN="${HF_TOKEN}" CUDA_VISIBLE_DEVICES=2 vllm serve m --max-num-seqs 64 --max-num-batched-tokens 16384 \
  --kv-transfer-config '{"kv_connector":"NixlConnector","kv_role":"kv_producer"}' --host 127.0.0.1 --port \
  20080
launch replica-1.decode-0 '' VLLM_NIXL_SIDE_CHANNEL_HOST=127.0.0.1 VLLM_NIXL_SIDE_CHANNEL_PORT=20128 \
  HF_TOKEN="${HF_TOKEN}" CUDA_VISIBLE_DEVICES=3 vllm serve m --max-num-seqs 64 --kv-transfer-config \
  '{"kv_connector":"NixlConnector","kv_role":"kv_consumer"}' --host 127.0.0.1 --port 20112

await_health replica-0.prefill-0 "http://127.0.0.1:20000/health"
await_health replica-0.decode-0 "http://127.0.0.1:20032/health"
await_health replica-1.prefill-0 "http://127.0.0.1:20080/health"
await_health replica-1.decode-0 "http://127.0.0.1:20112/health"

# routers
launch replica-0 '' HF_TOKEN="${HF_TOKEN}" CUDA_VISIBLE_DEVICES='' vllm-router --vllm-pd-disaggregation \
  --prefill http://127.0.0.1:20000 --decode http://127.0.0.1:20032 --policy random --api-key "${API_KEY}" \
  --host 127.0.0.1 --port 8000 --prometheus-port 20064
launch replica-1 '' HF_TOKEN="${HF_TOKEN}" CUDA_VISIBLE_DEVICES='' vllm-router --vllm-pd-disaggregation \
  --prefill http://127.0.0.1:20080 --decode http://127.0.0.1:20112 --policy random --api-key "${API_KEY}" \
  --host 127.0.0.1 --port 8001 --prometheus-port 20144

await_health replica-0 "http://127.0.0.1:8000/health"
await_health replica-1 "http://127.0.0.1:8001/health"
echo "ready: http://127.0.0.1:8000 http://127.0.0.1:8001"
echo "measure it: perflab bench --base-url http://127.0.0.1:8000,http://127.0.0.1:8001"

while true; do
  for name in "${names[@]}"; do
    find_pid "$name"
    kill -0 "$pid" 2>/dev/null || fail "$name has ended; the end of its log:" "$name"
  done
  pause 1
done
