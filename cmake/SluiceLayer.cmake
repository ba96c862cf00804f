# One layer or component of sluice = one static library from the sources of one folder and those below it.
#
#   sluice_layer(bytes PUBLIC sluice_base PRIVATE nlohmann_json::nlohmann_json)
#   sluice_layer(ltx2_text FOLDER models/ltx2/text ATEN PUBLIC sluice_nn)
#
# makes target sluice_<name> from src/<folder>/**.cpp; WITHOUT names a folder below that is a component of its
# own.  ATEN marks the layers that see LibTorch: they share one precompiled ATen header (target sluice_aten, see
# src/CMakeLists.txt).
function(sluice_layer name)
  cmake_parse_arguments(ARG "ATEN" "FOLDER;WITHOUT" "PUBLIC;PRIVATE" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${name})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${ARG_FOLDER}/*.cpp)
  if(NOT sources)
    return()
  endif()
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(ARG_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/${ARG_WITHOUT}/")
  endif()
  add_library(sluice_${name} STATIC ${sources})
  target_include_directories(sluice_${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>
    $<INSTALL_INTERFACE:include>)
  target_link_libraries(sluice_${name} PUBLIC ${ARG_PUBLIC} PRIVATE ${ARG_PRIVATE} $<BUILD_INTERFACE:sluice_options>)
  if(ARG_ATEN)
    target_link_libraries(sluice_${name} PUBLIC sluice_aten)
    target_precompile_headers(sluice_${name} REUSE_FROM sluice_aten)
  endif()
endfunction()

# sluice_test(<folder> [ATEN] LINK targets…): one GoogleTest binary <folder>_test from tests/<folder>/**_test.cpp.
function(sluice_test name)
  cmake_parse_arguments(ARG "ATEN" "FOLDER;WITHOUT" "LINK" ${ARGN})
  if(NOT ARG_FOLDER)
    set(ARG_FOLDER ${name})
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${ARG_FOLDER}/*.cpp)
  if(NOT sources)
    return()
  endif()
  if(ARG_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "/${ARG_WITHOUT}/")
  endif()
  add_executable(${name}_test ${sources})
  target_include_directories(${name}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${name}_test PRIVATE
    SLUICE_SOURCE_DIR="${PROJECT_SOURCE_DIR}" SLUICE_BINARY_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
  target_link_libraries(${name}_test PRIVATE ${ARG_LINK} GTest::gmock_main sluice_options)
  if(ARG_ATEN)
    target_precompile_headers(${name}_test REUSE_FROM sluice_aten)
  endif()
  # One thread a test: ctest runs several at once, and products of test size gain nothing from more.
  gtest_discover_tests(${name}_test DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 600 ENVIRONMENT OMP_NUM_THREADS=1)
endfunction()
