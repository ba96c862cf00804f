#include <sluice/error.h>

namespace sluice {

ErrorKindInfo error_kind_info(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::usage:
      return {"usage", 2};
    case ErrorKind::bad_input:
      return {"bad_input", 3};
    case ErrorKind::corrupt_file:
      return {"corrupt_file", 3};
    case ErrorKind::mismatch:
      return {"mismatch", 3};
    case ErrorKind::does_not_fit:
      return {"does_not_fit", 4};
    case ErrorKind::io:
      return {"io", 5};
    case ErrorKind::non_finite:
      return {"non_finite", 5};
    case ErrorKind::interrupted:
      return {"interrupted", 130};
    case ErrorKind::internal:
      break;
  }
  return {"internal", 1};
}

}  // namespace sluice
