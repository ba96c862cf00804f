# What every target of this build shares: language level, warnings, sanitizers, output folders, ccache.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # A precompiled header carries time stamps and macros; ccache must be told that they do not matter.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${SLUICE_CCACHE})
endif()

add_library(sluice_options INTERFACE)
# Options travel in structs filled by designated initializers, so fields left at their default are the rule.
target_compile_options(sluice_options INTERFACE
  -Wall -Wextra -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers)
# Libraries and programs alike: one precompiled header serves both only when they are compiled the same way.
target_compile_options(sluice_options INTERFACE -fPIC)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(sluice_options INTERFACE -fpch-preprocess)
endif()
if(SLUICE_WERROR)
  target_compile_options(sluice_options INTERFACE -Werror)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 14 sees values without a beginning in what it inlines of c10's InferenceMode.
    target_compile_options(sluice_options INTERFACE -Wno-error=maybe-uninitialized)
  endif()
endif()
if(SLUICE_SANITIZE)
  # Undefined behaviour ends the program, as the other sanitizers' finds do.
  target_compile_options(sluice_options INTERFACE
    -fsanitize=${SLUICE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(sluice_options INTERFACE -fsanitize=${SLUICE_SANITIZE})
endif()
