#!/usr/bin/env python3
"""Makes what the tests compare with: texts, tokenizers, and the ids and
decoded texts that the reference library gives.

    pip install tokenizers==0.23.3
    python make.py .                       # the fixtures in this folder
    python make.py DIR --real [FILE...]    # want.gz beside each DIR/*/tokenizer.json,
                                           # with more texts, and the lines of the files
"""

import glob, gzip, json, os, random, struct, sys
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers,
                        pre_tokenizers, processors, trainers)

GPT2 = None  # ByteLevel's own
CL100K = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
QWEN2 = CL100K.replace("{1,3}", "")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
KIMI = (r"[\p{Han}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+"
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
        r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
DEEPSEEK = [r"\p{N}{1,3}", "[一-龥\u3040-ゟ゠-ヿ]+",
            "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+"
            "| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+"]
TIKTOKEN = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
            r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s")
ODD = r"^#+ |(?<=[a-z])(?=[A-Z])|(?:ab)+c|a*?b|\bx" .replace(r"|\bx", r"|[^\W\d_]{2,4}?|(?<!\s)-+|\x41\u00e9|.$")

HAND = [
    "", " ", "  ", "a", "\n", "\r\n", " \n ", "Hello, world!", "Hello  world", "   leading", "trailing   ",
    "I'm you're HE'S they'LL We'Ve i'd can't 'twas 'S 'T 'rE it\u2019s", "'\u017f 's\u017f k\u212a 'M'D'LL",
    "1 12 123 1234 12345 1234567890 3.14159 1,000,000 0x1F ½ ² ٣٤٥ ५६७ Ⅷ 〇 四", "a1b22c333d4444",
    "foo\r\nbar\r\n\r\nbaz\n\n\nqux\r\rend", "tab\tsep\t\tdouble \t mix\t \tend\t",
    "no\u00a0break\u00a0\u00a0space", "line\u2028sep para\u2029sep", "ideographic\u3000space\u3000\u3000x",
    "\u2000\u2001\u2002\u2003\u2004 \u2005\u2006\u2007\u2008\u2009\u200a \u202f\u205f\u1680 \u0085\x0b\x0c end",
    "zero\u200bwidth\u200cjoin\u200der\ufeffbom\u2060word",
    "👨‍👩‍👧‍👦 👩🏽‍💻 🏳️‍🌈 🇩🇪🇫🇷🇯 ☺️ ©‍☺ ©️ ™ ❤️‍🔥 1️⃣ #️⃣",
    "e\u0301 é A\u030a Å \u212b n\u0303\u0323 ṇ̃ q\u0307\u0323 q\u0323\u0307 \u1e9b\u0323 ﬁ ﬃ ﬆ ｆｕｌｌ ①②㎏ ㍿ \u0344 \u0340",
    "Z̴̡̛͓̱̈́̃a̸̧̛̲͕͑̔l̶̢̜̈́g̷̛̱̿o̸̧̦̅" + "\u0301\u0316\u0327" * 15 + " end", "\u0301start with a mark \u0301",
    "가각갂 한국어 \u1100\u1161\u11a8 \u1100\u1161 \uac00\u11a8 \u1112\u1161\u11ab\u1100\u116e\u11a8 \ua960\ud7b0\ud7cb",
    "日本語のテキスト。カタカナ ひらがな 漢字、中文字符！繁體中文", "mixed漢字andLatinかなKANA한글mixed",
    "हिन्दी क्षत्रिय न्द्र ক্ষ தமிழ் తెలుగు ಕನ್ನಡ മലയാളം සිංහල ไทยภาษา ลำ ລາວ မြန်မာ ខ្មែរ བོད་",
    "العربية مُحَمَّد עברית שָׁלוֹם فارسی اردو \u0600123 \u06dd45 \u070f",
    "Привет мир ПРИВЕТ Ёлка Ελληνικά ΟΔΥΣΣΕΥΣ ς Türkçe İstanbul ıI Straße GROẞ Ǆ ǅ ǆ ŉ",
    "def f(x):\n    return x**2  # comment\n\n\nclass A(B):\n\tpass\n", "if (a && b || !c) { x[i] += y->z; }  // ok",
    "https://example.com/a/b?c=d&e=f#g user@example.org C:\\path\\to\\file ~/x",
    '{"key": "value", "n": [1, 2.5e-3, null], "s": "\\u00e9\\n"}', "<html><b>bold</b>&amp;</html>",
    "CamelCaseWord snake_case_word kebab-case-word SCREAMING_CASE xHTTPServer2Go", "...!!!???---===***___///\\\\\\",
    "(((nested [brackets {here}])))", "“quotes” ‘single’ «guillemets» „low“ – en — em … bullet • ‰ € £ ¥ ₹",
    "\x00nul\x01\x02\x1b[31mred\x7f\x80\x9f ctrl", "\ufffd replacement \ufffe \uffff \ufdd0 nonchars \U0001fffe",
    "\ue000\uf8ff private \U000f0000\U0010fffd", "\u0378\u0379 unassigned \U0001f9ff\U0001fae9\U0001cc00 \u1c89\ua7cb\U00010d50",
    "\u0897\u1dfa\u1ac1\u0c3c a\u0898b\u0899 \U00011938\U00011935\U00011930 \U000105d2\u0307",
    "<s> </s> <unk> <pad> [CLS] [SEP] [UNK] [MASK] <|endoftext|> <|im_start|>user\nhi<|im_end|>",
    "x<|endoftext|>y  <|endoftext|>  z<|endoftext|><|endoftext|>", "<mask>  <mask>x <mask> y<mask>", "a<mask>b   <mask>   c",
    "foo word foo wordy sword word. WORD Word\tword", "the <|im_start <|im_start|>x|> <|", "tool_call<tool_call>\n{}</tool_call>",
    "▁ ▁▁ a▁b ▁start ▁▁▁ x ▁", "<0x41> <0x0A> <0xE2> <0x+1>", "Ġ Ċ ĠHello âĢĻ", "##ing ## un##able", "``quoted'' ''x`` ```code```",
    "``x", "  ``x", "ﬁx", "½x", "don 't do not ca n't I 'm he 's they 've we 're . ? ! , ' x", "supercalifragilisticexpialidocious" * 3,
    "a" * 300, "ab" * 200, " " * 100, "\n" * 70, "0" * 40, "ha" * 40 + "!", "é" * 80, "漢" * 80, "🎉" * 30, "\u0301" * 50,
    " a b c d e f g h i j k l m n o p q r s t u v w x y z ", "The quick brown fox jumps over the lazy dog. " * 4,
    "# Title\n\n## Sub\n\n- item 1\n- item 2\n\n```go\nfunc main() {}\n```\n", "|a|b|\n|---|---|\n|1|2|\n",
    "x = 1;\ty = 2;\r\n\r\n  z = 3; \r\n", "end with newline\n", "end with spaces   \n   ", "   \n\n   \n x", "\t\n \t\n\t x",
]

PIECES = (["'s", "'LL", "'re", " ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", ".", ",", "!", "/", "-", "_", "'", '"', "(", "▁",
           "the", "The", "THE", "ing", "un", "hello", "World", "abc", "ABC", "aB", "1", "42", "2024", "３", "é", "e\u0301", "ß", "İ", "Ж", "ж",
           "漢", "字", "か", "カ", "한", "\u1112\u1161\u11ab", "ا", "ש", "ก", "ำ", "क", "\u094d", "ष", "😀", "\u200d", "👩", "\ufe0f", "🇩", "\u0301",
           "\u0327", "\u0345", "<|endoftext|>", "<mask>", "<s>", "word", "ﬁ", "①", "\u0600", "©", "\x00", "\x07", "\ufffd", "``"])


def randoms(rng, n):
    out = []
    for i in range(n):
        if i % 3 == 0:
            out.append("".join(rng.choice(PIECES) for _ in range(rng.randint(1, 25))))
        elif i % 3 == 1:
            low = rng.choice([0x20, 0xa0, 0x250, 0x300, 0x400, 0x590, 0x900, 0xe00, 0x1100, 0x1e00, 0x2000, 0x3000, 0xa000,
                              0xfb00, 0x10000, 0x11000, 0x1d400, 0x1f300, 0xe0000])
            out.append("".join(chr(low + rng.randrange(0x180)) if rng.random() < 0.8 else rng.choice(PIECES)
                               for _ in range(rng.randint(1, 30))))
        else:
            s = ""
            while len(s) < rng.randint(1, 24):
                c = rng.randrange(0x110000 if rng.random() < 0.3 else 0x3000)
                s += chr(c) if not 0xD800 <= c <= 0xDFFF else "x"
            out.append(s)
    return out


def corpus():
    """Prose and code to train on, without any file: the hand-made texts and
    sentences of common words."""
    rng = random.Random(1)
    words = ("the of and to in is that for it was on are as with his they at be this from have or by one had not but what all were "
             "when we there can an your which their said if do will each about how up out them then she many some so these would other "
             "into has more her two like him see time could no make than first been its who now people my made over did down only way "
             "find use may water long little very after words called just where most know get through back much before go good new "
             "write our used me man too any day same right look think also around another came come work three word must because does "
             "token model server request latency throughput batch cache memory tokens engine number string return error func import "
             "und der die das ist nicht ein eine les des une est pour que dans el los las por con para как это что не на").split()
    out = list(HAND)
    for _ in range(1500):
        s = " ".join(rng.choice(words) for _ in range(rng.randint(3, 20)))
        out.append(s.capitalize() + rng.choice([".", "!", "?", "\n", ".\n\n", ":", ";"]))
    return out


def ready(t, path, name):
    t.save(os.path.join(path, "_.json"), pretty=False)
    with open(os.path.join(path, "_.json"), "rb") as f:
        data = f.read()
    os.remove(os.path.join(path, "_.json"))
    write(os.path.join(path, name + ".json.gz"), data)


def write(path, data):
    with open(path, "wb") as f:
        f.write(gzip.compress(data, 9, mtime=0))


SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
MASK = AddedToken("<mask>", lstrip=True, rstrip=False, normalized=False, special=True)
WORD = AddedToken("word", single_word=True, normalized=True, special=False)
TOOL = AddedToken("<tool_call>", rstrip=True, normalized=False, special=False)


def byte_level(pattern, behavior="isolated", invert=False, normalizer=None, size=700, ignore=False, prefix=False):
    t = Tokenizer(models.BPE(ignore_merges=ignore))
    if normalizer:
        t.normalizer = normalizer
    patterns = pattern if isinstance(pattern, list) else [pattern]
    if pattern is GPT2:
        t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    else:
        t.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(Regex(p), behavior, invert) for p in patterns]
            + [pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=False)])
    t.decoder = decoders.ByteLevel()
    t.post_processor = processors.ByteLevel(trim_offsets=False)
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.add_special_tokens([MASK])
    t.add_tokens([WORD, TOOL])
    return t


