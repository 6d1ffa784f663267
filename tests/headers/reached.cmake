# Checks that <cella/cella.hpp> has all: every header of the rooms that users write with is reached
# from it. COMPILER, ID and INCLUDES as in compile_command.cmake; HEADERS: all headers of the library,
# separated by commas.
include("${CMAKE_CURRENT_LIST_DIR}/../../cmake/compile_command.cmake")
cella_compile_command(command)

execute_process(COMMAND ${CMAKE_COMMAND} -E echo "#include <cella/cella.hpp>"
                COMMAND ${command} -x c++ -M -
                OUTPUT_VARIABLE reached COMMAND_ERROR_IS_FATAL ANY)
string(REPLACE "," ";" headers "${HEADERS}")
list(FILTER headers INCLUDE REGEX "^cella/(data|interop|models|nn|ops|optim|runtime|train|transform)/")
# What cella::onnx is compiled from is no user's business.
list(FILTER headers EXCLUDE REGEX "^cella/interop/onnx/")
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
                      "files.hpp) should include:\n${forgotten}")
endif()
