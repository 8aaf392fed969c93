"""A byte-level BPE tokenizer, trained on text that every Python carries.

Shared by the scripts beside it, which make models without a hub.
"""

import pathlib
import sys
import sysconfig
from pydoc_data import topics

import tokenizers

END, START, STOP = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
CONTROL = [END, START, STOP]

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def corpus():
    """Python's language reference and the modules of its standard library."""
    for name in sorted(topics.topics):
        yield topics.topics[name]
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("*.py")):
        if not path.name.startswith("_sysconfig"):  # differs from build to build
            yield path.read_text(encoding="utf-8", errors="ignore")


def train(size):
    """A byte-level BPE tokenizer of GPT-2's kind with exactly size tokens."""
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    t.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.decoder = tokenizers.decoders.ByteLevel()
    t.train_from_iterator(corpus(), tokenizers.trainers.BpeTrainer(
        vocab_size=size, special_tokens=CONTROL, show_progress=False,
        initial_alphabet=sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())))
    if t.get_vocab_size() != size:
        sys.exit(f"the text gives only {t.get_vocab_size()} tokens: use --vocab {t.get_vocab_size()} or less")
    return t