def sentencepiece(kind):
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    alphabet = ["<0x%02X>" % b for b in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=1200, special_tokens=["<unk>", "<s>", "</s>"] + alphabet, limit_alphabet=300,
                                  show_progress=False)
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    t.train_from_iterator(corpus(), trainer)
    j = json.loads(t.to_str())
    j["added_tokens"] = [a for a in j["added_tokens"] if not a["content"].startswith("<0x")]
    if kind == "llama2":
        j["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"}, {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
        j["pre_tokenizer"] = None
    elif kind == "mistral":
        j["pre_tokenizer"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": False}
    else:
        j["normalizer"] = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        j["pre_tokenizer"] = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}
    j["decoder"] = {"type": "Sequence", "decoders": [{"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
                                                     {"type": "ByteFallback"}, {"type": "Fuse"}]
                    + ([{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if kind != "gemma" else [])}
    j["post_processor"] = {"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [
        {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}
    return Tokenizer.from_str(json.dumps(j))


def charsmap(table):
    """A precompiled map as SentencePiece stores it."""
    root, texts = {}, b""
    for key, value in table.items():
        node = root
        for b in key.encode():
            node = node.setdefault(b, {})
        node[0] = len(texts)
        texts += value.encode() + b"\0"
    units = [0] * 256

    def place(node, pos):
        base = len(units)
        units.extend([0] * 256)
        units[pos] |= (pos ^ base) << 10
        for b, child in node.items():
            if b == 0:
                units[pos] |= 1 << 8
                units[base] = 1 << 31 | child
            else:
                units[base + b] = b
                place(child, base + b)

    place(root, 0)
    return struct.pack("<I", 4 * len(units)) + struct.pack("<%dI" % len(units), *units) + texts


def unigram(kind):
    import unicodedata
    t = Tokenizer(models.Unigram())
    table = {c: unicodedata.normalize("NFKC", c) for c in "ﬁﬃｆｕｌ①②㎏½²™…Å\u212b"}
    table.update({"e\u0301": "é", "A\u030a": "Å", "n\u0303": "ñ", "\r": " ", "\n": " ", "\t": " ", "\u00a0": " ", "\u3000": " ",
                  "\u200b": "", "\ufeff": "", "©": "(c)", "क": "K", "\u0600": "#", "ab": "X"})
    t.normalizer = normalizers.Precompiled(charsmap(table))
    t.pre_tokenizer = pre_tokenizers.Metaspace()
    tokens = ["<pad>", "</s>", "<unk>"]
    t.train_from_iterator(corpus(), trainers.UnigramTrainer(vocab_size=900, special_tokens=tokens, unk_token="<unk>", show_progress=False))
    j = json.loads(t.to_str())
    j["decoder"] = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}
    if kind == "t5":
        j["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True, "str_rep": "▁"}]}
    elif kind == "albert":
        j["normalizer"] = {"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"String": "``"}, "content": "\""}, {"type": "Strip", "strip_left": True, "strip_right": True},
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}, {"type": "NFKD"}, {"type": "StripAccents"},
            {"type": "Lowercase"}, j["normalizer"]]}
        j["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [
            {"type": "Whitespace"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first", "split": True}]}
    else:  # byte fallback, no splitter
        j["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Nmt"}, {"type": "NFKC"}, {"type": "Prepend", "prepend": "▁"},
                                                               {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}
        j["pre_tokenizer"] = None
        n = len(j["model"]["vocab"])
        j["model"]["vocab"] += [["<0x%02X>" % b, 0.0] for b in range(256)]
        j["model"]["byte_fallback"] = True
        j["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}]}
    j["post_processor"] = {"type": "BertProcessing", "sep": ["</s>", 1], "cls": ["<pad>", 0]}
    return Tokenizer.from_str(json.dumps(j))


def wordpiece(lowercase):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=60))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase, strip_accents=None if lowercase else False)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.decoder = decoders.WordPiece()
    t.train_from_iterator(corpus(), trainers.WordPieceTrainer(
        vocab_size=1100, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"], limit_alphabet=500, show_progress=False))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    t.add_tokens([WORD])
    return t


def clip():
    """An end-of-word suffix, unknown tokens, a pattern that matches words."""
    t = Tokenizer(models.BPE(unk_token="<|endoftext|>", end_of_word_suffix="</w>"))
    t.normalizer = normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"), "removed", True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    t.decoder = decoders.BPEDecoder("</w>")
    t.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, end_of_word_suffix="</w>", show_progress=False))
    t.post_processor = processors.RobertaProcessing(("<|endoftext|>", 0), ("<|im_start|>", 1))
    return t


def prefixed():
    """A continuing prefix, unknown tokens apart, splitters of many kinds."""
    t = Tokenizer(models.BPE(unk_token="<unk>", continuing_subword_prefix="##", fuse_unk=False))
    t.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip(left=True, right=False)])
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Punctuation("merged_with_previous")])
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=700, special_tokens=["<unk>"], continuing_subword_prefix="##", limit_alphabet=120, show_progress=False))
    t.decoder = decoders.WordPiece("##", False)
    t.add_tokens([WORD, TOOL])
    return t


