# Precompiles HEADER, which includes headers of the library, beside it: for programs that are compiled one
# by one, whose time is the parsing of what they include. COMPILER, ID and INCLUDES as in
# compile_command.cmake. Nothing is done if no header of the library has changed since.
include("${CMAKE_CURRENT_LIST_DIR}/compile_command.cmake")

cella_precompiled(precompiled "${HEADER}")
file(GLOB_RECURSE sources "${CMAKE_CURRENT_LIST_DIR}/../include/cella/*.hpp")
set(changed FALSE)
foreach(source "${HEADER}" ${sources})
  if("${source}" IS_NEWER_THAN "${precompiled}")
    set(changed TRUE)
  endif()
endforeach()
if(changed)
  cella_compile_command(command)
  if(ID MATCHES "Clang")
    list(APPEND command -fpch-instantiate-templates)  # once, instead of in each program
  endif()
  execute_process(COMMAND ${command} -x c++-header "${HEADER}" -o "${precompiled}" COMMAND_ERROR_IS_FATAL ANY)
endif()
