#pragma once
// Transforms as they are written on a command line.

#include <sluice/transforms.h>

#include <string_view>

namespace sluice::cli {

// "GLOB=NAME".  Error(usage).
RenameRule parse_rename(std::string_view text);

// "[GLOB=][FROM:]TO": "BF16" is everything, "F16:BF16" what is F16, "*.norm.*=F32" what has such a name.
// Dtypes in any case.  Error(usage).
CastRule parse_cast(std::string_view text);

}  // namespace sluice::cli
