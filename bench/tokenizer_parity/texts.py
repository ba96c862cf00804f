"""Texts that a tokenizer may get wrong: scripts, emoji, runs of white space, look-alikes of tokens, random mixes."""

import random

SENTENCES = [
    "A slow dolly shot through a rain-soaked neon alley; steam rises, a cat's eyes glint at 0:03.",
    "The quick brown fox jumps over the lazy dog. 1234567890 24 fps 1280x704 f/2.8 ISO-800 #ff00ff",
    "Ein großes Straßenfest in Zürich – überall Äpfel, Öl und Übermut.",
    "Le café d'à côté est fermé; où êtes-vous allés, Noël?", "¿Dónde está la niña? ¡Allí, señor!",
    "Žluťoučký kůň úpěl ďábelské ódy", "Zażółć gęślą jaźń", "Árvíztűrő tükörfúrógép",
    "Pijamalı hasta yağız şoföre çabucak güvendi. İIıi", "Съешь ещё этих мягких французских булок",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία", "זה כיף סתם לשמוע איך תנצח קרפד", "נִקּוּד עִבְרִי",
    "نص حكيم له سر قاطع وذو شأن عظيم", "بِسْمِ ٱللَّهِ ٱلرَّحْمَٰنِ ٱلرَّحِيمِ", "یک گربه روی میز می‌رود",
    "ऋषियों को सताने वाले दुष्ट राक्षसों", "আমি বাংলায় গান গাই", "ਸਤ ਸ੍ਰੀ ਅਕਾਲ", "ગુજરાતી ભાષા",
    "தமிழ் மொழி அழகானது", "తెలుగు భాష", "ಕನ್ನಡ ನುಡಿ", "മലയാളം ഭാഷ", "සිංහල භාෂාව", "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า",
    "ພາສາລາວ", "မြန်မာဘာသာ", "ភាសាខ្មែរ", "བོད་ཡིག", "ქართული ენა", "Հայերեն լեզու", "አማርኛ ቋንቋ", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
    "ᐃᓄᒃᑎᑐᑦ", "日本語のテキスト、ひらがなとカタカナと漢字。", "ﾊﾝｶｸｶﾅ", "中文简体和繁體中文，標點。", "다람쥐 헌 쳇바퀴에 타고파",
    "한국어 자모", "Tiếng Việt có dấu: Đặng Ngọc Quỳnh", "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ", "𐌰𐌱𐌲 𐎠𐎡 𓀀𓀁 𒀀𒀁", "𝕸𝖆𝖙𝖍 𝒻𝓊𝓃 ℝ∀∃∑∫√∞≠",
    "cafe\u0301 vs café, A\u030a vs Å, Z\u0351\u036b\u0343\u036a\u0302a\u0323\u0324l\u0334g\u0335o\u0336",
    "for (int i = 0; i < n; ++i) {\n\treturn x->y[i] & 0xFF;\n}", "https://example.com/a?b=c&d=%20e#f",
    "<html><body><table><tr><td>x</td></tr></table></body></html>", "<h1>a</h1><code>b</code><unknown>c</unknown>",
    "\"quotes\" 'single' “double” ‘curly’ «guillemets» „low“", "a…b—c–d-e_f/g\\h|i", "I'm you're he'll we've they'd isn't",
]
EMOJI = ["🎬", "😀", "👨‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪", "🇯🇵🇺🇸", "👍🏽", "❤️", "☎️", "1️⃣", "🧑🏿‍🚀", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🫠", "🀄", "👩‍❤️‍💋‍👨", "\u200d", "\ufe0f"]
ODDITIES = [
    "\ufeff", "\u200b", "\u200c", "\u200d", "\u200e", "\u202e", "\u2060", "\u00ad", "\ufffd", "\ufffe", "\uffff", "\u0001",
    "\u0007", "\u0008", "\u001b[31m", "\u007f", "\u0080", "\u0085", "\u00a0", "\u1680", "\u180e", "\u2003", "\u2028",
    "\u2029", "\u202f", "\u205f", "\u3000", "\u001c", "\u001f", "\ue000", "\U000f0000", "\U0010ffff", "\U000e0041",
    "\u0378", "\u0301", "\u20dd", "\r", "\r\n", "\v", "\f", "\u2581",
]
LOOK_ALIKES = [
    "<bos>", "<eos>", "<pad>", "<unk>", "<mask>", "<start_of_turn>", "<end_of_turn>", "<start_of_turn>user\nhi<end_of_turn>",
    "<start_of_turnx>", "<start_of_turn", "<bos", "bos>", "<<bos>>", "< bos>", "<BOS>", "<bos><bos>", "<unused0>", "<unused12>",
    "<unused123>", "<unused99999>", "<unused1", "<unused>", "<0x41>", "<0x0A>", "<0xZZ>", "[multimodal]", "[@BOS@]",
    "<start_of_image>", "<image_soft_token>", "</s>", "<s>", "<|endoftext|>", "[INST]", "▁", "▁▁", "▁▁▁▁▁", " ▁ ▁", "▁the", "the▁",
]


def runs() -> list[str]:
    cases = []
    for unit in (" ", "\n", "\t", "\r\n", "▁", "a", "🎬", "\u3000", "-", "=", ".", "!", "0", "ab", "\n ", " \n", "<", "é", "中"):
        for length in (*range(1, 20), 24, 30, 31, 32, 33, 48, 62, 63, 64, 65, 100, 127, 128, 129, 300):
            cases.append(f"x{unit * length}y")
            cases.append(unit * length)
    return cases


def random_characters(rng: random.Random, length: int) -> str:
    blocks = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x24F), (0x300, 0x36F), (0x370, 0x52F), (0x590, 0x6FF), (0x900, 0xDFF),
              (0xE00, 0x11FF), (0x2000, 0x2BFF), (0x3040, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0x1F300, 0x1FAFF),
              (1, 0xD7FF), (0xE000, 0x10FFFF)]
    out = []
    while len(out) < length:
        low, high = rng.choice(blocks)
        out += [chr(rng.randint(low, high)) for _ in range(rng.randint(1, 12))]
    return "".join(out[:length])


