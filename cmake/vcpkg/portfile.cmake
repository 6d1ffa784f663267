# Port for vcpkg: `vcpkg install cella --overlay-ports=cmake/vcpkg`. It packs the sources that it stands in.
get_filename_component(SOURCE_PATH "${CURRENT_PORT_DIR}/../.." ABSOLUTE)

set(VCPKG_BUILD_TYPE release)  # headers only
vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -DCELLA_BUILD_EXAMPLES=OFF -DCELLA_BUILD_TESTS=OFF -DCELLA_BUILD_BENCHMARKS=OFF
          -DCELLA_FETCH_DEPENDENCIES=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/cella)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/cmake" "${CURRENT_PACKAGES_DIR}/share/doc")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
