# Builds the object of test_headers, which includes all headers, in the build folder BUILD; and looks for what
# would be defined twice if two units did so. NM: lists what OBJECT defines.
execute_process(COMMAND ${CMAKE_COMMAND} --build "${BUILD}" --target test_headers
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${NM}" --defined-only --extern-only "${OBJECT}"
                OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
if(NOT symbols)
  message(FATAL_ERROR "${NM} finds nothing in ${OBJECT}")
endif()
# W, V and u may be defined in several units, which then share them.
string(REGEX MATCHALL " [^WVu] [^\n]*" alone "${symbols}")
if(alone)
  list(JOIN alone "\n" alone)
  message(FATAL_ERROR "Headers define what is not inline:\n${alone}")
endif()
