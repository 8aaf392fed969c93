#!/usr/bin/env python3
"""Measures what the reference library takes each code point for.

    pip install tokenizers==0.23.3
    python unicode.py ../unicode.txt.gz

The library mixes the Unicode versions of Oniguruma, of Rust's standard
library and of four crates, so its tables are asked for, code point by code
point, and not computed from any one version of the standard. Only the classes
of combining marks are taken from Python: their order cannot change once given,
and whether the library knows a mark at all is measured.
"""

import gzip, struct, sys, unicodedata
from tokenizers import Regex, normalizers, pre_tokenizers

CPS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
ALL = "".join(map(chr, CPS))
CATEGORIES = (
    "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()
)


def matches(regex):
    out = set(normalizers.Replace(Regex(regex), "").normalize_str(ALL))
    return {c for c in CPS if chr(c) not in out}


def lost(pre_tokenizer):
    kept = set("".join(w for w, _ in pre_tokenizer.pre_tokenize_str("a" + ALL)))
    return {c for c in CPS if chr(c) not in kept}


def removed(normalizer, only=CPS):
    return {c for c in only if normalizer.normalize_str(chr(c)) == ""}


def numeric():
    digits = pre_tokenizers.Digits(individual_digits=True)
    return {c for c in CPS if len(digits.pre_tokenize_str("a" + chr(c) + "a")) == 3}


def word():
    space = pre_tokenizers.Whitespace()
    text = lambda c: [w for w, _ in space.pre_tokenize_str("-" + chr(c) + "-")]
    return {c for c in CPS if text(c) == ["-", chr(c), "-"]}


def charsmap(keys):
    """A precompiled map, as SentencePiece stores it, of each key to Y."""
    root = {}
    for key in keys:
        node = root
        for b in chr(key).encode():
            node = node.setdefault(b, {})
        node[0] = None
    units, spare = [0] * 256, []

    def offset(pos, base):
        o = pos ^ base
        return o << 10 if o < 1 << 21 else None

    def place(node, pos):
        if list(node) == [0]:  # a leaf takes any free unit
            if not spare:
                spare.extend(range(len(units), len(units) + 256))
                units.extend([0] * 256)
            base = spare.pop()
            units[pos] |= offset(pos, base) | 1 << 8
            units[base] = 1 << 31
            return
        base = len(units)
        units.extend([0] * 256)
        units[pos] |= offset(pos, base)
        if 0 in node:
            units[pos] |= 1 << 8
            units[base] = 1 << 31
        for b, child in node.items():
            if b:
                units[base + b] = b
                place(child, base + b)

    place(root, 0)
    blob = struct.pack("<I", 4 * len(units)) + struct.pack("<%dI" % len(units), *units) + b"Y\0"
    return normalizers.Precompiled(blob)


def graphemes(gc):
    """What decides the clusters under six bytes, the only ones that matter. No
    map has NUL as a key, so it cannot be asked; it is a control character."""
    after = charsmap([ord("a")])
    extend = {c for c in CPS if c and after.normalize_str("a" + chr(c)) == "Y"}
    keys = [c for c in CPS if gc[c] in ("Lo", "Mc", "Mn", "Cf", "Cc", "Zl", "Zp") and c
            and not 0x3400 <= c <= 0x9FFF and not 0xAC00 <= c <= 0xD7A3 and not 0x17000 <= c <= 0x18CFF
            and not 0x1B000 <= c <= 0x1B2FF and not 0x20000 <= c <= 0x3FFFF]
    each = charsmap(keys)
    prepend = {c for c in keys if c not in (0x61,) and each.normalize_str(chr(c) + "a") == "Y"}
    control = {0} | {c for c in keys if c <= 0xFFFF and gc[c] in ("Cf", "Cc", "Zl", "Zp")
               and each.normalize_str(chr(c) + "\u0301") != "Y"}
    copyright = charsmap([0xA9])
    pict = {c for c in CPS if c and c not in extend
            and copyright.normalize_str("\u00a9\u200d" + chr(c)) == "Y\u200d" + ("Y" if c == 0xA9 else chr(c))}
    consonant = {c for c in keys if 0x900 <= c <= 0xFFFF and gc[c] == "Lo"
                 and each.normalize_str("\u0915\u094d" + chr(c) + "\u0301").endswith("Y\u0301")}
    ka = charsmap([0x915])
    linker = {c for c in extend if ka.normalize_str("\u0915" + chr(c) + "\u0915\u0301").endswith("Y\u0301")}
    return extend, prepend, control, pict, consonant, linker


