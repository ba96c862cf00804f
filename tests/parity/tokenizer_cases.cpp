// tokenizer/*: texts to ids, whole and as the rows a text encoder gets.
#include "models/ltx2/text/tokenizer.h"
#include "parity/registry.h"

#include <ATen/ATen.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

namespace sluice::parity {
namespace {

std::vector<std::string> read_texts(const Case& parity_case) {
  std::ifstream file(parity_case.file("cases.json"));
  const auto texts = nlohmann::json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!texts.is_array()) throw MalformedCase("cases.json: not a list of texts");
  return texts.get<std::vector<std::string>>();
}

Results run_encode(const Case& parity_case) {
  const auto tokenizer =
      ltx2::Tokenizer::load(parity_case.file(parity_case.config_value<std::string>("tokenizer_file")));
  const auto max_length = parity_case.param<std::size_t>("max_length");
  const std::vector<std::string> texts = read_texts(parity_case);
  const auto rows = static_cast<std::int64_t>(texts.size()), columns = static_cast<std::int64_t>(max_length);

  std::vector<std::int64_t> ids, offsets = {0};
  at::Tensor padded = at::full({rows, columns}, static_cast<std::int64_t>(tokenizer.pad_id()), at::kLong);
  at::Tensor mask = at::zeros({rows, columns}, at::kLong);
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::string& text = texts[static_cast<std::size_t>(row)];
    std::ranges::copy(tokenizer.encode(text), std::back_inserter(ids));
    offsets.push_back(static_cast<std::int64_t>(ids.size()));
    const auto kept = tokenizer.encode_truncated(text, max_length).ids;
    const std::vector<std::int64_t> wide(kept.begin(), kept.end());
    const auto tokens = static_cast<std::int64_t>(wide.size());
    padded[row].narrow(0, columns - tokens, tokens).copy_(at::tensor(wide, at::kLong));
    mask[row].narrow(0, columns - tokens, tokens).fill_(1);
  }
  Results results;
  results.add("ids", at::tensor(ids, at::kLong));
  results.add("offsets", at::tensor(offsets, at::kLong));
  results.add("input_ids", padded);
  results.add("attention_mask", mask);
  return results;
}

}  // namespace

void add_tokenizer(Registry& registry) {
  registry.add("tokenizer", "", run_encode);
}

}  // namespace sluice::parity
