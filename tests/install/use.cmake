# Builds and runs the project in the folder WAY as a user of Cella would, in a temporary folder whose
# name has a space in it.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(temporary "$ENV{TMPDIR}")
if(NOT temporary)
  set(temporary /tmp)
endif()
string(RANDOM LENGTH 8 unique)
set(place "${temporary}/a user of cella ${unique}")
file(MAKE_DIRECTORY "${place}")
file(COPY "${CMAKE_CURRENT_LIST_DIR}/${WAY}/CMakeLists.txt" "${CMAKE_CURRENT_LIST_DIR}/main.cpp"
          "${CMAKE_CURRENT_LIST_DIR}/other.cpp" "${CMAKE_CURRENT_LIST_DIR}/portable.cpp"
          "${CMAKE_CURRENT_LIST_DIR}/planned.cpp"
     DESTINATION "${place}/project")

# What a user gets: no tests, no examples. The tree is copied, so that nothing beside it is relied on.
if(WAY STREQUAL "find_package")
  run(${CMAKE_COMMAND} --install "${CELLA_BUILD}" --prefix "${place}/installed")
else()
  file(COPY "${CELLA_SOURCE}/CMakeLists.txt" "${CELLA_SOURCE}/cmake" "${CELLA_SOURCE}/include"
            "${CELLA_SOURCE}/LICENSE"
       DESTINATION "${place}/cella")
  if(WAY STREQUAL "fetch_content")
    execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf "${place}/cella.tar.gz" cella
                    WORKING_DIRECTORY "${place}")
    file(REMOVE_RECURSE "${place}/cella")
  endif()
endif()

set(configure ${CMAKE_COMMAND} -G "${GENERATOR}" "-DCMAKE_MAKE_PROGRAM=${MAKE_PROGRAM}"
              "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_PREFIX_PATH=${place}/installed"
              -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -S "${place}/project" -B "${place}/build")
foreach(type "" Debug Release)
  run(${configure} "-DCMAKE_BUILD_TYPE=${type}")
  string(FIND "${output}" "Cella is not optimized" said)
  if(type STREQUAL "Release" AND NOT said EQUAL -1 OR NOT type STREQUAL "Release" AND said EQUAL -1)
    message(FATAL_ERROR "A build of type '${type}' should be said to be slow, or not:\n${output}")
  endif()
endforeach()
file(READ "${place}/build/compile_commands.json" commands)
# The folder's name has a space, so paths are quoted.
set(headers [[[\]*"[^"]*(installed|cella|cella-src)/include]])
if(NOT commands MATCHES "-isystem ${headers}" OR commands MATCHES "-I${headers}")
  message(FATAL_ERROR "Warnings in Cella's headers would be a user's:\n${commands}")
endif()
if(commands MATCHES "-march=native|-Werror")
  message(FATAL_ERROR "Cella forces its own flags on a user:\n${commands}")
endif()
run(${CMAKE_COMMAND} --build "${place}/build")
run("${place}/build/program")
if(WAY STREQUAL "find_package")
  run("${place}/build/planned")
endif()
file(REMOVE_RECURSE "${place}")
