#pragma once
// Where a load can go: a dictionary of tensors in memory of its own, memory that exists already (the
// parameters of a model), another file.  Sinks of one's own derive from TensorSink.

#include <sluice/load.h>
#include <sluice/slab.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// Where each target lies in a slab: unchanged neighbours of a file stay neighbours, at addresses that agree
// with their file offset modulo 4096, so that a direct read puts them in place; targets whose offset does not
// suit their dtype, or that are computed, are aligned to 64 bytes.
struct SlabLayout {
  std::vector<Bytes> offsets;  // by index of LoadPlan::targets()
  Bytes size = 0;
};
SlabLayout lay_out(const LoadPlan& plan);

// A dictionary of tensors in a slab.
class TensorDictionary {
 public:
  struct Entry {
    TargetTensor tensor;
    std::span<std::byte> bytes;
  };
  const Entry* find(std::string_view name) const;
  const std::vector<Entry>& entries() const { return entries_; }  // in the plan's order
  const Slab& slab() const { return *slab_; }

 private:
  friend TensorDictionary load_dictionary(const LoadPlan&, std::shared_ptr<Slab>, const ReadOptions&,
                                          LoadReport*, Progress*, const CancelToken*);
  std::shared_ptr<Slab> slab_;
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

// Loads everything of the plan into `slab` (nullptr: a new one).  A dictionary that was loaded into the same
// slab before is overwritten.
TensorDictionary load_dictionary(const LoadPlan& plan, std::shared_ptr<Slab> slab = nullptr,
                                 const ReadOptions& options = {}, LoadReport* report = nullptr,
                                 Progress* progress = nullptr, const CancelToken* cancel = nullptr);

// Memory that exists already: a parameter of somebody's model.
struct Destination {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<std::int64_t> shape;
  std::span<std::byte> bytes;  // contiguous, row-major
};

enum class UnexpectedTensors { refuse, ignore };

// Streams the plan into `destinations`.  First every name, dtype and shape is compared, exactly: all that is
// missing, unexpected or of another kind is listed in one Error(mismatch), and no byte has been written.
LoadReport load_into(const LoadPlan& plan, std::span<const Destination> destinations,
                     UnexpectedTensors unexpected = UnexpectedTensors::refuse,
                     const ReadOptions& options = {}, Progress* progress = nullptr,
                     const CancelToken* cancel = nullptr);

// Writes the plan's targets as one safetensors file; it appears under its name when complete.
LoadReport load_to_file(const LoadPlan& plan, const std::filesystem::path& path,
                        const std::map<std::string, std::string>& metadata = {},
                        const ReadOptions& options = {}, Progress* progress = nullptr,
                        const CancelToken* cancel = nullptr);

}  // namespace sluice
