# What must be there before anything is compiled, told all at once by the names under which Debian installs it.
# After find_package(Python).
include(CheckCXXSourceCompiles)

macro(note_package name)
  if(NOT ${ARGN})
    list(APPEND missing ${name})
  endif()
endmacro()

function(require_packages)
  set(CMAKE_CXX_STANDARD 20)
  set(missing "")
  find_package(fmt QUIET)
  note_package(libfmt-dev fmt_FOUND)
  find_package(nlohmann_json QUIET)
  note_package(nlohmann-json3-dev nlohmann_json_FOUND)
  find_path(XXHASH_INCLUDE_DIR xxhash.h)
  note_package(libxxhash-dev XXHASH_INCLUDE_DIR)
  find_package(PkgConfig QUIET)
  note_package(pkgconf PKG_CONFIG_FOUND)
  find_path(LIBURING_HEADER liburing.h)
  note_package(liburing-dev LIBURING_HEADER)
  note_package(python3-dev Python_Development.Module_FOUND)
  check_cxx_source_compiles("#include <span>\n#include <thread>\nint main() { std::jthread t; return 0; }"
                            SLUICE_CXX20)
  note_package(g++ SLUICE_CXX20)
  if(missing)
    list(JOIN missing " " names)
    message(FATAL_ERROR "sluice cannot be compiled: missing ${names}\n"
                        "  try: sudo apt-get install ${names}\n"
                        "  (other systems: what Debian has under these names; a compiler of C++20, as GCC 12)")
  endif()
endfunction()
