// A request that needs more memory than there is is refused before work.
#include "pipeline/needs.h"
#include "support/throws_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::pipeline {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(RequireFit, names_the_phase_and_both_numbers) {
  const std::vector<PhaseNeeds> phases = {{"text", 0, MiB(10)}, {"denoise", 0, MiB(300)}};

  EXPECT_THAT([&] { require_fit(phases, MiB(200)); },
              test::ThrowsError(ErrorKind::does_not_fit, AllOf(HasSubstr("'denoise'"), HasSubstr("300.0 MiB"),
                                                               HasSubstr("200.0 MiB"))));
  EXPECT_NO_THROW(require_fit(phases, MiB(300)));
}

}  // namespace
}  // namespace sluice::pipeline
