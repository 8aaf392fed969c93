#!/bin/sh
# scripts/smoke.sh PROGRAM: a built perflab does what works on every system: it measures a simulated
# server, reports, compares, audits, predicts and writes a study. It ends with an error at the first
# that does not.
set -eu
perflab=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
test -e "$perflab" || perflab=$perflab.exe
dir=$(mktemp -d)
cd "$dir"
"$perflab" version
"$perflab" doctor > doctor.txt
"$perflab" predict --gpu h100-sxm --num-prompts 50 -- vllm serve Qwen/Qwen3-8B > predict.txt
"$perflab" sim --gpu h100-sxm -- vllm serve Qwen/Qwen3-8B --port 18000 > sim.txt 2>&1 &
sim=$!
trap 'kill $sim; cd /; rm -r "$dir"' EXIT
# A verdict of void, 4, is of the machine: it is no fault of the program.
measure() { "$perflab" bench --base-url http://127.0.0.1:18000 --model Qwen/Qwen3-8B --ready-check-timeout-sec 60 --num-prompts 20 --random-input-len 100 --random-output-len 10 --request-rate 20 --out "$1" > bench.txt || test $? = 4; }
measure a
measure b
"$perflab" report a > report.txt
"$perflab" compare a b > compare.txt || test $? = 4 || test $? = 3
"$perflab" audit a/summary.json || test $? = 3
"$perflab" init --yes --runtime predicted --engine vllm --gpu h100-sxm --gpus 1 --model Qwen/Qwen3-8B
"$perflab" tune study.yaml --check
grep -q 'SIMULATED' report.txt
echo "smoke: all well"
