"""Compares token ids of tools/tokenize with the reference's; see README.md."""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import texts
import toys


def our_ids(tokenize: str, tokenizer_json: pathlib.Path, cases: list[str]) -> list[list[int] | str]:
    data = b"".join(case.encode() + b"\0" for case in cases)
    run = subprocess.run([tokenize, str(tokenizer_json)], input=data, capture_output=True)
    if run.returncode != 0:
        raise SystemExit(run.stderr.decode())
    lines = run.stdout.decode().splitlines()
    assert len(lines) == len(cases), f"{len(lines)} answers for {len(cases)} texts"
    return [line if line.startswith("error") else [int(i) for i in line.split()] for line in lines]


def differences(cases: list[str], ours: list, reference: list[list[int] | None]) -> int:
    count = 0
    for text, got, want in zip(cases, ours, reference, strict=True):
        if want is not None and got != want:
            count += 1
            if count <= 20:
                print(f"differs: {text[:200]!r}\n  reference {want[:60]}\n  sluice    {got[:60]}")
    return count


def check_real(options) -> int:
    from transformers import AutoTokenizer

    reference = AutoTokenizer.from_pretrained(options.folder)
    tokenizer_json = pathlib.Path(options.folder, "tokenizer.json")
    added = [token["content"] for token in json.loads(tokenizer_json.read_text())["added_tokens"]]
    cases = texts.make(random.Random(options.seed), options.count, added)
    want = [reference(text.strip()).input_ids for text in cases]
    bad = differences(cases, our_ids(options.tokenize, tokenizer_json, cases), want)
    print(f"{options.folder}: {len(cases)} texts, {sum(map(len, want))} ids, {bad} texts differ")
    return bad


def toy_ids(reference, text: str) -> list[int] | None:
    """None where the reference crashes: added tokens that strip can overlap in ways it does not expect."""
    try:
        return reference.encode(text.strip()).ids
    except BaseException as error:  # pyo3's PanicException is no Exception
        if type(error).__name__ != "PanicException":
            raise
        return None


def compare_toy(tokenize: str, definition: dict, cases: list[str]) -> int:
    from tokenizers import Tokenizer

    reference = Tokenizer.from_str(json.dumps(definition))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "tokenizer.json")
        path.write_text(json.dumps(definition))
        ours = our_ids(tokenize, path, cases)
    return differences(cases, ours, [toy_ids(reference, text) for text in cases])


def check_toys(options) -> int:
    bad = 0
    for number in range(options.count):
        rng = random.Random(f"{options.seed}/{number}")
        definition = toys.make_definition(rng)
        differing = compare_toy(options.tokenize, definition, toys.make_texts(rng, definition))
        if differing:
            print(f"toy {number}: {json.dumps({k: v for k, v in definition.items() if k != 'model'})}")
        bad += differing
    print(f"{options.count} toy tokenizers, {bad} texts differ")
    return bad


def check_words(options) -> int:
    definition = toys.single_word_definition()
    characters = [chr(c) for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000]
    cases = [text for c in characters for text in (f"!QZ{c}!", f"!{c}QZ!")]
    bad = compare_toy(options.tokenize, definition, cases)
    print(f"{len(cases)} texts, {bad} differ")
    return bad


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    for name, run, count in (("real", check_real, 2500), ("toys", check_toys, 300), ("words", check_words, 0)):
        command = commands.add_parser(name)
        if name == "real":
            command.add_argument("folder")
        command.add_argument("--tokenize", required=True)
        command.add_argument("--count", type=int, default=count)
        command.add_argument("--seed", default="1")
        command.set_defaults(run=run)
    options = parser.parse_args()
    return 1 if options.run(options) else 0


if __name__ == "__main__":
    sys.exit(main())