def random_mix(rng: random.Random, added: list[str]) -> str:
    makers = [
        lambda: rng.choice(SENTENCES), lambda: rng.choice(SENTENCES).split(" ")[0], lambda: rng.choice(EMOJI),
        lambda: rng.choice(ODDITIES), lambda: rng.choice(LOOK_ALIKES), lambda: rng.choice(added),
        lambda: rng.choice(" \n\t") * rng.randint(1, 40), lambda: random_characters(rng, rng.randint(1, 12)),
        lambda: rng.choice([" ", "", "", ", ", "."]),
        lambda: "".join(rng.choice("etaoin shrdlu") for _ in range(rng.randint(1, 30))),
    ]
    return "".join(rng.choice(makers)() for _ in range(rng.randint(1, 25)))


def long_texts(rng: random.Random, added: list[str]) -> list[str]:
    words = " ".join(SENTENCES).split(" ")
    cases = [unit * 10000 for unit in ("a", " ", "\n", "🎬", "ab ", "the ")]
    for _ in range(6):
        text = ""
        while len(text) < 10000:
            text += rng.choice(words) + " "
        cases += [text[:10000], random_characters(rng, 10000)]
        cases.append("".join(random_mix(rng, added) for _ in range(60))[:10000])
    return cases


def make(rng: random.Random, count: int, added: list[str]) -> list[str]:
    cases = ["", " ", *SENTENCES, *EMOJI, *ODDITIES, *LOOK_ALIKES]
    cases += [f"a{odd}b" for odd in ODDITIES + EMOJI] + [f" {odd} " for odd in ODDITIES] + [f"{odd}a{odd}" for odd in ODDITIES]
    cases += [f"a {t} b" for t in LOOK_ALIKES] + [f"a{t}b" for t in LOOK_ALIKES] + runs() + long_texts(rng, added)
    while len(cases) < count:
        cases.append(random_mix(rng, added))
    return [case.replace("\0", "") for case in cases]
