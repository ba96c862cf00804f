#include "cli/json_output.h"

#include "base/text.h"

#include <nlohmann/json.hpp>

#include <iostream>

namespace sluice::cli {

void print_json(const nlohmann::json& object) {
  std::cout << escape_controls(object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace)) << "\n";
}

}  // namespace sluice::cli
