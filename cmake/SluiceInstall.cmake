# `cmake --install` puts libsluice-bytes with its public headers where find_package(sluice-bytes) finds it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set_target_properties(sluice_base PROPERTIES EXPORT_NAME base)
set_target_properties(sluice_bytes PROPERTIES EXPORT_NAME bytes)
install(TARGETS sluice_base sluice_bytes EXPORT sluice-bytes ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/sluice DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT sluice-bytes NAMESPACE sluice:: FILE sluice-bytes-targets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sluice-bytes)
file(WRITE ${CMAKE_BINARY_DIR}/sluice-bytes-config.cmake
"include(CMakeFindDependencyMacro)
find_dependency(fmt)
find_dependency(Threads)
find_dependency(nlohmann_json)
find_dependency(PkgConfig)
pkg_check_modules(LIBURING REQUIRED IMPORTED_TARGET liburing)
include(\${CMAKE_CURRENT_LIST_DIR}/sluice-bytes-targets.cmake)
")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sluice-bytes-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/sluice-bytes-config.cmake ${CMAKE_BINARY_DIR}/sluice-bytes-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/sluice-bytes)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/sluice-bytes.pc @ONLY CONTENT
"prefix=\${pcfiledir}/../..
Name: sluice-bytes
Description: reads and writes safetensors checkpoints
Version: @PROJECT_VERSION@
Requires: fmt
Requires.private: liburing
Cflags: -I\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@
Libs: -L\${prefix}/@CMAKE_INSTALL_LIBDIR@ -lsluice_bytes -lsluice_base -pthread
")
install(FILES ${CMAKE_BINARY_DIR}/sluice-bytes.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
