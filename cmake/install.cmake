# Installs the headers and the CMake package: afterwards find_package(cella) provides cella::cella.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_directory "${CMAKE_INSTALL_DATADIR}/cmake/cella")
configure_package_config_file(
  cmake/cella-config.cmake.in "${PROJECT_BINARY_DIR}/cella-config.cmake"
  INSTALL_DESTINATION "${package_directory}"
  PATH_VARS CMAKE_INSTALL_INCLUDEDIR)
# Before version 1.0 a minor version may change interfaces.
write_basic_package_version_file(
  "${PROJECT_BINARY_DIR}/cella-config-version.cmake"
  COMPATIBILITY SameMinorVersion
  ARCH_INDEPENDENT)

install(DIRECTORY include/cella TYPE INCLUDE)
install(FILES "${PROJECT_BINARY_DIR}/cella-config.cmake"
              "${PROJECT_BINARY_DIR}/cella-config-version.cmake"
              cmake/dependencies.cmake cmake/target.cmake
              cmake/portable.cmake cmake/portable.cpp.in cmake/portable.ld
        DESTINATION "${package_directory}")
install(DIRECTORY cmake/zlib DESTINATION "${package_directory}")
install(FILES LICENSE TYPE DOC)
