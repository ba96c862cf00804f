#include "models/ltx2/text/tokenizer.h"

#include "bytes/format/impostor.h"
#include "models/ltx2/text/added_tokens.h"
#include "models/ltx2/text/bpe.h"
#include "models/ltx2/text/normalizer.h"
#include "models/ltx2/text/tokenizer_json.h"
#include "models/ltx2/text/utf8.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace sluice::ltx2 {

struct Tokenizer::State {
  AddedTokenFinder raw_tokens;         // looked for in the text as it is
  AddedTokenFinder normalized_tokens;  // looked for behind the normalizer
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Bpe bpe;
  Template frame;
  TokenId pad = 0;
  TokenId greatest = 0;

  // The ids of stripped, valid UTF-8, without the template's.
  std::vector<TokenId> encode(std::string_view text) const {
    std::vector<TokenId> ids;
    for (const Piece& piece : raw_tokens.split(text)) {
      if (piece.added)
        ids.push_back(*piece.added);
      else
        encode_normalized(normalize(normalizer, std::string(piece.text)), ids);
    }
    return ids;
  }

  void encode_normalized(std::string_view text, std::vector<TokenId>& ids) const {
    for (const Piece& piece : normalized_tokens.split(text)) {
      if (piece.added) {
        ids.push_back(*piece.added);
        continue;
      }
      for (std::string_view word : pre_tokenize(pre_tokenizer, piece.text)) bpe.encode(word, ids);
    }
  }
};

namespace {

AddedTokenFinder make_finder(std::span<const AddedToken> all, bool normalized, const Normalizer& normalizer) {
  std::vector<AddedToken> tokens;
  std::vector<std::string> texts;
  for (const AddedToken& token : all) {
    if (token.normalized != normalized) continue;
    tokens.push_back(token);
    texts.push_back(normalized ? normalize(normalizer, token.content) : token.content);
  }
  return AddedTokenFinder(std::move(tokens), texts);
}

TokenId find_pad(std::span<const AddedToken> added, const Vocabulary& vocabulary) {
  if (auto id = vocabulary.find("<pad>")) return *id;
  auto token = std::ranges::find(added, "<pad>", &AddedToken::content);
  if (token == added.end()) throw Error(ErrorKind::bad_input, "there is no token '<pad>'");
  return token->id;
}

TokenId find_greatest(const TokenizerJson& json) {
  TokenId greatest = 0;
  for (const VocabularyEntry& entry : json.vocabulary) greatest = std::max(greatest, entry.id);
  for (const AddedToken& token : json.added_tokens) greatest = std::max(greatest, token.id);
  return greatest;
}

void check_frame(const Template& frame, TokenId greatest) {
  for (const auto* ids : {&frame.before, &frame.after}) {
    for (TokenId id : *ids) {
      if (id > greatest)
        throw Error(ErrorKind::bad_input, fmt::format("post_processor: there is no token {}", id));
    }
  }
}

std::string_view checked(std::string_view text) {
  if (text.size() > std::numeric_limits<std::int32_t>::max()) {
    throw Error(ErrorKind::usage, fmt::format("the prompt has {} bytes, more than 2 GiB", text.size()));
  }
  if (auto offset = find_invalid_utf8(text)) {
    throw Error(ErrorKind::usage,
                fmt::format("the prompt is not UTF-8: byte {} is 0x{:02x}", *offset,
                            static_cast<unsigned char>(text[*offset])),
                "check the encoding of the terminal or of the file that the prompt comes from");
  }
  return strip(text);
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) {
    throw Error(ErrorKind::bad_input, fmt::format("{}: there is no such file", path.string()),
                "tokenizer.json belongs in the text encoder's folder: fetch it from where the text encoder "
                "came from");
  }
  bytes::refuse_impostor(path, "a tokenizer.json");
  try {
    TokenizerJson json = read_tokenizer_json(path);
    Vocabulary vocabulary(json.vocabulary);
    json.added_tokens = checked_added_tokens(std::move(json.added_tokens), vocabulary);
    TokenId pad = find_pad(json.added_tokens, vocabulary);
    TokenId greatest = find_greatest(json);
    check_frame(json.frame, greatest);
    return Tokenizer(std::make_shared<const State>(State{
        .raw_tokens = make_finder(json.added_tokens, false, json.normalizer),
        .normalized_tokens = make_finder(json.added_tokens, true, json.normalizer),
        .normalizer = std::move(json.normalizer),
        .pre_tokenizer = std::move(json.pre_tokenizer),
        .bpe = Bpe(std::move(json.bpe), std::move(vocabulary), json.merges),
        .frame = std::move(json.frame),
        .pad = pad,
        .greatest = greatest,
    }));
  } catch (const Error& e) {
    throw Error(e.kind(), fmt::format("{}: {}", path.string(), e.what()), e.hint());
  }
}

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  return encode_truncated(text, std::numeric_limits<std::size_t>::max()).ids;
}

Encoded Tokenizer::encode_truncated(std::string_view text, std::size_t max_length) const {
  const Template& frame = state_->frame;
  std::size_t around = frame.before.size() + frame.after.size();
  if (max_length < around) {
    throw Error(
        ErrorKind::usage,
        fmt::format("{} token ids are too few: {} of them always stand around the text", max_length, around));
  }
  std::vector<TokenId> middle = state_->encode(checked(text));
  Encoded result{.ids = frame.before, .tokens = middle.size() + around};
  auto kept = static_cast<std::ptrdiff_t>(std::min(middle.size(), max_length - around));
  result.ids.insert(result.ids.end(), middle.begin(), middle.begin() + kept);
  result.ids.insert(result.ids.end(), frame.after.begin(), frame.after.end());
  return result;
}

TokenId Tokenizer::pad_id() const {
  return state_->pad;
}

std::size_t Tokenizer::vocabulary_size() const {
  return static_cast<std::size_t>(state_->greatest) + 1;
}

}  // namespace sluice::ltx2
