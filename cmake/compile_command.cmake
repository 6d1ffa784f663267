# Sets <result> to the command that compiles one file with the flags of cella::cella, without
# optimization. For scripts: COMPILER, ID (CMake's compiler id), INCLUDES (a file that lists include
# directories) and perhaps OPTIONS (further ones, with commas between them) are given on the command line.
include("${CMAKE_CURRENT_LIST_DIR}/target.cmake")

function(cella_compile_command result)
  set(command "${COMPILER}" -std=c++20 -O0 ${cella_options})
  if(ID MATCHES "Clang")
    list(APPEND command ${cella_clang_options})
  else()
    list(APPEND command ${cella_gnu_options})
  endif()
  string(REPLACE "," ";" options "${OPTIONS}")
  list(APPEND command ${options})
  file(STRINGS "${INCLUDES}" directories)
  list(REMOVE_DUPLICATES directories)
  # Compilers search this one anyway; named, it would come before their own headers.
  list(REMOVE_ITEM directories /usr/include)
  foreach(directory ${directories})
    list(APPEND command "-I${directory}")
  endforeach()
  set(${result} ${command} PARENT_SCOPE)
endfunction()

# Sets <result> to the file that `header` is precompiled to.
function(cella_precompiled result header)
  if(ID MATCHES "Clang")
    set(${result} "${header}.pch" PARENT_SCOPE)
  else()
    set(${result} "${header}.gch" PARENT_SCOPE)
  endif()
endfunction()
# Sets <result> to the options that make the compiler begin with that file.
function(cella_use_precompiled result header)
  if(ID MATCHES "Clang")
    cella_precompiled(file "${header}")
    set(${result} -include-pch "${file}" PARENT_SCOPE)
  else()
    set(${result} -include "${header}" PARENT_SCOPE)  # g++ finds the file beside it
  endif()
endfunction()
