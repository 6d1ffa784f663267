# Checks that <cella/cella.hpp> and <cella/vocabulary.hpp> have all: every header of the rooms that users
# write with is reached from them; and that kernels.cpp has all that is compiled once. COMPILER, ID and
# INCLUDES as in compile_command.cmake; HEADERS: all headers of the library, separated by commas.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/compile_command.cmake")
cella_compile_command(command)

execute_process(COMMAND ${CMAKE_COMMAND} -E echo "#include <cella/cella.hpp>"
                COMMAND ${command} -include cella/vocabulary.hpp -x c++ -M -
                OUTPUT_VARIABLE reached COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "," ";" headers "${HEADERS}")
list(FILTER headers INCLUDE REGEX "^cella/(data|interop|models|nn|ops|optim|runtime|train|transform)/")
# What cella::onnx is compiled from is no user's business.
list(FILTER headers EXCLUDE REGEX "^cella/interop/onnx/")
# Programs of many ranks include what they use of parallel/, and one header with it; another is there to be precompiled.
list(FILTER headers EXCLUDE REGEX "^cella/train/(on_mesh|development)\\.hpp$")
list(LENGTH headers count)
if(count LESS 80)
  message(FATAL_ERROR "HEADERS names only ${count} headers of these rooms")
endif()
set(forgotten)
foreach(header ${headers})
  string(FIND "${reached}" "/${header}" position)
  if(position EQUAL -1)
    string(APPEND forgotten "  ${header}\n")
  endif()
endforeach()
if(forgotten)
  message(FATAL_ERROR "<cella/cella.hpp> lacks what its parts (nn.hpp, run.hpp, train.hpp, data.hpp, "
                      "files.hpp), or vocabulary.hpp, should include:\n${forgotten}")
endif()

# A function before which CELLA_ONCE stands, or CELLA_BODY, is compiled where kernels.cpp sees it, or nowhere.
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "#include <cella/kernels.cpp>"
                COMMAND ${command} -DCELLA_KERNELS -x c++ -M -
                OUTPUT_VARIABLE reached COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "," ";" headers "${HEADERS}")
set(marked 0)
foreach(header ${headers})
  file(READ "${CMAKE_CURRENT_LIST_DIR}/../../include/${header}" text)
  if(header STREQUAL "cella/graph/once.hpp" OR NOT text MATCHES "CELLA_(ONCE|BODY) ")
    continue()
  endif()
  math(EXPR marked "${marked} + 1")
  string(FIND "${reached}" "/${header}" position)
  if(position EQUAL -1)
    string(APPEND forgotten "  ${header}\n")
  endif()
endforeach()
if(forgotten OR marked LESS 20)
  message(FATAL_ERROR "kernels.cpp does not include what it is to compile (of ${marked}):\n${forgotten}")
endif()
