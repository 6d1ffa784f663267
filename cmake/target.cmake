# What a program that uses Cella is compiled with. The build tree and the installed package share this
# file, so that they cannot drift apart.

# Tracing a large model takes more steps of constant evaluation than the compilers allow by default.
set(cella_gnu_options -fconstexpr-ops-limit=1000000000 -fconstexpr-loop-limit=10000000)
# g++ collects its garbage from 128 MB on, and a small net takes more: a tenth of the time for 100 MB more.
# Whoever has said how much memory there is keeps it.
if(NOT CMAKE_CXX_FLAGS MATCHES "ggc-min-heapsize")
  list(APPEND cella_gnu_options --param=ggc-min-heapsize=262144)
endif()
set(cella_clang_options -fconstexpr-steps=1000000000)
# g++ contracts a * b + c by default, clang only on request.
set(cella_options -ffp-contract=fast)

# Turns `target` into Cella: the headers in `include_directory`, the flags and the dependencies.
function(cella_define target include_directory)
  target_compile_features(${target} INTERFACE cxx_std_20)
  target_include_directories(${target} INTERFACE "$<BUILD_INTERFACE:${include_directory}>")
  target_compile_options(
    ${target}
    INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:${cella_gnu_options}>"
              "$<$<COMPILE_LANG_AND_ID:CXX,Clang,AppleClang>:${cella_clang_options}>"
              "$<$<COMPILE_LANGUAGE:CXX>:${cella_options}>")
  foreach(name xtensor xsimd Boost Threads ZLIB nlohmann_json)
    if(cella_${name}_FOUND)
      target_link_libraries(${target} INTERFACE ${cella_${name}_TARGET})
    endif()
  endforeach()
endfunction()

# Says so where a project that uses Cella is not optimized: kernels are code of that project, and a hundred
# times slower then.
function(cella_look_at_optimization)
  get_property(several GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
  if(several OR "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${type}}" MATCHES "-O([1-3sgz]|fast)")
    return()
  endif()
  set(remedy "configure with -DCMAKE_BUILD_TYPE=Release before you measure anything")
  if(type)
    message(STATUS "Cella is not optimized in a build of type ${CMAKE_BUILD_TYPE}; ${remedy}")
  else()
    message(WARNING "Cella is not optimized: CMAKE_BUILD_TYPE is empty; ${remedy}")
  endif()
endfunction()

# Kernels of graphs that exist at run time only, compiled once: cella::kernels. It is compiled with
# the processor's instructions that its users are compiled with: whoever links cella::native links it
# to the target cella_kernels as well.
function(cella_define_kernels include_directory)
  add_library(cella_kernels STATIC EXCLUDE_FROM_ALL "${include_directory}/cella/kernels.cpp")
  target_link_libraries(cella_kernels PUBLIC cella::cella)
  target_compile_definitions(cella_kernels PUBLIC CELLA_KERNELS)
  # The loops of a byte code are short: one that lies in two lines of the processor's cache takes up to half as
  # long again.
  target_compile_options(cella_kernels PRIVATE -falign-loops=32)
  add_library(cella::kernels ALIAS cella_kernels)

  # For writing a model: nothing of it is planned in the compiler, and the headers of models are parsed once.
  add_library(cella_development INTERFACE)
  target_link_libraries(cella_development INTERFACE cella_kernels)
  target_compile_definitions(cella_development INTERFACE CELLA_DEVELOPMENT)
  target_precompile_headers(cella_development INTERFACE <cella/train/development.hpp>)
  # g++'s own intrinsics for AVX-512 are warned of where they come from a precompiled header.
  target_compile_options(
    cella_development
    INTERFACE
      "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-uninitialized;-Wno-maybe-uninitialized>")
  add_library(cella::development ALIAS cella_development)
endfunction()

# Models from ONNX files: cella::onnx, where ONNX's description of its files is on this machine.
function(cella_define_onnx include_directory)
  if(NOT cella_ONNX_FOUND)
    return()
  endif()
  add_library(cella_onnx STATIC EXCLUDE_FROM_ALL "${include_directory}/cella/onnx.cpp")
  target_link_libraries(cella_onnx PUBLIC cella::cella PRIVATE ${cella_ONNX_TARGET})
  # Reading takes little time, whatever it is compiled with; optimizing it would take the compiler long.
  target_compile_options(cella_onnx PRIVATE -O1)
  add_library(cella::onnx ALIAS cella_onnx)
endfunction()

# Ranks that MPI starts: cella::mpi, where MPI is on this machine.
function(cella_define_mpi)
  find_package(MPI QUIET COMPONENTS CXX)
  if(NOT MPI_CXX_FOUND)
    return()
  endif()
  add_library(cella_mpi INTERFACE)
  target_link_libraries(cella_mpi INTERFACE cella::cella MPI::MPI_CXX)
  target_compile_definitions(cella_mpi INTERFACE CELLA_MPI OMPI_SKIP_MPICXX MPICH_SKIP_MPICXX)
  add_library(cella::mpi ALIAS cella_mpi)
endfunction()

# Kernels are fastest with the instructions of the machine that compiles them, and such a program
# may not run elsewhere: so this is a target of its own, cella::native, and nobody is forced to link it.
function(cella_define_native target)
  include(CheckCXXCompilerFlag)
  check_cxx_compiler_flag(-march=native CELLA_HAS_MARCH_NATIVE)
  if(CELLA_HAS_MARCH_NATIVE)
    target_compile_options(${target} INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:-march=native>")
  endif()
endfunction()
