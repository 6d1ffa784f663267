# NM lists what PROGRAM is made of: no description of an operation may be among it.
execute_process(COMMAND "${NM}" --demangle "${PROGRAM}" OUTPUT_VARIABLE symbols RESULT_VARIABLE failed)
if(failed OR NOT symbols MATCHES "cella::")
  message(FATAL_ERROR "${NM} does not list the symbols of ${PROGRAM}")
endif()
if(symbols MATCHES "cella::(info_of<[^\n]*|frozen<[^\n]*)")
  message(FATAL_ERROR "${PROGRAM} holds a graph at run time: ${CMAKE_MATCH_0}")
endif()
