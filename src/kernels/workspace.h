#pragma once
// Memory of the tensors that live within one step: a stack that is taken once and used again.  A first step
// finds out how much it needs; from the second on nothing is allocated, and no page is new.
//
//   Workspace workspace;                      // kept across steps
//   {
//     Workspace::Scope scope(workspace);
//     at::Tensor h = workspace.take({tokens, width}, at::kBFloat16);
//   }                                         // h's memory is free again
//
// Owned by one thread at a time.  Tensors must not outlive the scope in which they were taken.

#include <sluice/units.h>

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <vector>

namespace sluice::kernels {

class Workspace {
 public:
  Workspace() = default;
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // Takes so much at once, where it is known before the first step; only before anything else is taken.
  void reserve(Bytes size);

  // Contiguous, with any content, at an address divisible by 64.  Only within a scope.
  at::Tensor take(at::IntArrayRef sizes, at::ScalarType dtype);

  // What take() needs of the memory.
  static Bytes size_of(at::IntArrayRef sizes, at::ScalarType dtype);

  Bytes size() const;       // of the memory it has
  Bytes most_used() const;  // at once, since it exists

  class Scope {
   public:
    explicit Scope(Workspace& workspace);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    std::size_t chunk_ = 0;
    std::int64_t used_ = 0;
  };

 private:
  struct Chunk {
    at::Tensor bytes;
    std::int64_t used = 0;
  };

  std::int64_t used() const;
  void join_chunks();

  std::vector<Chunk> chunks_;  // of which the last ones are empty
  std::size_t current_ = 0;
  std::int64_t most_used_ = 0;
  int depth_ = 0;  // of scopes
};

}  // namespace sluice::kernels
