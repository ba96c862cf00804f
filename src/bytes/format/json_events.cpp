#include "bytes/format/json_events.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace sluice::bytes {
namespace {

// The form in which nlohmann::json hands out events.  Its parser keeps one bit a nesting level and no
// recursion.
class Adapter {
 public:
  using json = nlohmann::json;

  Adapter(std::string_view where, JsonEvents& handler) : where_(where), handler_(handler) {}

  bool null() { return other("null"); }
  bool boolean(bool value) { return other(value ? "true" : "false"); }
  bool number_integer(json::number_integer_t value) { return other(fmt::format("{}", value)); }
  bool number_float(json::number_float_t, const std::string& token) { return other(token); }
  bool number_unsigned(json::number_unsigned_t value) {
    handler_.integer(value);
    return true;
  }
  bool string(std::string& value) {
    handler_.text(value);
    return true;
  }
  bool binary(json::binary_t&) { return false; }  // no such thing in text
  bool start_object(std::size_t) { return begin(JsonEvents::Nest::object); }
  bool start_array(std::size_t) { return begin(JsonEvents::Nest::array); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool key(std::string& name) {
    handler_.key(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& reason) {
    bool encoding = std::string_view(reason.what()).find("UTF-8") != std::string_view::npos;
    throw Error(ErrorKind::corrupt_file,
                fmt::format("{} is not valid {} at byte {}", where_, encoding ? "UTF-8" : "JSON", position),
                "the file is damaged or was not written by a safetensors tool: fetch it again");
  }

 private:
  bool other(std::string_view token) {
    handler_.other(token);
    return true;
  }
  bool begin(JsonEvents::Nest nest) {
    if (++depth_ > kMaxDepth) {
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{} is nested deeper than {} levels", where_, kMaxDepth),
                  "the file is damaged or was made to do harm: fetch it from a source you trust");
    }
    handler_.begin(nest);
    return true;
  }
  bool end() {
    --depth_;
    handler_.end();
    return true;
  }

  std::string_view where_;
  JsonEvents& handler_;
  int depth_ = 0;
};

class Nobody final : public JsonEvents {
  void begin(Nest) override {}
  void end() override {}
  void key(std::string&) override {}
  void text(std::string&) override {}
  void integer(std::uint64_t) override {}
  void other(std::string_view) override {}
};

}  // namespace

void parse_json(std::string_view json, std::string_view where, JsonEvents& handler) {
  // The parser takes a NUL for the end of its input, and would not see what follows.
  if (auto nul = json.find('\0'); nul != std::string_view::npos) {
    throw Error(ErrorKind::corrupt_file, fmt::format("{} is not valid JSON: byte {} is a NUL", where, nul),
                "the file is damaged: fetch it again");
  }
  Adapter adapter(where, handler);
  nlohmann::json::sax_parse(json.data(), json.data() + json.size(), &adapter);
}

void check_json(std::string_view json, std::string_view where) {
  Nobody nobody;
  parse_json(json, where, nobody);
}

bool is_json_container(std::string_view text) {
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  try {
    check_json(text, "text");
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace sluice::bytes
