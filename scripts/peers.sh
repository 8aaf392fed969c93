#!/bin/sh
# Install the load generators that internal/truth's BenchmarkPeers holds against
# the truth server: each from PyPI, in an environment of its own below a directory.
#
#   scripts/peers.sh /var/tmp/peers
#   PERFLAB_PEERS=/var/tmp/peers go test ./internal/truth -run '^$' -bench Peers -benchtime 1x -count 2
#
# It needs Linux, Python 3.12 (PYTHON names it) and 20 GB: three of the clients
# bring PyTorch with its CUDA libraries. No GPU is used.
set -eu
dir=${1:?"give the directory to install into"}
python=${PYTHON:-python3.12}
here=$(dirname "$0")

mkdir -p "$dir/tokenizer"
dir=$(cd "$dir" && pwd)
"$python" -m venv "$dir/uv"
"$dir/uv/bin/pip" install --quiet uv==0.13.9
export UV_CACHE_DIR="$dir/cache" # beside the environments, which then share files with it

install() { # name, then what uv is to install
	name=$1
	shift
	"$dir/uv/bin/uv" venv --quiet --clear --python "$python" "$dir/$name"
	"$dir/uv/bin/uv" pip install --quiet --python "$dir/$name/bin/python" "$@"
}

# vLLM asks for a certifi that not every mirror has; a client over http needs none.
echo certifi >"$dir/overrides.txt"
install vllm vllm==0.33.0 --override "$dir/overrides.txt"
install sglang sglang==0.5.23
install guidellm guidellm==0.8.1
install aiperf aiperf==0.13.0

# Prompts are of letters, so that every client counts as many tokens as it asked for.
cp "$here/../internal/bench/testdata/tokenizer.json" "$dir/tokenizer/"
echo '{"tokenizer_class":"PreTrainedTokenizerFast"}' >"$dir/tokenizer/tokenizer_config.json"
echo '{"model_type":"gpt2"}' >"$dir/tokenizer/config.json"

# The first start of a Python program compiles it, which is no client's fault.
"$dir/vllm/bin/vllm" bench serve --help >/dev/null
"$dir/sglang/bin/python" -m sglang.bench_serving --help >/dev/null
"$dir/guidellm/bin/guidellm" run --help >/dev/null
"$dir/aiperf/bin/aiperf" profile --help >/dev/null
