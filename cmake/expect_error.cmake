# Checks what the compiler says about the wrong program SOURCE, which begins with comments such as
#   // expect: model.cpp:21: matmul: inner dimensions differ:
#   // expect: x is [32,400], fc1.weight is [256,120]
#   // expect-lines: 12
# Compilation must fail with exactly one error, whose place is not in a header of the library (unless a
# line says `// expect-place: library`), and the sentence (its lines joined by a space) must stand in
# the output, which must not have more lines than stated. Where a compiler says it in its own words the
# lines begin with `// expect-gcc:` and `// expect-clang:`. An error in the program's own text may make
# the compiler report that the program cannot be made as well: `// expect-errors: 2`; none of them may
# be in the library. HEADERS: the folder with the precompiled headers of programs (see
# precompile_headers.cmake).
include("${CMAKE_CURRENT_LIST_DIR}/compile_command.cmake")

file(READ "${SOURCE}" program)
if(ID MATCHES "Clang")
  set(other gcc)
else()
  set(other clang)
endif()
string(REGEX MATCH "^(// expect[a-z-]*: [^\n]*\n)+" sentence "${program}")
string(REGEX REPLACE "// expect-(lines|place|errors|${other}): [^\n]*\n" "" sentence "${sentence}")
string(REGEX REPLACE "// expect(-gcc|-clang)?: +" "" sentence "${sentence}")
string(REGEX REPLACE "\n" " " sentence "${sentence}")
string(STRIP "${sentence}" sentence)
string(REGEX MATCH "\n// expect-lines: +([0-9]+)" most_lines "${program}")
set(most_lines "${CMAKE_MATCH_1}")
set(most_errors 1)
if(program MATCHES "\n// expect-errors: +([0-9]+)")
  set(most_errors "${CMAKE_MATCH_1}")
endif()
if(NOT sentence)
  message(FATAL_ERROR "${SOURCE} does not begin with `// expect: <sentence>`")
endif()

cella_compile_command(command)
if(HEADERS)
  if(program MATCHES "#include <cella/train/")
    cella_use_precompiled(precompiled "${HEADERS}/models.hpp")
  else()
    cella_use_precompiled(precompiled "${HEADERS}/cells.hpp")
  endif()
  list(APPEND command ${precompiled})
endif()
execute_process(
  COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${command} -fsyntax-only "${SOURCE}"
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)

# clang shows a text in pieces, each a template argument: `{"a sentence cu"}, text<31>{"t in two"}`.
# Taking out the seams, and all blanks and escapes, leaves the sentence in one piece for any compiler.
function(normalize result text)
  string(REGEX REPLACE "\"[])} ]*,[ \n]*[A-Za-z0-9_:<>]*[[({]*\"" "" text "${text}")
  string(REGEX REPLACE "[ \n\\\\]" "" text "${text}")
  set(${result} "${text}" PARENT_SCOPE)
endfunction()

set(faults)
if(status EQUAL 0)
  string(APPEND faults "The compiler accepted it.\n")
endif()
normalize(said "${output}")
normalize(wanted "${sentence}")
string(FIND "${said}" "${wanted}" position)
if(position EQUAL -1)
  string(APPEND faults "The output lacks the sentence: ${sentence}\n")
endif()
string(REGEX MATCHALL "error: " errors "${output}")
list(LENGTH errors count)
if(count LESS 1 OR count GREATER most_errors)
  string(APPEND faults "There are ${count} errors; at most ${most_errors} are allowed.\n")
endif()
string(REGEX MATCH "[^\n]*(include/cella/|/include/c\\+\\+/)[^ \n]* error: " place "${output}")
if(place AND NOT program MATCHES "\n// expect-place: library\n")
  string(APPEND faults "An error is not in the user's line, but: ${place}\n")
endif()
string(REGEX MATCHALL "\n" newlines "${output}")
list(LENGTH newlines lines)
if(most_lines AND lines GREATER most_lines)
  string(APPEND faults "The output has ${lines} lines; at most ${most_lines} are allowed.\n")
endif()
if(faults)
  message(FATAL_ERROR "${faults}${SOURCE} made the compiler say:\n${output}")
endif()
