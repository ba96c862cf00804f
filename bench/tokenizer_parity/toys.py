"""Random small tokenizers that use every option sluice reads, and texts that hit them."""

import random

ALPHABET = ["a", "b", "c", "é", "中", "🎬", " ", "▁", "\n", "_"]
UNKNOWN = ["x", "ü", "語", "😀"]


def make_model(rng: random.Random, separator_free: bool) -> dict:
    known = [c for c in ALPHABET if rng.random() < 0.85 and not (separator_free and c == " ")]
    tokens = ["<unk>", "<pad>", "<bos>", "<eos>", *known]
    if rng.random() < 0.7:
        some = rng.choice([1.0, 1.0, 0.6])
        tokens += [f"<0x{byte:02X}>" for byte in range(256) if rng.random() < some]
    merges = []
    pool = list(known)
    for _ in range(rng.randint(0, 40)):
        if not pool:
            break
        left, right = rng.choice(pool), rng.choice(pool)
        if len(left + right) > 8:
            continue
        merges.append([left, right])
        if left + right not in tokens:
            tokens.append(left + right)
            pool.append(left + right)
    if rng.random() < 0.3:
        rng.shuffle(merges)
    if separator_free and rng.random() < 0.4:
        merges = [" ".join(pair) for pair in merges]
    return {
        "type": "BPE", "dropout": None, "unk_token": rng.choice(["<unk>", "<unk>", None]),
        "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": rng.random() < 0.6,
        "byte_fallback": rng.random() < 0.6, "ignore_merges": rng.random() < 0.3,
        "vocab": {token: number for number, token in enumerate(tokens)}, "merges": merges,
    }


def make_added(rng: random.Random, vocabulary: dict) -> list[dict]:
    contents = ["<bos>", "<pad>", "Q", "QQ", "QR", "a b", "b\n", "\n\n", "▁▁", " ", "aQ", "Qa", "é", "c c"]
    added = []
    next_id = len(vocabulary)
    for content in rng.sample(contents, rng.randint(0, 6)):
        number = vocabulary.get(content, next_id)
        next_id = max(next_id, number + 1)
        flags = {flag: rng.random() < 0.35 for flag in ("single_word", "lstrip", "rstrip", "normalized", "special")}
        added.append({"id": number, "content": content, **flags})
    return added


def meanings_differ(added: list[dict], normalizer: dict | None) -> bool:
    """Two added tokens that are one text after normalization are refused, so toys avoid them."""
    if normalizer is None:
        return True
    texts = [token["content"].replace(" ", "▁") for token in added if token["normalized"]]
    return len(texts) == len(set(texts))


def make_definition(rng: random.Random) -> dict:
    replace = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    prepend = {"type": "Prepend", "prepend": rng.choice(["▁", "a"])}
    swap = {"type": "Replace", "pattern": {"String": rng.choice(["aa", "b", "\n"])}, "content": rng.choice(["", "c", "ca"])}
    normalizer = rng.choice(
        [None, replace, replace, prepend, {"type": "Sequence", "normalizers": rng.choice([[prepend, replace], [replace, swap], []])}])
    split = {"type": "Split", "pattern": {"String": rng.choice([" ", " ", "▁", "ab"])}, "behavior": "MergedWithPrevious", "invert": False}
    model = make_model(rng, separator_free=rng.random() < 0.5)
    while True:
        added = make_added(rng, model["vocab"])
        if meanings_differ(added, normalizer):
            break
    frame = [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    if rng.random() < 0.3:
        frame.append({"SpecialToken": {"id": "<eos>", "type_id": 0}})
    special = {name: {"id": name, "ids": [model["vocab"][name]], "tokens": [name]} for name in ("<bos>", "<eos>")}
    return {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": normalizer,
        "pre_tokenizer": rng.choice([None, split]),
        "post_processor": {"type": "TemplateProcessing", "single": frame, "pair": [*frame, {"Sequence": {"id": "B", "type_id": 1}}], "special_tokens": special},
        "decoder": None, "model": model,
    }


def make_texts(rng: random.Random, definition: dict) -> list[str]:
    units = ALPHABET + UNKNOWN + [token["content"] for token in definition["added_tokens"]] * 2 + [" ", "\u3000", "\u200b", "\t"]
    return ["", *("".join(rng.choice(units) for _ in range(rng.randint(1, 40))) for _ in range(60))]


def single_word_definition() -> dict:
    vocabulary = {"<unk>": 0, "<pad>": 1, "<bos>": 2, "Q": 3, "Z": 4}
    return {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": None, "decoder": None,
        "added_tokens": [{"id": 5, "content": "QZ", "single_word": True, "lstrip": False, "rstrip": False, "normalized": False, "special": False}],
        "post_processor": {
            "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<bos>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}}},
        "model": {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None, "end_of_word_suffix": None,
                  "fuse_unk": True, "byte_fallback": False, "ignore_merges": False, "vocab": vocabulary, "merges": []},
    }
