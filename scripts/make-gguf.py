#!/usr/bin/env python3
"""Make small GGUF models with random weights, for trying llama.cpp without a model hub.

    python3 -m venv venv && venv/bin/pip install gguf tokenizers
    venv/bin/python scripts/make-gguf.py --out models

The architecture is Llama's: attention with grouped keys and values, RoPE, SwiGLU.
The weights are noise, the same for a seed, so what the model writes is words
without sense; a server works on it exactly as hard as on a trained model of that
size. The vocabulary is real: a byte-level BPE, trained here on the text of Python's
own standard library and language reference. Of one model as many files are written as there are
quantisations, and tokenizer.json beside them for clients that count tokens.

The same Python, the same packages and the same options give the same bytes.
"""

import argparse
import hashlib
import json
import pathlib
import time

import gguf
import numpy as np

from bpe import CHAT_TEMPLATE, CONTROL, END, STOP, train

FILE_TYPES = {
    "f32": (gguf.GGMLQuantizationType.F32, gguf.LlamaFileType.ALL_F32),
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
    "q5_0": (gguf.GGMLQuantizationType.Q5_0, gguf.LlamaFileType.MOSTLY_Q5_0),
    "q4_0": (gguf.GGMLQuantizationType.Q4_0, gguf.LlamaFileType.MOSTLY_Q4_0),
}


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."), help="directory to write to (default: here)")
    p.add_argument("--name", default="tiny-llama", help="beginning of the file names (default: %(default)s)")
    p.add_argument("--types", default="f16,q8_0,q4_0", help="quantisations, of %s (default: %%(default)s)" % ", ".join(FILE_TYPES))
    p.add_argument("--layers", type=int, default=8, help="(default: %(default)s)")
    p.add_argument("--hidden", type=int, default=512, help="width of the residual stream (default: %(default)s)")
    p.add_argument("--ffn", type=int, default=1536, help="width of the feed-forward (default: %(default)s)")
    p.add_argument("--heads", type=int, default=8, help="query heads (default: %(default)s)")
    p.add_argument("--kv-heads", type=int, default=4, help="key and value heads (default: %(default)s)")
    p.add_argument("--vocab", type=int, default=16384, help="tokens of the vocabulary (default: %(default)s)")
    p.add_argument("--context", type=int, default=8192, help="tokens the model claims to be made for (default: %(default)s)")
    p.add_argument("--seed", type=int, default=1, help="of the weights (default: %(default)s)")
    o = p.parse_args()
    o.types = o.types.split(",")
    for t in o.types:
        if t not in FILE_TYPES:
            p.error(f"--types {t} is not known: use {', '.join(FILE_TYPES)}")
    for name in ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab", "context"):
        if getattr(o, name) < 1:
            p.error(f"--{name.replace('_', '-')} is {getattr(o, name)}: give at least 1")
    if o.hidden % o.heads or (o.hidden // o.heads) % 2:
        p.error(f"--hidden {o.hidden} over --heads {o.heads} is no even head size")
    if o.heads % o.kv_heads:
        p.error(f"--heads {o.heads} is no multiple of --kv-heads {o.kv_heads}")
    if o.hidden % 32 or o.ffn % 32:
        p.error("--hidden and --ffn must be multiples of 32, the block of the quantised formats")
    if o.vocab < 256 + len(CONTROL):
        p.error(f"--vocab {o.vocab} is too few: 256 bytes and {len(CONTROL)} control tokens are {256 + len(CONTROL)}")
    return o


def weights(o):
    """The tensors by name, as float32, drawn in this order from one stream."""
    rng = np.random.Generator(np.random.PCG64(o.seed))
    kv = o.hidden // o.heads * o.kv_heads

    def normal(rows, columns, gain=1.0):
        return rng.standard_normal((rows, columns), dtype=np.float32) * np.float32(gain / columns**0.5)

    ones = np.ones(o.hidden, dtype=np.float32)
    yield "token_embd.weight", normal(o.vocab, o.hidden, o.hidden**0.5)
    for i in range(o.layers):
        # A small output gain keeps the sum over all layers as large as one embedding.
        out = (2 * o.layers) ** -0.5
        yield f"blk.{i}.attn_norm.weight", ones
        yield f"blk.{i}.attn_q.weight", normal(o.hidden, o.hidden)
        yield f"blk.{i}.attn_k.weight", normal(kv, o.hidden)
        yield f"blk.{i}.attn_v.weight", normal(kv, o.hidden)
        yield f"blk.{i}.attn_output.weight", normal(o.hidden, o.hidden, out)
        yield f"blk.{i}.ffn_norm.weight", ones
        yield f"blk.{i}.ffn_gate.weight", normal(o.ffn, o.hidden)
        yield f"blk.{i}.ffn_up.weight", normal(o.ffn, o.hidden)
        yield f"blk.{i}.ffn_down.weight", normal(o.hidden, o.ffn, out)
    yield "output_norm.weight", ones
    yield "output.weight", normal(o.vocab, o.hidden, 3.0)


def describe(w, o, file_type):
    """Writes architecture and sizes into the file's metadata."""
    w.add_name(o.name)
    w.add_file_type(file_type)
    w.add_context_length(o.context)
    w.add_embedding_length(o.hidden)
    w.add_block_count(o.layers)
    w.add_feed_forward_length(o.ffn)
    w.add_head_count(o.heads)
    w.add_head_count_kv(o.kv_heads)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_rope_dimension_count(o.hidden // o.heads)
    w.add_rope_freq_base(10000.0)
    w.add_vocab_size(o.vocab)
    w.add_quantization_version(gguf.GGML_QUANT_VERSION)


def add_tokenizer(w, model):
    """Writes vocabulary, merges and chat template into the file's metadata."""
    ids = model["model"]["vocab"]
    tokens = sorted(ids, key=ids.get)
    w.add_tokenizer_model("gpt2")
    w.add_tokenizer_pre("gpt-2")
    w.add_token_list(tokens)
    w.add_token_types([gguf.TokenType.CONTROL if t in CONTROL else gguf.TokenType.NORMAL for t in tokens])
    w.add_token_merges([m if isinstance(m, str) else " ".join(m) for m in model["model"]["merges"]])
    w.add_eos_token_id(ids[STOP])
    w.add_eot_token_id(ids[STOP])
    w.add_pad_token_id(ids[END])
    w.add_bos_token_id(ids[END])
    w.add_add_bos_token(False)
    w.add_chat_template(CHAT_TEMPLATE)


def write(path, o, kind, model):
    """Writes one quantisation and returns its number of parameters. Vectors stay float32."""
    tensor_type, file_type = FILE_TYPES[kind]
    w = gguf.GGUFWriter(path, "llama")
    describe(w, o, file_type)
    add_tokenizer(w, model)
    count = 0
    for name, data in weights(o):
        count += data.size
        one = gguf.GGMLQuantizationType.F32 if data.ndim == 1 else tensor_type
        w.add_tensor(name, gguf.quants.quantize(data, one), raw_dtype=one)
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return count


def main():
    o = options()
    o.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    text = train(o.vocab).to_str(pretty=False)
    model = json.loads(text)
    (o.out / f"{o.name}-tokenizer.json").write_text(text, encoding="utf-8")
    for kind in o.types:
        path = o.out / f"{o.name}-{kind}.gguf"
        count = write(path, o, kind, model)
        digest = hashlib.file_digest(path.open("rb"), "sha256").hexdigest()
        print(f"{path}  {count / 1e6:.1f} M parameters  {path.stat().st_size / 1e6:.1f} MB  sha256 {digest[:16]}")
    print(f"{time.monotonic() - begun:.1f} s")


if __name__ == "__main__":
    main()
