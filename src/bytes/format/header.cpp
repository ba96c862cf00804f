#include "bytes/format/header.h"

#include "base/text.h"
#include "bytes/format/dtype.h"
#include "bytes/format/json_events.h"

#include <sluice/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>
#include <utility>

namespace sluice::bytes {
namespace {

constexpr std::string_view kDamaged =
    "the file is damaged or was not written by a safetensors tool: fetch it again";
constexpr std::string_view kMetadata = "__metadata__";

// A shape that stands in a message: a hostile one has millions of extents.
std::string shown_shape(const std::vector<std::int64_t>& shape) {
  constexpr std::size_t kMost = 16;
  if (shape.size() <= kMost) return format_shape(shape);
  std::string shown = format_shape(std::span(shape).first(kMost));
  shown.pop_back();
  return fmt::format("{}, … {} extents]", shown, shape.size());
}

// Builds the table from events.  Depth 1 is the header's object, depth 2 an entry or the metadata, depth 3
// the lists of an entry.
class HeaderBuilder final : public JsonEvents {
 public:
  explicit HeaderBuilder(std::string_view file) : file_(file) {}

  void begin(Nest nest) override {
    ++depth_;
    if (skipped_from_ != 0) return;
    if (depth_ == 2 && nest == Nest::object) {
      if (!in_metadata_) start_entry();
    } else if (depth_ == 3 && !in_metadata_ && field_ == Field::unknown) {
      skipped_from_ = depth_;
    } else if (depth_ == 3 && !in_metadata_ && field_ != Field::dtype && nest == Nest::array) {
      // shape or data_offsets: the numbers follow.
    } else if (depth_ > 1) {
      refuse_value(nest == Nest::object ? "an object" : "a list");
    }
  }

  void end() override {
    if (skipped_from_ == depth_)
      skipped_from_ = 0;
    else if (skipped_from_ == 0 && depth_ == 2 && !in_metadata_)
      finish_entry();
    --depth_;
  }

  void key(std::string& name) override {
    if (skipped_from_ != 0) return;
    if (name.find('\0') != std::string::npos)
      fail(fmt::format("name {} holds a NUL character", in_quotes(name)));
    if (depth_ == 1) {
      bool seen_before = in_header_metadata(name);
      if (seen_before) fail("__metadata__ appears twice");
      entry_ = {};
      entry_.name = std::move(name);
    } else if (in_metadata_) {
      metadata_key_ = std::move(name);
      if (table_.metadata.contains(metadata_key_)) {
        fail(fmt::format("__metadata__ has the key {} twice", in_quotes(metadata_key_)));
      }
    } else {
      start_field(name);
    }
  }

  void text(std::string& value) override {
    if (skipped_from_ != 0) return;
    if (depth_ == 2 && in_metadata_) {
      table_.metadata.emplace(std::move(metadata_key_), std::move(value));
    } else if (depth_ == 2 && field_ == Field::dtype) {
      auto dtype = find_dtype(value);
      if (!dtype) {
        fail(fmt::format("tensor {} has the unknown dtype {}", tensor(), in_quotes(value)),
             "the file is damaged or newer than safetensors 0.8, the version sluice knows");
      }
      entry_.dtype = *dtype;
    } else if (!(depth_ == 2 && field_ == Field::unknown)) {
      refuse_value(in_quotes(value));
    }
  }

  void integer(std::uint64_t value) override {
    if (skipped_from_ != 0) return;
    if (depth_ == 3 && !in_metadata_ && field_ == Field::shape) {
      add_extent(value);
    } else if (depth_ == 3 && !in_metadata_ && field_ == Field::offsets) {
      // A third number only has to be noticed.
      if (offset_count_ < 2) offsets_[offset_count_] = value;
      ++offset_count_;
    } else if (!(depth_ == 2 && !in_metadata_ && field_ == Field::unknown)) {
      refuse_value(fmt::format("{}", value));
    }
  }

  void other(std::string_view token) override {
    if (skipped_from_ != 0 || (depth_ == 2 && !in_metadata_ && field_ == Field::unknown)) return;
    refuse_value(std::string(token.substr(0, 40)));
  }

