// Times Checkpoint::open on headers of many tensors: one file, and a set of shards with an index.
//
//   bench_headers [TENSORS [ROUNDS]]      100000 tensors, 11 rounds
#include <sluice/checkpoint.h>

#include "bytes/format/json_events.h"
#include "support/synthetic_file.h"
#include "support/temporary_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <span>

namespace sluice {
namespace {

// Named as a mixture of experts names its own, in the order of their place in the file.
std::string name_of(int number) {
  constexpr const char* kParts[] = {"gate_proj.weight", "up_proj.weight", "down_proj.weight",
                                    "down_proj.weight_scale"};
  return fmt::format("model.layers.{}.mlp.experts.{}.{}", number / 512, number / 4 % 128, kParts[number % 4]);
}

std::string header_of(int first, int last) {
  std::string header = R"({"__metadata__":{"format":"pt"})";
  Bytes end = 0;
  for (int number = first; number < last; ++number) {
    header += fmt::format(R"(,"{}":{{"dtype":"BF16","shape":[2,8],"data_offsets":[{},{}]}})", name_of(number),
                          end, end + 32);
    end += 32;
  }
  return header + "}";
}

void write_tensors(const std::filesystem::path& path, int first, int last) {
  test::SyntheticFile().header(header_of(first, last)).write_to(path);
  std::filesystem::resize_file(path,
                               std::filesystem::file_size(path) + 32u * static_cast<Bytes>(last - first));
}

// The file alone, and the same tensors in eight shards.
void write_shards(const std::filesystem::path& folder, int tensors) {
  constexpr int kShards = 8;
  std::vector<std::pair<std::string, std::string>> weight_map;
  for (int shard = 0; shard < kShards; ++shard) {
    const std::string file = fmt::format("model-{}.safetensors", shard);
    const int first = tensors * shard / kShards, last = tensors * (shard + 1) / kShards;
    write_tensors(folder / file, first, last);
    for (int number = first; number < last; ++number) weight_map.emplace_back(name_of(number), file);
  }
  test::write_file(folder / "model.safetensors.index.json", test::index_text(weight_map));
}

void measure(std::string_view name, int rounds, const std::function<std::size_t()>& work) {
  std::vector<double> seconds;
  std::size_t result = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    result = work();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::ranges::sort(seconds);
  fmt::print("{:<24}{:>9}  median {:.3f} s, {:.3f} to {:.3f}\n", name, result, seconds[seconds.size() / 2],
             seconds.front(), seconds.back());
}

void run(int tensors, int rounds) {
  const test::TemporaryFolder folder;
  const std::filesystem::path file = folder / "one.safetensors", shards = folder / "shards";
  std::filesystem::create_directory(shards);
  write_tensors(file, 0, tensors);
  write_shards(shards, tensors);
  const std::string header = header_of(0, tensors);

  measure("JSON of the header", rounds, [&] {
    bytes::check_json(header, "header");
    return header.size();
  });
  measure("open one file", rounds, [&] { return Checkpoint::open(file).tensors().size(); });
  measure("open eight and an index", rounds, [&] { return Checkpoint::open(shards).tensors().size(); });
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  auto number = [&](int at, int otherwise) { return argc > at ? std::atoi(argv[at]) : otherwise; };
  sluice::run(number(1, 100'000), number(2, 11));
}
