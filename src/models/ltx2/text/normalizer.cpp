#include "models/ltx2/text/normalizer.h"

namespace sluice::ltx2 {
namespace {

std::string rewrite(const Replace& step, std::string_view text) {
  std::string result;
  result.reserve(text.size());
  std::size_t done = 0;
  for (auto at = text.find(step.pattern); at != text.npos; at = text.find(step.pattern, done)) {
    result.append(text.substr(done, at - done)).append(step.content);
    done = at + step.pattern.size();
  }
  return result.append(text.substr(done));
}

std::string rewrite(const Prepend& step, std::string_view text) {
  return text.empty() ? std::string() : step.text + std::string(text);
}

}  // namespace

std::string normalize(const Normalizer& normalizer, std::string text) {
  for (const auto& any : normalizer)
    text = std::visit([&](const auto& step) { return rewrite(step, text); }, any);
  return text;
}

std::vector<std::string_view> pre_tokenize(const PreTokenizer& pre_tokenizer, std::string_view text) {
  const std::string& delimiter = pre_tokenizer.delimiter;
  std::vector<std::string_view> pieces;
  if (!delimiter.empty()) {
    for (auto at = text.find(delimiter); at != text.npos; at = text.find(delimiter)) {
      pieces.push_back(text.substr(0, at + delimiter.size()));
      text.remove_prefix(at + delimiter.size());
    }
  }
  if (!text.empty()) pieces.push_back(text);
  return pieces;
}

}  // namespace sluice::ltx2