def falcon():
    """ByteLevel that is not the last step."""
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(add_prefix_space=False),
        pre_tokenizers.Digits(individual_digits=False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated")])
    t.decoder = decoders.ByteLevel()
    t.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=600, special_tokens=SPECIAL, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    return t


def wordlevel():
    t = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    t.normalizer = normalizers.NFKD()
    t.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split("-", "merged_with_next"), pre_tokenizers.Split(Regex(r"\d"), "contiguous"),
        pre_tokenizers.WhitespaceSplit(), pre_tokenizers.CharDelimiterSplit("_"), pre_tokenizers.FixedLength(9)])
    t.train_from_iterator(corpus(), trainers.WordLevelTrainer(vocab_size=400, special_tokens=["[UNK]"], show_progress=False))
    return t


def fixtures():
    yield "gpt2", byte_level(GPT2, prefix=True)
    yield "starcoder", byte_level([r"\p{N}", r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"])
    yield "llama3", byte_level(CL100K, ignore=True, size=900)
    yield "qwen2", byte_level(QWEN2, normalizer=normalizers.NFC())
    yield "qwen35", byte_level(QWEN35, normalizer=normalizers.NFC())
    yield "o200k", byte_level(O200K, "removed", True)
    yield "kimi", byte_level(KIMI)
    yield "deepseek", byte_level(DEEPSEEK, normalizer=normalizers.NFKC())
    yield "tiktoken", byte_level(TIKTOKEN)
    yield "odd", byte_level(ODD, "merged_with_previous")
    yield "falcon", falcon()
    for kind in ("llama2", "mistral", "gemma"):
        yield kind, sentencepiece(kind)
    for kind in ("t5", "albert", "fallback"):
        yield kind, unigram(kind)
    yield "bert", wordpiece(True)
    yield "bert-cased", wordpiece(False)
    yield "clip", clip()
    yield "prefixed", prefixed()
    yield "wordlevel", wordlevel()


def answers(t, texts):
    """What the reference makes of each text. No ids: it refuses. No decoded:
    the text comes back. For the hand-made texts, the ids backwards are decoded
    as well."""
    t.no_truncation()
    t.no_padding()
    extra = sum(map(len, around(t)))
    out = []
    for i, s in enumerate(texts):
        try:
            ids, all_ids = t.encode(s, add_special_tokens=False).ids, t.encode(s).ids
        except Exception:
            out.append({})
            continue
        # Decode what was encoded, and the ids the other way round.
        one = {"ids": ids}
        if len(all_ids) != len(ids) + extra:
            one["n"] = len(all_ids)
        if t.decode(ids) != s:
            one["decoded"] = t.decode(ids)
        if i < len(HAND):
            one["back"] = t.decode(ids[::-1])
        out.append(one)
    return out


# Patterns for the matcher by itself: every construct it reads.
PATTERNS = [
    CL100K, O200K, KIMI, TIKTOKEN, ODD, *DEEPSEEK, r"a|ab|abc", r"(?:ab)*", r"(?:a|ab)*?b", r"(?:ab|a)+b?", r"x*", r"\s*", r"^", r"$", r"^.", r".$",
    r"\A.", r".\z", r"^\s+|\s+$", r".+?\n", r"(?=[A-Z])", r"(?<=\s)\S", r"(?<!\w)\w", r"\w+", r"\W+", r"\d+", r"\D+", r"\S{2,3}", r"\S{2,3}?", r"\S{,2}",
    r"\S{2}", r"\S{3,}", r"\p{N}{1,3}+", r"(?:\w\w)?", r"(?>a+)ab|a", r"a++b|a", r"a?+a", r"[a-c[x-z]]+", r"[^a-z]+", r"[^\W\d]+", r"[\p{L}&&[^a-m]]+",
    r"[\w&&[^\p{L}]&&[^_]]+", r"[\]x]", r"[-a]+|[a-]+", r"\x41|\x{e9}|\u00e9", r"(?i:s)+", r"(?i:[a-ck])+", r"(?i:[^sk])+", r"(?i:HE'S|LL)|(?-i:The)",
    r"\p{Han}+|\p{Hiragana}+|\p{Katakana}+|\p{Hangul}+", r"\P{L}+", r"\p{^L}+", r"[\P{L}]+", r"\p{Lu}\p{Ll}*", r"\p{P}+", r"\p{S}+", r"\p{M}+", r"\p{Z}+", r"\p{C}+",
    r"\p{Cn}|\p{Co}|\p{Cf}|\p{Cc}", r"\p{Nd}+|\p{Nl}|\p{No}", r"\p{Sm}|\p{Sc}|\p{Sk}|\p{So}", r"\p{Pc}|\p{Pd}|\p{Ps}|\p{Pe}|\p{Pi}|\p{Pf}|\p{Po}",
    r"(?:\s(?:a|the|(?:of )+))+", r"(a)(b)|(?:(?:x|y){2})+", r"(?:\p{L}+-)*\p{L}+", r"[ \t]*\r?\n", r"|a", r"a||b", r"(?:)", r"(?:a?)*b", r"(?:\s?\n){1,3}?x",
]


def patterns(texts):
    out = []
    for p in PATTERNS:
        split = pre_tokenizers.Split(Regex(p), "isolated")
        out.append({"pattern": p, "ends": [[b for _, (_, b) in split.pre_tokenize_str(s)] for s in texts]})
    return json.dumps(out, ensure_ascii=False, separators=(",", ":")).encode()


def around(t):
    ids, inner = t.encode("a").ids, t.encode("a", add_special_tokens=False).ids
    for k in range(len(ids) - len(inner) + 1):
        if ids[k:k + len(inner)] == inner:
            return [ids[:k], ids[k + len(inner):]]


def want(t, texts):
    special = [i for i, k in t.get_added_tokens_decoder().items() if k.special]
    return json.dumps({"vocab": t.get_vocab_size(), "special": sorted(special), "around": around(t), "texts": answers(t, texts)},
                      ensure_ascii=False, separators=(",", ":")).encode()


def main(path, *rest):
    if rest[:1] == ("--real",):
        texts = HAND + randoms(random.Random(7), 6000)
        for name in rest[1:]:
            with open(name, encoding="utf-8", errors="replace") as f:
                data = f.read()
            texts += [data[i:i + 1500] for i in range(0, len(data), 1500)]
        write(os.path.join(path, "texts.gz"), json.dumps(texts, ensure_ascii=False).encode())
        for name in sorted(glob.glob(os.path.join(path, "*", "tokenizer.json"))):
            t = Tokenizer.from_file(name)
            write(os.path.join(os.path.dirname(name), "want.gz"), want(t, texts))
            print(name)
        return
    texts = HAND + randoms(random.Random(3), 240)
    write(os.path.join(path, "texts.gz"), json.dumps(texts, ensure_ascii=False).encode())
    write(os.path.join(path, "patterns.gz"), patterns([s for s in texts if len(s) < 100]))
    for name, t in fixtures():
        ready(t, path, name)
        with gzip.open(os.path.join(path, name + ".json.gz")) as f:
            t = Tokenizer.from_str(f.read().decode())
        write(os.path.join(path, name + ".want.gz"), want(t, texts))
        print(name, t.get_vocab_size())


main(*sys.argv[1:])