  HeaderTable take() { return std::move(table_); }

 private:
  enum class Field { dtype = 1, shape = 2, offsets = 4, unknown = 8 };

  [[noreturn]] void fail(std::string_view what, std::string_view hint = kDamaged) const {
    throw Error(ErrorKind::corrupt_file, fmt::format("{}: {}", file_, what), std::string(hint));
  }

  // For messages only: of a good file's hundred thousand tensors none is put in quotes.
  std::string tensor() const { return in_quotes(entry_.name); }

  // A value of the wrong kind at the place where the walk stands.
  [[noreturn]] void refuse_value(std::string_view value) const {
    if (depth_ == 0) fail("header is no JSON object");
    if (in_metadata_) {
      bool whole = depth_ == 1 || (depth_ == 2 && metadata_key_.empty());
      if (whole) fail(fmt::format("__metadata__ is {}, not an object", value));
      fail(fmt::format("__metadata__ has {} under {}, not a string", value, in_quotes(metadata_key_)));
    }
    if (!in_entry_) fail(fmt::format("the entry of tensor {} is {}, not an object", tensor(), value));
    switch (field_) {
      case Field::dtype:
        fail(fmt::format("tensor {} has {} as dtype, not a word", tensor(), value));
      case Field::shape:
        fail(
            fmt::format("tensor {} has {} in its shape, where whole numbers from 0 belong", tensor(), value));
      default:
        fail(fmt::format("tensor {} has {} in its data_offsets, where two whole numbers belong", tensor(),
                         value));
    }
  }

  // Notes whether the key of depth 1 is the metadata's; true if there was one already.
  bool in_header_metadata(std::string_view name) {
    in_metadata_ = name == kMetadata;
    in_entry_ = false;
    metadata_key_.clear();
    return in_metadata_ && std::exchange(had_metadata_, true);
  }

  void start_entry() {
    in_entry_ = true;
    seen_ = 0;
    offset_count_ = 0;
    field_ = Field::unknown;
  }

  void start_field(std::string_view name) {
    field_ = name == "dtype"          ? Field::dtype
             : name == "shape"        ? Field::shape
             : name == "data_offsets" ? Field::offsets
                                      : Field::unknown;
    unsigned bit = static_cast<unsigned>(field_);
    if (field_ != Field::unknown && (seen_ & bit) != 0) {
      fail(fmt::format("tensor {} has {} twice", tensor(), name));
    }
    seen_ |= bit;
  }

  void add_extent(std::uint64_t value) {
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      fail(fmt::format("tensor {} has the extent {}, which exceeds 63 bits", tensor(), value));
    }
    entry_.shape.push_back(static_cast<std::int64_t>(value));
  }

  void finish_entry() {
    in_entry_ = false;
    for (auto [field, name] :
         {std::pair{Field::dtype, "dtype"}, {Field::shape, "shape"}, {Field::offsets, "data_offsets"}}) {
      if ((seen_ & static_cast<unsigned>(field)) == 0)
        fail(fmt::format("tensor {} has no {}", tensor(), name));
    }
    if (offset_count_ != 2)
      fail(fmt::format("tensor {} has {} data_offsets, not 2", tensor(), offset_count_));
    auto [begin, end] = std::pair(offsets_[0], offsets_[1]);
    if (begin > end)
      fail(fmt::format("tensor {} begins at byte {} after its end at byte {}", tensor(), begin, end));
    auto size = checked_size(entry_.dtype, entry_.shape);
    if (!size) {
      fail(fmt::format("tensor {} of {} {} has no size that 64 bits can count in whole bytes", tensor(),
                       dtype_name(entry_.dtype), shown_shape(entry_.shape)));
    }
    if (*size != end - begin) {
      fail(fmt::format("tensor {} of {} {} needs {} bytes, but its data_offsets [{}, {}] hold {}", tensor(),
                       dtype_name(entry_.dtype), shown_shape(entry_.shape), *size, begin, end, end - begin));
    }
    entry_.offset = begin;
    entry_.size = *size;
    table_.tensors.push_back(std::move(entry_));
  }

