#pragma once
// JSON as this library hands it out.  Names of files may hold bytes that are no UTF-8, which JSON cannot:
// they become U+FFFD.  Control characters of any kind are escaped: it may go to a terminal.

#include "base/text.h"

#include <nlohmann/json.hpp>

#include <string>

namespace sluice::pipeline {

enum class JsonLayout { one_line, indented };

inline std::string json_text(const nlohmann::json& json, JsonLayout layout = JsonLayout::indented) {
  return escape_controls(json.dump(layout == JsonLayout::indented ? 2 : -1, ' ', /*ensure_ascii=*/false,
                                   nlohmann::json::error_handler_t::replace));
}

}  // namespace sluice::pipeline
