#include "cli/rule_text.h"

#include "base/text.h"
#include "bytes/format/dtype.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <string>

namespace sluice::cli {
namespace {

Dtype parse_dtype(std::string_view text) {
  std::string name(text);
  for (char& letter : name) {
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  }
  if (const auto dtype = bytes::find_dtype(name)) return *dtype;
  throw Error(ErrorKind::usage, fmt::format("--cast: {} is no element type", in_quotes(text)),
              "write it as in the file's header: F32, BF16, F16, F8_E4M3, …");
}

}  // namespace

RenameRule parse_rename(std::string_view text) {
  const std::size_t sign = text.find('=');
  if (sign == std::string_view::npos || sign == 0 || sign + 1 == text.size()) {
    throw Error(ErrorKind::usage, fmt::format("--rename {} has no two names", in_quotes(text)),
                "write it like --rename 'model.diffusion_model.*=*'");
  }
  return {std::string(text.substr(0, sign)), std::string(text.substr(sign + 1))};
}

CastRule parse_cast(std::string_view text) {
  CastRule rule{.glob = "*", .to = Dtype::F32, .from = {}};
  if (const std::size_t sign = text.rfind('='); sign != std::string_view::npos) {
    rule.glob = text.substr(0, sign);
    text.remove_prefix(sign + 1);
  }
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    rule.from = parse_dtype(text.substr(0, colon));
    text.remove_prefix(colon + 1);
  }
  rule.to = parse_dtype(text);
  return rule;
}

}  // namespace sluice::cli