  std::string_view file_;
  HeaderTable table_;
  int depth_ = 0;
  int skipped_from_ = 0;  // depth of the unknown value that is being skipped; 0: none
  bool in_metadata_ = false;
  bool had_metadata_ = false;
  bool in_entry_ = false;
  std::string metadata_key_;
  TensorInfo entry_;
  Field field_ = Field::unknown;
  unsigned seen_ = 0;  // fields of the entry, as bits
  std::uint64_t offsets_[2] = {};
  std::size_t offset_count_ = 0;
};

void refuse_duplicates(const std::vector<TensorInfo>& sorted, std::string_view file) {
  auto twin = std::ranges::adjacent_find(sorted, {}, &TensorInfo::name);
  if (twin == sorted.end()) return;
  throw Error(ErrorKind::corrupt_file,
              fmt::format("{}: tensor {} appears twice in the header", file, in_quotes(twin->name)),
              std::string(kDamaged));
}

}  // namespace

HeaderTable parse_header(std::string_view json, std::string_view file) {
  if (!json.starts_with('{')) {
    throw Error(ErrorKind::corrupt_file, fmt::format("{}: header does not begin with '{{'", file),
                "this is no safetensors file, or it is damaged: fetch it again");
  }
  HeaderBuilder builder(file);
  parse_json(json, fmt::format("{}: header", file), builder);
  // Only spaces may follow the object: other white space is what the parser lets pass.
  std::size_t last = json.find_last_not_of(' ');
  if (json[last] != '}') {
    throw Error(ErrorKind::corrupt_file,
                fmt::format("{}: header has bytes after its object, at byte {}", file, last),
                std::string(kDamaged));
  }
  HeaderTable table = builder.take();
  std::ranges::sort(table.tensors, {}, &TensorInfo::name);
  refuse_duplicates(table.tensors, file);
  return table;
}

void throw_truncated(std::string_view file, Bytes file_size, Bytes needed, std::string_view what) {
  Bytes missing = needed - file_size;
  throw Error(ErrorKind::corrupt_file,
              fmt::format("{}: file has {} bytes, {} needs {}: {} bytes ({}) are missing", file, file_size,
                          what, needed, missing, format_bytes(missing)),
              "the download is probably cut short: fetch the file again");
}

void check_layout(const std::vector<TensorInfo>& tensors, Bytes header_size, Bytes file_size,
                  std::string_view file) {
  std::vector<const TensorInfo*> placed;
  placed.reserve(tensors.size());
  for (const TensorInfo& tensor : tensors) placed.push_back(&tensor);
  // Empty tensors sit on boundaries: before the tensor that begins at the same byte.
  std::ranges::sort(placed, {},
                    [](const TensorInfo* t) { return std::pair(t->offset, t->offset + t->size); });

  Bytes filled = 0;
  const TensorInfo* previous = nullptr;
  for (const TensorInfo* tensor : placed) {
    if (tensor->offset < filled) {
      throw Error(
          ErrorKind::corrupt_file,
          fmt::format(
              "{}: tensors {} and {} overlap: the first ends at byte {} of the data, the second begins at {}",
              file, in_quotes(previous->name), in_quotes(tensor->name), filled, tensor->offset),
          std::string(kDamaged));
    }
    if (tensor->offset > filled) {
      throw Error(ErrorKind::corrupt_file,
                  fmt::format("{}: bytes {} to {} of the data, before tensor {}, belong to no tensor", file,
                              filled, tensor->offset, in_quotes(tensor->name)),
                  std::string(kDamaged));
    }
    filled = tensor->offset + tensor->size;
    previous = tensor;
  }

  Bytes data_size = file_size - header_size;
  if (filled > data_size) {
    Bytes needed = 0;
    if (__builtin_add_overflow(header_size, filled, &needed)) needed = std::numeric_limits<Bytes>::max();
    throw_truncated(file, file_size, needed, "its header");
  }
  if (filled < data_size) {
    throw Error(
        ErrorKind::corrupt_file,
        fmt::format("{}: the last {} bytes belong to no tensor: file has {} bytes, its header needs {}", file,
                    data_size - filled, file_size, header_size + filled),
        std::string(kDamaged));
  }
}

}  // namespace sluice::bytes
