#include "models/ltx2/text/tokenizer_json.h"

#include "base/file.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <simdjson.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace sluice::ltx2 {
namespace {

using namespace simdjson::ondemand;

// The file's text and the parser, whose buffer holds the strings that had to be unescaped.
struct Document {
  simdjson::padded_string text;
  parser json;
};

Error unsupported(std::string_view what) {
  return Error(ErrorKind::bad_input, fmt::format("{} is not supported", what),
               "use the tokenizer.json that was published with the text encoder");
}

simdjson::padded_string read_file(const std::filesystem::path& path) {
  File file = File::open(path);
  simdjson::padded_string text(file.identity().size);
  read_exact(file, std::as_writable_bytes(std::span(text.data(), text.size())), 0, "the text");
  return text;
}

TokenId parse_id(value json) {
  std::int64_t id = json.get_int64();
  if (id < 0 || id >= std::numeric_limits<TokenId>::max()) {
    throw Error(ErrorKind::bad_input, fmt::format("{} is no possible token id", id));
  }
  return static_cast<TokenId>(id);
}

// A small section, for parse_normalizer and its like.
nlohmann::json small_section(value json) {
  return nlohmann::json::parse(std::string_view(simdjson::to_json_string(json)));
}

AddedToken parse_added_token(object json) {
  AddedToken token;
  std::set<std::string_view> seen;
  for (auto field : json) {
    std::string_view key = field.unescaped_key();
    value item = field.value();
    if (key == "id")
      token.id = parse_id(item);
    else if (key == "content")
      token.content = std::string_view(item.get_string());
    else if (key == "single_word")
      token.single_word = item.get_bool();
    else if (key == "lstrip")
      token.lstrip = item.get_bool();
    else if (key == "rstrip")
      token.rstrip = item.get_bool();
    else if (key == "normalized")
      token.normalized = item.get_bool();
    else if (key == "special")
      token.special = item.get_bool();
    else
      throw unsupported(fmt::format("added_tokens: key '{}'", key));
    seen.insert(key);
  }
  for (std::string_view key : {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special"}) {
    if (!seen.contains(key)) {
      throw Error(ErrorKind::bad_input,
                  fmt::format("added token '{}' (id {}) lacks '{}'", token.content, token.id, key));
    }
  }
  return token;
}

std::vector<AddedToken> parse_added_tokens(array json) {
  std::vector<AddedToken> tokens;
  for (object token : json) tokens.push_back(parse_added_token(token));
  return tokens;
}

std::vector<VocabularyEntry> parse_vocabulary(object json) {
  std::vector<VocabularyEntry> entries;
  for (auto field : json) {
    std::string_view token = field.unescaped_key();
    entries.push_back({token, parse_id(field.value())});
  }
  return entries;
}

// ["a", "b"], as it is written today.
MergeEntry parse_merge_pair(array json) {
  std::array<std::string_view, 2> sides;
  std::size_t count = 0;
  for (auto side : json) {
    std::string_view text = side.get_string();
    if (count < 2) sides[count] = text;
    ++count;
  }
  if (count != 2)
    throw Error(ErrorKind::bad_input, fmt::format("merges: an entry has {} parts, not 2", count));
  return {sides[0], sides[1]};
}

// "a b", as it was written until 2024; there no token holds a space.
MergeEntry parse_merge_line(std::string_view line) {
  auto space = line.find(' ');
  if (space == line.npos || line.find(' ', space + 1) != line.npos) {
    throw Error(ErrorKind::bad_input,
                fmt::format("merges: '{}' is not two tokens with a space between", line));
  }
  return {line.substr(0, space), line.substr(space + 1)};
}

std::vector<MergeEntry> parse_merges(array json) {
  std::vector<MergeEntry> merges;
  std::optional<json_type> form;
  for (value entry : json) {
    json_type type = entry.type();
    if (type != form.value_or(type))
      throw Error(ErrorKind::bad_input, "merges: both forms, [\"a\", \"b\"] and \"a b\"");
    form = type;
    if (type == json_type::array) {
      merges.push_back(parse_merge_pair(entry.get_array()));
      continue;
    }
    std::string_view line = entry.get_string();
    if (!line.starts_with("#version"))
      merges.push_back(parse_merge_line(line));  // a heading of the oldest files
  }
  return merges;
}

std::optional<std::string> parse_optional_text(value json) {
  if (json.is_null()) return std::nullopt;
  return std::string(std::string_view(json.get_string()));
}

void refuse_affix(std::string_view key, value json) {
  if (!parse_optional_text(json).value_or("").empty()) throw unsupported(fmt::format("model: {}", key));
}

void parse_model(object json, TokenizerJson& result) {
  bool has_vocabulary = false;
  bool has_merges = false;
  for (auto field : json) {
    std::string_view key = field.unescaped_key();
    value item = field.value();
    if (key == "type") {
      std::string_view type = item.get_string();
      if (type != "BPE") throw unsupported(fmt::format("model: type '{}'", type));
    } else if (key == "dropout") {
      if (!item.is_null() && double(item.get_double()) != 0) throw unsupported("model: dropout");
    } else if (key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
      refuse_affix(key, item);
    } else if (key == "unk_token") {
      result.bpe.unk_token = parse_optional_text(item);
    } else if (key == "fuse_unk") {
      result.bpe.fuse_unk = item.get_bool();
    } else if (key == "byte_fallback") {
      result.bpe.byte_fallback = item.get_bool();
    } else if (key == "ignore_merges") {
      result.bpe.ignore_merges = item.get_bool();
    } else if (key == "vocab") {
      result.vocabulary = parse_vocabulary(item.get_object());
      has_vocabulary = true;
    } else if (key == "merges") {
      result.merges = parse_merges(item.get_array());
      has_merges = true;
    } else {
      throw unsupported(fmt::format("model: key '{}'", key));
    }
  }
  if (!has_vocabulary || !has_merges) {
    throw Error(ErrorKind::bad_input,
                fmt::format("model: there is no '{}'", has_vocabulary ? "merges" : "vocab"));
  }
}

// Sections that only matter for other uses.  `truncation` and `padding` are set by whoever encodes (the
// reference overrides both with its own); `decoder` turns ids into text.
constexpr std::string_view kUnused[] = {"version", "truncation", "padding", "decoder"};

void parse_root(object json, TokenizerJson& result) {
  nlohmann::json post_processor;
  bool has_model = false;
  for (auto field : json) {
    std::string_view key = field.unescaped_key();
    value item = field.value();
    if (key == "added_tokens") {
      result.added_tokens = parse_added_tokens(item.get_array());
    } else if (key == "normalizer") {
      result.normalizer = parse_normalizer(small_section(item));
    } else if (key == "pre_tokenizer") {
      result.pre_tokenizer = parse_pre_tokenizer(small_section(item));
    } else if (key == "post_processor") {
      post_processor = small_section(item);
    } else if (key == "model") {
      parse_model(item.get_object(), result);
      has_model = true;
    } else if (std::ranges::find(kUnused, key) == std::ranges::end(kUnused)) {
      throw unsupported(fmt::format("key '{}'", key));
    }
  }
  if (!has_model) throw Error(ErrorKind::bad_input, "there is no 'model'");
  result.frame = parse_post_processor(post_processor);
}

}  // namespace

TokenizerJson read_tokenizer_json(const std::filesystem::path& path) {
  auto memory = std::make_shared<Document>();
  memory->text = read_file(path);
  TokenizerJson result;
  result.document = memory;
  try {
    document json = memory->json.iterate(memory->text);
    parse_root(json.get_object(), result);
    bool at_end = json.current_location().error() == simdjson::OUT_OF_BOUNDS;
    if (!at_end) throw Error(ErrorKind::bad_input, "something follows the JSON object");
  } catch (const simdjson::simdjson_error& e) {
    throw Error(ErrorKind::bad_input, fmt::format("is damaged or not a tokenizer: {}", e.what()),
                "the download is probably cut short: fetch the file again");
  } catch (const nlohmann::json::exception& e) {
    throw Error(ErrorKind::bad_input, fmt::format("a section is not as it should be: {}", e.what()),
                "use the tokenizer.json that was published with the text encoder");
  }
  return result;
}

}  // namespace sluice::ltx2
