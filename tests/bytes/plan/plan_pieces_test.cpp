#include "bytes/plan/plan_pieces.h"

#include "support/synthetic_file.h"
#include "support/throws_error.h"

#include <sluice/error.h>
#include <sluice/sinks.h>

#include <gmock/gmock.h>

namespace sluice::bytes {
namespace {

using test::SyntheticFile;
using test::ThrowsError;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PlanPieces : public ::testing::Test {
 protected:
  // Rows of a matrix of bytes of 10 columns.
  TensorInfo rows(std::string_view name, std::int64_t begin, std::int64_t count) const {
    TensorInfo piece = *checkpoint_.find(name);
    piece.offset += static_cast<Bytes>(begin) * 10;
    piece.size = static_cast<Bytes>(count) * 10;
    piece.shape = {count, 10};
    return piece;
  }

  const SyntheticFile file_ =
      SyntheticFile().tensor("a*?", Dtype::U8, {20, 10}).tensor("b", Dtype::U8, {20, 10});
  const test::WrittenFile written_ = file_.write();
  const Checkpoint checkpoint_ = Checkpoint::open(written_.path());
};

TEST_F(PlanPieces, reads_these_bytes_alone_in_this_order_whatever_tensors_are_called) {
  const std::vector<TensorInfo> pieces = {rows("a*?", 3, 4), rows("a*?", 7, 1), rows("b", 0, 0),
                                          rows("b", 19, 1)};

  const LoadPlan plan = plan_pieces(checkpoint_, pieces);
  const TensorDictionary loaded = load_dictionary(plan);

  EXPECT_EQ(plan.read_bytes(), 60u);
  ASSERT_EQ(loaded.entries().size(), 4u);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto& entry = loaded.entries()[i];
    EXPECT_EQ(entry.tensor.shape, pieces[i].shape);
    const std::string_view got(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
    const Bytes begin = pieces[i].offset - checkpoint_.find("a*?")->offset;
    EXPECT_EQ(got, file_.data().substr(begin, pieces[i].size));
  }
}

TEST_F(PlanPieces, has_nothing_to_read_for_no_pieces) {
  EXPECT_EQ(plan_pieces(checkpoint_, {}).read_bytes(), 0u);
}

TEST_F(PlanPieces, refuses_pieces_that_overlap_are_out_of_order_or_lie_outside_the_file) {
  auto plan = [&](std::vector<TensorInfo> pieces) { return [=, this] { plan_pieces(checkpoint_, pieces); }; };
  const auto names_it =
      ThrowsError(ErrorKind::internal, AllOf(HasSubstr("'b'"), HasSubstr("model.safetensors")));

  EXPECT_THAT(plan({rows("b", 0, 2), rows("b", 1, 2)}), names_it);
  EXPECT_THAT(plan({rows("b", 2, 2), rows("b", 0, 2)}), names_it);
  EXPECT_THAT(plan({rows("b", 19, 2)}), names_it);
}

}  // namespace
}  // namespace sluice::bytes
