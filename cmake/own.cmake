# How Cella's own tests, examples and benchmarks are compiled. CMAKE_COMPILE_WARNING_AS_ERROR makes
# every warning an error, as .ci/run does: a user's build must not fail for what a compiler newly finds.
add_library(cella_own INTERFACE)
target_link_libraries(cella_own INTERFACE cella::cella)
set(cella_warnings -Wall -Wextra -Wpedantic -Wconversion -Wshadow)
target_compile_options(cella_own INTERFACE ${cella_warnings})
# g++ 12 sees overlapping copies in `"text" + std::string` where there are none (GCC bug 105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(cella_own INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>")
endif()

if(CELLA_NATIVE)
  target_link_libraries(cella_own INTERFACE cella::native)
  # clang warns about combinations of AVX features that -march=native itself has chosen.
  target_compile_options(
    cella_own INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:-Wno-invalid-feature-combination>")
endif()

target_link_libraries(cella_kernels PRIVATE cella_own)
# With sanitizers the optimizer takes minutes.
target_compile_options(cella_kernels PRIVATE "$<$<CONFIG:Debug>:-O0>")
set_target_properties(cella_kernels PROPERTIES CXX_EXTENSIONS OFF)

if(TARGET cella_onnx)
  target_link_libraries(cella_onnx PRIVATE cella_own)
  set_target_properties(cella_onnx PROPERTIES CXX_EXTENSIONS OFF)
endif()

# Adds an executable that is held to the standards above.
function(cella_add_executable name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE cella_own)
  set_target_properties(${name} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()
