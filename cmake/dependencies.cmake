# Provides what Cella builds on. A dependency is taken from the machine if it is there; if not, it is
# installed by the system's package manager when the user asked for that; if not, it is fetched at a
# pinned version; and if that fails too, one message names everything that is missing.
# The installed package uses this file as well.

option(CELLA_INSTALL_DEPENDENCIES "Install what is missing with the system's package manager" OFF)
option(CELLA_FETCH_DEPENDENCIES "Fetch what is missing, at pinned versions, with git" ON)

# Describes a dependency: the oldest version that will do, the target that its package provides,
# the names of Debian's packages, and the repositories and commits to fetch.
macro(cella_dependency name)
  cmake_parse_arguments(cella_${name} "" "OLDEST;TARGET" "DEBIAN;GIT" ${ARGN})
endmacro()

cella_dependency(xtensor OLDEST 0.24 TARGET xtensor DEBIAN libxtensor-dev GIT
  https://github.com/xtensor-stack/xtensor.git f115228a7fc277b9be1bef34572831f8fd53ac73  # 0.27.1
  https://github.com/xtensor-stack/xtl.git c52350e283b98e5d69dbc50726925a1f8e16c57c)     # 0.8.2
cella_dependency(xsimd OLDEST 8.1 TARGET xsimd DEBIAN libxsimd-dev GIT
  https://github.com/xtensor-stack/xsimd.git 1f8dd9c8e162968d9b4ff0251c56d431b8777f36)   # 13.2.0
# Of Boost, Cella uses Hana, which needs no other part of it.
cella_dependency(Boost OLDEST 1.74 TARGET Boost::headers DEBIAN libboost-dev GIT
  https://github.com/boostorg/hana.git 275ee334d4c406643e9f560c40f9b73638cd9c7e)         # 1.88.0
cella_dependency(ZLIB OLDEST 1.2 TARGET ZLIB::ZLIB DEBIAN zlib1g-dev GIT
  https://github.com/madler/zlib.git 51b7f2abdade71cd9bb0e7a373ef2610ec6f9daf)           # 1.3.1
cella_dependency(nlohmann_json OLDEST 3.10 TARGET nlohmann_json::nlohmann_json
  DEBIAN nlohmann-json3-dev GIT
  https://github.com/nlohmann/json.git 9cca280a4d0ccf0c08f47a99aa71d1b0e52f8d03)         # 3.11.3
cella_dependency(CLI11 OLDEST 2.1 TARGET CLI11::CLI11 DEBIAN libcli11-dev GIT
  https://github.com/CLIUtils/CLI11.git 6c7b07a878ad834957b98d0f9ce1dbe0cb204fc9)        # 2.4.2
cella_dependency(doctest OLDEST 2.4.9 TARGET doctest::doctest DEBIAN doctest-dev GIT
  https://github.com/doctest/doctest.git 1da23a3e8119ec5cce4f9388e91b065e20bf06f5)       # 2.4.12
# What ONNX files consist of, as protobuf sees it. It is not fetched: protobuf would have to be built.
cella_dependency(ONNX OLDEST 1.12 TARGET onnx_proto DEBIAN libonnx-dev libprotobuf-dev)

# cella_provide(<problem> REQUIRED name... OPTIONAL name...)
# Sets cella_<name>_FOUND and, if found, cella_<name>_TARGET to what to link. <problem> is empty, or
# the message that says which required dependencies are missing and what to do.
function(cella_provide problem)
  cmake_parse_arguments(PARSE_ARGV 1 wanted "" "" "REQUIRED;OPTIONAL")
  set(names ${wanted_REQUIRED} ${wanted_OPTIONAL})
  list(REMOVE_DUPLICATES names)
  cella_find_all(missing ${names})
  if(missing AND CELLA_INSTALL_DEPENDENCIES)
    cella_install_packages(${missing})
    cella_find_all(missing ${missing})
  endif()
  # Nobody waits for a download of something that they may not need.
  set(missing_and_required)
  foreach(name ${missing})
    if(name IN_LIST wanted_REQUIRED)
      # Where one repository cannot be reached, the others need not be waited for.
      if(CELLA_FETCH_DEPENDENCIES AND NOT missing_and_required)
        cella_fetch(${name})
      endif()
      if(NOT cella_${name}_FOUND)
        list(APPEND missing_and_required ${name})
      endif()
    endif()
  endforeach()

  find_package(Threads REQUIRED GLOBAL)
  set(cella_Threads_FOUND TRUE PARENT_SCOPE)
  set(cella_Threads_TARGET Threads::Threads PARENT_SCOPE)
  foreach(name ${names})
    set(cella_${name}_FOUND "${cella_${name}_FOUND}" PARENT_SCOPE)
    set(cella_${name}_TARGET "${cella_${name}_TARGET}" PARENT_SCOPE)
  endforeach()
  cella_describe_problem(text ${missing_and_required})
  set(${problem} "${text}" PARENT_SCOPE)
endfunction()

# Looks for the named dependencies on this machine; sets <missing> to those that are not there.
macro(cella_find_all missing)
  set(${missing})
  foreach(name ${ARGN})
    cella_find(${name})
    if(NOT cella_${name}_FOUND)
      list(APPEND ${missing} ${name})
    endif()
  endforeach()
endmacro()

function(cella_find name)
  # The program that links cella::cella may live in a directory above this one.
  set(CMAKE_FIND_PACKAGE_TARGETS_GLOBAL ON)
  if(TARGET ${cella_${name}_TARGET})
    set(found TRUE)
  else()
    # Debian's xsimd links xtl without looking for it.
    if(name STREQUAL "xsimd")
      find_package(xtl QUIET)
    endif()
    # ONNX's package links protobuf without looking for it.
    if(name STREQUAL "ONNX")
      find_package(Protobuf QUIET)
      if(NOT Protobuf_FOUND)
        set(cella_ONNX_FOUND FALSE PARENT_SCOPE)
        return()
      endif()
    endif()
    # The version is compared here, because xsimd's package accepts no other major version.
    find_package(${name} QUIET)
    set(found "${${name}_FOUND}")
    if(found AND ${name}_VERSION AND ${name}_VERSION VERSION_LESS cella_${name}_OLDEST)
      message(STATUS "${name} ${${name}_VERSION} is older than ${cella_${name}_OLDEST}: not used")
      set(found FALSE)
    endif()
  endif()
  set(cella_${name}_FOUND "${found}" PARENT_SCOPE)
endfunction()

# Runs the system's package manager. Failure is no error here: the next remedy is tried.
function(cella_install_packages)
  find_program(CELLA_APT_GET apt-get)
  mark_as_advanced(CELLA_APT_GET)
  if(NOT CELLA_APT_GET)
    message(STATUS "No apt-get here: CELLA_INSTALL_DEPENDENCIES has no effect")
    return()
  endif()
  set(packages)
  foreach(name ${ARGN})
    list(APPEND packages ${cella_${name}_DEBIAN})
  endforeach()
  cella_root_prefix(prefix)
  set(apt_get ${prefix} ${CMAKE_COMMAND} -E env DEBIAN_FRONTEND=noninteractive ${CELLA_APT_GET}
              --quiet -o DPkg::Lock::Timeout=300)
  list(JOIN packages " " shown)
  message(STATUS "Installing with apt-get: ${shown}")
  execute_process(COMMAND ${apt_get} update)
  execute_process(COMMAND ${apt_get} install --yes --no-install-recommends ${packages}
                  RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(STATUS "apt-get could not install them")
  endif()
endfunction()

# sudo, unless we are root or there is no sudo.
function(cella_root_prefix prefix)
  set(${prefix} "" PARENT_SCOPE)
  execute_process(COMMAND id -u OUTPUT_VARIABLE user OUTPUT_STRIP_TRAILING_WHITESPACE)
  find_program(CELLA_SUDO sudo)
  mark_as_advanced(CELLA_SUDO)
  if(NOT user STREQUAL "0" AND CELLA_SUDO)
    set(${prefix} ${CELLA_SUDO} PARENT_SCOPE)
  endif()
endfunction()

# Fetches the sources of one dependency and makes the target cella_fetched_<name> from them.
# The projects' own CMake files are not run where headers are all that is needed: they would add
# install rules, options and tests to the user's project.
function(cella_fetch name)
  include(FetchContent)
  set(rest ${cella_${name}_GIT})
  set(directories)
  if(NOT rest)
    return()
  endif()
  while(rest)
    list(POP_FRONT rest repository commit)
    get_filename_component(part "${repository}" NAME_WLE)
    cella_reachable(reachable cella_${part} ${repository})
    if(NOT reachable)
      return()
    endif()
    message(STATUS "Fetching ${repository}")
    FetchContent_Declare(cella_${part} GIT_REPOSITORY ${repository} GIT_TAG ${commit}
                         GIT_SUBMODULES "" SOURCE_SUBDIR no-build)
    FetchContent_MakeAvailable(cella_${part})
    list(APPEND directories "${cella_${part}_SOURCE_DIR}")
  endwhile()

  set(target cella_fetched_${name})
  if(name STREQUAL "ZLIB")
    set(cella_zlib_source "${directories}")
    add_subdirectory("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/zlib" "${CMAKE_BINARY_DIR}/_deps/zlib-build"
                     EXCLUDE_FROM_ALL)
    set(target cella_fetched_zlib)
  elseif(NOT TARGET ${target})
    add_library(${target} INTERFACE)
    foreach(directory ${directories})
      if(EXISTS "${directory}/include")
        string(APPEND directory "/include")
      endif()
      target_include_directories(${target} SYSTEM INTERFACE "${directory}")
    endforeach()
  endif()
  set(cella_${name}_FOUND TRUE PARENT_SCOPE)
  set(cella_${name}_TARGET ${target} PARENT_SCOPE)
endfunction()

# Whether a repository can be fetched, or its sources are here already: FetchContent itself would
# stop with git's words and hide the list of what is missing.
function(cella_reachable result content repository)
  string(TOLOWER "${content}" lower)
  string(TOUPPER "${content}" upper)
  set(${result} TRUE PARENT_SCOPE)
  if(FETCHCONTENT_SOURCE_DIR_${upper} OR EXISTS "${CMAKE_BINARY_DIR}/_deps/${lower}-src/.git")
    return()
  endif()
  find_package(Git QUIET)
  if(GIT_FOUND)
    execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_TERMINAL_PROMPT=0
                            ${GIT_EXECUTABLE} ls-remote --quiet ${repository} HEAD
                    RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET TIMEOUT 30)
    if(status EQUAL 0)
      return()
    endif()
    message(STATUS "Cannot be reached: ${repository}")
  endif()
  set(${result} FALSE PARENT_SCOPE)
endfunction()

function(cella_describe_problem text)
  set(lines)
  set(packages)
  foreach(name ${ARGN})
    list(APPEND lines "  ${name} ${cella_${name}_OLDEST} or newer")
    list(APPEND packages ${cella_${name}_DEBIAN})
  endforeach()
  if(NOT lines)
    set(${text} "" PARENT_SCOPE)
    return()
  endif()
  list(JOIN lines "\n" lines)
  list(JOIN packages " " packages)
  set(${text} "Cella needs packages that this machine lacks:\n${lines}\n\
Any of these remedies will do:\n\
  on Debian or Ubuntu: apt-get install ${packages}\n\
  let CMake run that command: configure with -DCELLA_INSTALL_DEPENDENCIES=ON\n\
  let CMake fetch pinned versions with git: configure with -DCELLA_FETCH_DEPENDENCIES=ON, online\n\
  if they are installed elsewhere: configure with -DCMAKE_PREFIX_PATH=<where>\n" PARENT_SCOPE)
endfunction()
