#include "weights/quantize/manifest.h"

#include "base/text.h"

#include <sluice/error.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace sluice::weights {
namespace {

using nlohmann::ordered_json;

// Raised when the same input would give other bytes.
constexpr int kVersion = 1;

ordered_json source_object(const SourceFile& source, Times times) {
  ordered_json object = {{"file", source.name}, {"size", source.size}};
  if (times == Times::kept) object["modified_ns"] = source.modified_ns;
  object["header_xxh3_128"] = source.header_checksum;
  return object;
}

std::string source_difference(const SourceFile& begun, const SourceFile& wanted) {
  if (begun.name != wanted.name)
    return fmt::format("from {}, not {}", in_quotes(begun.name), in_quotes(wanted.name));
  if (begun.size != wanted.size)
    return fmt::format("when {} had {} bytes, not {}", in_quotes(begun.name), begun.size, wanted.size);
  if (begun.header_checksum != wanted.header_checksum)
    return fmt::format("when {} had another header", in_quotes(begun.name));
  return fmt::format("before {} was written to", in_quotes(begun.name));
}

// A run that was killed when all was done has left its times out.
bool same(const SourceFile& begun, SourceFile wanted) {
  if (begun.modified_ns == 0) wanted.modified_ns = 0;
  return begun == wanted;
}

}  // namespace

std::string to_json(const QuantizationManifest& manifest, Times times) {
  ordered_json object = {{"version", kVersion},
                         {"format", manifest.format},
                         {"components", manifest.components},
                         {"shard_size", manifest.shard_size},
                         {"quantized_tensors", manifest.quantized_tensors},
                         {"sources", ordered_json::array()},
                         {"files", ordered_json::array()}};
  for (const SourceFile& source : manifest.sources) object["sources"].push_back(source_object(source, times));
  for (const FinishedFile& file : manifest.files) {
    object["files"].push_back({{"file", file.name}, {"size", file.size}, {"xxh3_128", file.checksum}});
  }
  return object.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

QuantizationManifest parse_manifest(std::string_view json, std::string_view file) try {
  const auto object = nlohmann::json::parse(json);
  if (object.at("version") != kVersion) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: is of version {}, this program writes {}", file, object.at("version").dump(),
                            kVersion),
                "remove the folder and begin again");
  }
  QuantizationManifest manifest{.format = object.at("format"),
                                .components = object.at("components"),
                                .shard_size = object.at("shard_size"),
                                .quantized_tensors = object.at("quantized_tensors")};
  for (const auto& source : object.at("sources")) {
    manifest.sources.push_back({.name = source.at("file"),
                                .size = source.at("size"),
                                .modified_ns = source.value("modified_ns", std::int64_t{0}),
                                .header_checksum = source.at("header_xxh3_128")});
  }
  for (const auto& done : object.at("files"))
    manifest.files.push_back({done.at("file"), done.at("size"), done.at("xxh3_128")});
  return manifest;
} catch (const nlohmann::json::exception& problem) {
  throw Error(ErrorKind::bad_input,
              fmt::format("{}: is no manifest of a quantized folder: {}", file, problem.what()),
              "remove the folder and begin again");
}

std::string difference(const QuantizationManifest& begun, const QuantizationManifest& wanted) {
  if (begun.format != wanted.format)
    return fmt::format("with --format {}, not {}", begun.format, wanted.format);
  if (begun.components != wanted.components) {
    return fmt::format("with --components {}, not {}", fmt::join(begun.components, ","),
                       fmt::join(wanted.components, ","));
  }
  if (begun.shard_size != wanted.shard_size)
    return fmt::format("with --shard-size {}, not {}", begun.shard_size, wanted.shard_size);
  const auto [one, other] = std::ranges::mismatch(begun.sources, wanted.sources, same);
  if (one != begun.sources.end() && other != wanted.sources.end()) return source_difference(*one, *other);
  if (begun.sources.size() != wanted.sources.size())
    return fmt::format("from {} files, not {}", begun.sources.size(), wanted.sources.size());
  return {};
}

}  // namespace sluice::weights
