# Toolchain for ARM's 64-bit processors (NEON) with Debian's cross compiler; tests run in qemu-user.
#
#   dpkg --add-architecture arm64 && apt-get update
#   apt-get install g++-aarch64-linux-gnu qemu-user zlib1g-dev:arm64 libmpfr-dev:arm64
#   cmake --preset aarch64 && cmake --build --preset aarch64 --target test_backend_cpu
#   ctest --preset aarch64 -R '^backend_cpu$'
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Without g++'s notes that its version 10 changed how pairs are passed.
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu)
# These are headers only, so those of any architecture serve.
foreach(package xtl xtensor xsimd)
  file(GLOB ${package}_DIR /usr/lib/*/cmake/${package} /usr/share/cmake/${package})
endforeach()
