#include "models/ltx2/text/tokenizer_parts.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>

namespace sluice::ltx2 {
namespace {

using nlohmann::json;

constexpr std::string_view kHint = "use the tokenizer.json that was published with the text encoder";

Error unsupported(std::string_view section, std::string_view what) {
  return Error(ErrorKind::bad_input, fmt::format("{}: {} is not supported", section, what),
               std::string(kHint));
}

void refuse_other_keys(const json& object, std::string_view section,
                       std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(known, key) == known.end())
      throw unsupported(section, fmt::format("key '{}'", key));
  }
}

// {"String": "…"}; the other kind, {"Regex": "…"}, is not supported.
std::string parse_pattern(const json& pattern, std::string_view section) {
  if (!pattern.contains("String")) throw unsupported(section, fmt::format("pattern {}", pattern.dump()));
  auto text = pattern.at("String").get<std::string>();
  if (text.empty()) throw unsupported(section, "an empty pattern");
  return text;
}

void append_normalizer(const json& section, Normalizer& steps) {
  auto type = section.at("type").get<std::string>();
  if (type == "Sequence") {
    refuse_other_keys(section, "normalizer", {"type", "normalizers"});
    for (const json& step : section.at("normalizers")) append_normalizer(step, steps);
  } else if (type == "Replace") {
    refuse_other_keys(section, "normalizer", {"type", "pattern", "content"});
    steps.push_back(Replace{parse_pattern(section.at("pattern"), "normalizer"),
                            section.at("content").get<std::string>()});
  } else if (type == "Prepend") {
    refuse_other_keys(section, "normalizer", {"type", "prepend"});
    steps.push_back(Prepend{section.at("prepend").get<std::string>()});
  } else {
    throw unsupported("normalizer", fmt::format("type '{}'", type));
  }
}

void append_special(const json& section, const std::string& name, std::vector<TokenId>& ids) {
  const json& special = section.at("special_tokens").at(name);
  for (const json& id : special.at("ids")) {
    auto value = id.get<std::int64_t>();
    if (value < 0 || value > std::numeric_limits<TokenId>::max()) {
      throw Error(ErrorKind::bad_input,
                  fmt::format("post_processor: token '{}' has the impossible id {}", name, value));
    }
    ids.push_back(static_cast<TokenId>(value));
  }
}

}  // namespace

Normalizer parse_normalizer(const json& section) {
  Normalizer steps;
  if (!section.is_null()) append_normalizer(section, steps);
  return steps;
}

PreTokenizer parse_pre_tokenizer(const json& section) {
  if (section.is_null()) return {};
  auto type = section.at("type").get<std::string>();
  if (type != "Split") throw unsupported("pre_tokenizer", fmt::format("type '{}'", type));
  refuse_other_keys(section, "pre_tokenizer", {"type", "pattern", "behavior", "invert"});
  auto behavior = section.at("behavior").get<std::string>();
  if (behavior != "MergedWithPrevious")
    throw unsupported("pre_tokenizer", fmt::format("behavior '{}'", behavior));
  if (section.at("invert").get<bool>()) throw unsupported("pre_tokenizer", "invert");
  return {parse_pattern(section.at("pattern"), "pre_tokenizer")};
}

Template parse_post_processor(const json& section) {
  if (section.is_null()) {
    throw Error(ErrorKind::bad_input,
                "there is no post_processor, so nothing says that a text begins with <bos>",
                std::string(kHint));
  }
  auto type = section.at("type").get<std::string>();
  if (type != "TemplateProcessing") throw unsupported("post_processor", fmt::format("type '{}'", type));
  refuse_other_keys(section, "post_processor", {"type", "single", "pair", "special_tokens"});
  Template result;
  bool text_seen = false;
  for (const json& item : section.at("single")) {
    if (item.contains("SpecialToken")) {
      auto name = item.at("SpecialToken").at("id").get<std::string>();
      append_special(section, name, text_seen ? result.after : result.before);
    } else if (!text_seen && item.at("Sequence").at("id") == "A") {
      text_seen = true;
    } else {
      throw unsupported("post_processor", fmt::format("template item {}", item.dump()));
    }
  }
  if (!text_seen) throw unsupported("post_processor", "a template without the text");
  return result;
}

}  // namespace sluice::ltx2