def hexes(s):
    return " ".join("%x" % ord(c) for c in s)


def main(path):
    gc = {}
    sets = []
    for name in CATEGORIES:
        s = matches(r"\p{%s}" % name)
        sets.append(s)
        for c in s:
            gc[c] = name
    assert len(gc) == len(CPS) and sum(map(len, sets)) == len(CPS)

    space = matches(r"\s")
    assert space == lost(pre_tokenizers.WhitespaceSplit()), "one bit for \\s and is_whitespace"
    nfd, nfkd, nfc = normalizers.NFD(), normalizers.NFKD(), normalizers.NFC()
    stable = [c for c in CPS if nfd.normalize_str(chr(c)) == chr(c)]
    bert = lambda clean, strip: normalizers.BertNormalizer(
        clean_text=clean, handle_chinese_chars=False, strip_accents=strip, lowercase=False)
    sets += [
        space,
        matches(r"\w"),
        word(),
        numeric(),
        lost(pre_tokenizers.Punctuation(behavior="removed")),
        removed(bert(False, True), stable),
        removed(bert(True, False)),
        removed(normalizers.StripAccents()),
    ]
    sets += [matches(r"\p{%s}" % s) for s in ("Han", "Hiragana", "Katakana", "Hangul")]
    sets += graphemes(gc)
    sets.append(matches(r"[\w]"))  # not quite \w

    out, last = [], None
    for c in range(0x110000):
        mask = sum(1 << i for i, s in enumerate(sets) if c in s)
        if mask != last:
            out.append("C %x %x" % (c, mask))
            last = mask

    lower = normalizers.Lowercase()
    for c in CPS:
        s = lower.normalize_str(chr(c))
        if s != chr(c):
            out.append("L %x %s" % (c, hexes(s)))
    for c in CPS:
        if 0xAC00 <= c <= 0xD7A3:
            continue
        d, k = nfd.normalize_str(chr(c)), nfkd.normalize_str(chr(c))
        if d != chr(c):
            out.append("D %x %s" % (c, hexes(d)))
        if k != d:
            out.append("K %x %s" % (c, hexes(k)))
    for c in stable:
        x = chr(c)
        known = (nfd.normalize_str("a" + x + "\u0334") != "a" + x + "\u0334"
                 or nfd.normalize_str("a\u0345" + x) != "a\u0345" + x)
        assert not known or unicodedata.combining(x)
        if known:
            out.append("M %x %x" % (c, unicodedata.combining(x)))
    for c in CPS:
        d = unicodedata.decomposition(chr(c)).split()
        if len(d) == 2 and not d[0].startswith("<"):
            a, b = (chr(int(x, 16)) for x in d)
            if nfc.normalize_str(a + b) == chr(c):
                out.append("P %x %x %x" % (ord(a), ord(b), c))
    for letter in map(chr, range(ord("a"), ord("z") + 1)):
        more = matches("(?i:%s)" % letter) - {ord(letter), ord(letter.upper())}
        for c in sorted(more):
            out.append("F %x %x" % (ord(letter), c))

    data = ("\n".join(out) + "\n").encode()
    with open(path, "wb") as f:
        f.write(gzip.compress(data, 9, mtime=0))
    print(len(out), "lines", len(data), "bytes")


main(sys.argv[1])
