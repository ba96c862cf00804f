#include "bytes/format/impostor.h"

#include "base/file.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <string>

namespace sluice::bytes {
namespace {

constexpr std::string_view kDownloadAgain = "fetch the file itself again";

// A length below 2^32 and then a brace: the first four bytes of a header's length may look like anything.
bool begins_like_safetensors(std::string_view first) {
  return first.size() > 8 && first.substr(4, 4) == std::string_view("\0\0\0\0", 4) && first[8] == '{';
}

bool begins_like_markup(std::string_view first) {
  if (first.starts_with("\xef\xbb\xbf")) first.remove_prefix(3);
  while (!first.empty() && std::isspace(static_cast<unsigned char>(first.front()))) first.remove_prefix(1);
  std::string start(first.substr(0, 16));
  std::ranges::transform(start, start.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  static constexpr std::array<std::string_view, 6> kStarts = {"<!doctype", "<html", "<head",
                                                              "<body",     "<?xml", "<!--"};
  return std::ranges::any_of(kStarts, [&](std::string_view tag) { return start.starts_with(tag); });
}

// Protocols 2 to 5 and then an operation code, never 0: a header's length may begin with the same two bytes.
bool begins_like_pickle(std::string_view first) {
  return first.size() >= 3 && first[0] == '\x80' && first[1] >= 2 && first[1] <= 5 && first[2] != 0;
}

// The first box of an ISO media file: its length in four bytes, then its kind.
bool begins_like_video(std::string_view first) {
  return first.size() >= 8 && first.substr(4, 4) == "ftyp";
}

}  // namespace

std::optional<Impostor> recognize_impostor(std::span<const std::byte> first_bytes) {
  std::string_view first(reinterpret_cast<const char*>(first_bytes.data()), first_bytes.size());
  if (first.empty()) return Impostor{"an empty file", kDownloadAgain};
  if (begins_like_safetensors(first)) return std::nullopt;
  if (first.starts_with("version https://git-lfs")) {
    return Impostor{"a Git LFS pointer", "run `git lfs pull` in that folder, or fetch the file itself"};
  }
  if (begins_like_markup(first)) {
    return Impostor{"a web page", "the download needs a login or a direct link: fetch the file itself"};
  }
  if (first.starts_with("GGUF")) {
    return Impostor{"a GGUF file", "sluice reads safetensors only: fetch the safetensors version"};
  }
  if (first.starts_with("PK\x03\x04") || first.starts_with("PK\x05\x06")) {
    return Impostor{"a zip file (perhaps a PyTorch .pt)", "fetch or export the safetensors version"};
  }
  if (begins_like_pickle(first)) {
    return Impostor{"a Python pickle (perhaps a PyTorch .bin)", "fetch or export the safetensors version"};
  }
  if (begins_like_video(first)) return Impostor{"a video", "give the weights; sluice inspect shows videos"};
  if (first.starts_with("\x1f\x8b")) return Impostor{"a gzip file", "unpack it with gunzip first"};
  return std::nullopt;
}

bool is_video(const std::filesystem::path& path) {
  std::array<char, 8> first{};
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;  // reading a FIFO would wait
  std::ifstream file(path, std::ios::binary);
  return file.read(first.data(), first.size()) && begins_like_video({first.data(), first.size()});
}

void refuse_impostor(const std::filesystem::path& path, std::string_view expected) {
  File file = File::open(path);
  std::array<std::byte, kImpostorBytes> buffer;
  std::size_t size = std::min<Bytes>(file.identity().size, buffer.size());
  auto first = std::span(buffer).first(size);
  read_exact(file, first, 0, "the first bytes");
  if (auto impostor = recognize_impostor(first)) {
    throw Error(ErrorKind::bad_input,
                fmt::format("{}: is {}, not {}", path.string(), impostor->what, expected),
                std::string(impostor->remedy));
  }
}

}  // namespace sluice::bytes
