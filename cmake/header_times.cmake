# Prints a Markdown table: how long each header takes to compile alone at -O0 (median of three).
include("${CMAKE_CURRENT_LIST_DIR}/compile_command.cmake")
cella_compile_command(command)

# Milliseconds since the epoch.
macro(now result)
  string(TIMESTAMP stamp "%s%f" UTC)
  string(REGEX REPLACE "...$" "" ${result} "${stamp}")
endmacro()

function(compile_time result header)
  set(times)
  foreach(run 1 2 3)
    now(start)
    execute_process(COMMAND ${CMAKE_COMMAND} -E echo "#include <${header}>"
                    COMMAND ${command} -x c++ -c -o /dev/null -
                    RESULT_VARIABLE status ERROR_VARIABLE errors)
    now(stop)
    if(NOT status EQUAL 0)
      message(FATAL_ERROR "${header} does not compile:\n${errors}")
    endif()
    math(EXPR time "${stop} - ${start}")
    list(APPEND times ${time})
  endforeach()
  list(SORT times COMPARE NATURAL)
  list(GET times 1 median)
  set(${result} ${median} PARENT_SCOPE)
endfunction()

# 1234 -> 1.23
function(in_seconds result milliseconds)
  math(EXPR hundredths "(${milliseconds} + 5) / 10 % 100")
  math(EXPR whole "(${milliseconds} + 5) / 1000")
  if(hundredths LESS 10)
    string(PREPEND hundredths "0")
  endif()
  set(${result} "${whole}.${hundredths}" PARENT_SCOPE)
endfunction()

execute_process(COMMAND "${COMPILER}" --version OUTPUT_VARIABLE version)
string(REGEX MATCH "^[^\n]*" version "${version}")
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "Seconds to compile a header alone, ${version}, -O0\n")
execute_process(COMMAND ${CMAKE_COMMAND} -E echo "| header | seconds |\n| --- | ---: |")
string(REPLACE "," ";" headers "${HEADERS}")
foreach(header ${headers})
  compile_time(time "${header}")
  in_seconds(seconds ${time})
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo "| `${header}` | ${seconds} |")
endforeach()
