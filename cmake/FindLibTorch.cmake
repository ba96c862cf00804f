# Finds the LibTorch inside a PyTorch wheel (or an unpacked libtorch archive) and links its shared objects directly.
#
# The wheel's own TorchConfig.cmake asks for a CUDA toolkit when the wheel was built with CUDA.  sluice compiles no
# CUDA source, so the shared objects and headers are enough; this works the same for CPU and CUDA wheels.
#
# Input:  SLUICE_TORCH (CMake or environment variable) = folder with include/ and lib/, or CMAKE_PREFIX_PATH.
#         SLUICE_CUDA = OFF leaves the CUDA half of a CUDA wheel out, with the libraries that it needs.
# Output: target LibTorch::LibTorch, LibTorch_VERSION, LibTorch_HAS_CUDA.
if(NOT SLUICE_TORCH AND DEFINED ENV{SLUICE_TORCH})
  set(SLUICE_TORCH $ENV{SLUICE_TORCH})
endif()

find_path(LibTorch_INCLUDE_DIR ATen/ATen.h HINTS ${SLUICE_TORCH} PATH_SUFFIXES include)
get_filename_component(_libtorch_root "${LibTorch_INCLUDE_DIR}" DIRECTORY)
find_library(LibTorch_TORCH_CPU torch_cpu HINTS ${_libtorch_root} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LibTorch_C10 c10 HINTS ${_libtorch_root} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LibTorch_GOMP NAMES libgomp.so.1 gomp HINTS ${_libtorch_root} PATH_SUFFIXES lib NO_DEFAULT_PATH)
find_library(LibTorch_TORCH_CUDA torch_cuda HINTS ${_libtorch_root} PATH_SUFFIXES lib NO_DEFAULT_PATH)
option(SLUICE_CUDA "link LibTorch's CUDA half where it has one" ON)
if(LibTorch_TORCH_CUDA AND SLUICE_CUDA)
  set(LibTorch_HAS_CUDA TRUE)
else()
  set(LibTorch_HAS_CUDA FALSE)
endif()

set(_libtorch_version_header ${LibTorch_INCLUDE_DIR}/torch/headeronly/version.h)
if(EXISTS ${_libtorch_version_header})
  file(STRINGS ${_libtorch_version_header} _libtorch_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX MATCHALL "[0-9]+" _libtorch_numbers "${_libtorch_lines}")
  string(REPLACE ";" "." LibTorch_VERSION "${_libtorch_numbers}")
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LibTorch
  REQUIRED_VARS LibTorch_TORCH_CPU LibTorch_C10 LibTorch_GOMP LibTorch_INCLUDE_DIR VERSION_VAR LibTorch_VERSION)

if(LibTorch_FOUND AND NOT TARGET LibTorch::LibTorch)
  add_library(LibTorch::LibTorch INTERFACE IMPORTED)
  # The wheel's include folder also holds copies of fmt, nlohmann and others: the system's own must win.
  target_compile_options(LibTorch::LibTorch INTERFACE "SHELL:-idirafter ${LibTorch_INCLUDE_DIR}")
  # at::parallel_for is a template of LibTorch's headers: compiled without OpenMP it calls its body on one thread,
  # silently.  The wheel's own libgomp is the one that LibTorch uses, so it must be the only one.
  target_compile_options(LibTorch::LibTorch INTERFACE -fopenmp)
  target_link_libraries(LibTorch::LibTorch INTERFACE ${LibTorch_TORCH_CPU} ${LibTorch_C10} ${LibTorch_GOMP})
  if(LibTorch_HAS_CUDA)
    # Nothing refers to the CUDA library by symbol: it registers itself when loaded, so it must not be dropped.
    target_link_options(LibTorch::LibTorch INTERFACE "LINKER:--push-state,--no-as-needed,${LibTorch_TORCH_CUDA},--pop-state")
  endif()
endif()
