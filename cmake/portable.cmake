# Programs for several machines: cella_portable_sources compiles some files of a target once for each
# instruction set, and the program chooses when it starts. docs/embedding.md tells how to use it.
#
# The trap that this avoids: inline functions and templates have the same names whatever they are compiled
# for, and a linker keeps one copy of each. With the flags alone, code for old machines would call a copy
# for new ones, be it of Cella's functions or of std::vector's. So every variant is linked into one object
# whose symbols are all local, except for the entries, which get the variant's name; and static
# objects are initialized for the chosen variant only.

# cella_portable_sources(<target> ENTRIES <function>... SOURCES <file>... [INSTRUCTION_SETS <set>...])
#
# Compiles the files for each of the sets (sse4.2, avx2, avx512, amx; all but the last by default, which
# serves what computes in 16 or 8 bits) and links them into the target. The entries are functions with C linkage that the files define: what the rest of the target
# calls. Call it in the directory of the target. Where the processor's family has one set only (NEON of
# AArch64), the files are compiled once.
function(cella_portable_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 portable "" "" "ENTRIES;SOURCES;INSTRUCTION_SETS")
  if(NOT portable_ENTRIES OR NOT portable_SOURCES OR portable_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "cella_portable_sources(${target}): ENTRIES and SOURCES are needed, "
                        "INSTRUCTION_SETS may follow; found `${ARGN}`")
  endif()
  if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    target_sources(${target} PRIVATE ${portable_SOURCES})
    return()
  endif()
  cella_find_binary_tools()
  # In the order of instruction_sets.hpp: levels of the x86-64 ABI, from 2 on, and more.
  set(known sse4.2 avx2 avx512 amx)
  set(sets sse4.2 avx2 avx512)
  set(options -march=x86-64-v2 -march=x86-64-v3 -march=x86-64-v4)
  set(amx avx512ifma avx512vbmi avx512vbmi2 avx512vnni avx512bitalg avx512vpopcntdq avx512bf16 amx-tile
          amx-bf16 amx-int8)
  list(TRANSFORM amx PREPEND -m)
  list(JOIN amx " " amx)
  list(APPEND options "-march=x86-64-v4 ${amx}")
  if(portable_INSTRUCTION_SETS)
    set(sets ${portable_INSTRUCTION_SETS})
  endif()

  list(GET portable_ENTRIES 0 group)
  set(directory "${CMAKE_CURRENT_BINARY_DIR}/${target}.portable")
  set(offered 0)
  foreach(set ${sets})
    list(FIND known "${set}" index)
    if(index EQUAL -1)
      message(FATAL_ERROR "cella_portable_sources(${target}): ${set} is none of the instruction sets "
                          "${known}")
    endif()
    math(EXPR offered "${offered} | (1 << ${index})")
    string(MAKE_C_IDENTIFIER "${set}" suffix)
    list(GET options ${index} flags)
    cella_add_variant(${target} ${group} ${suffix} "${flags}")
    string(APPEND declarations "extern function ${group}_begin_${suffix}[], ${group}_end_${suffix}[];\n")
    string(APPEND cases "    case ${index}:\n")
    foreach(entry ${portable_ENTRIES})
      string(APPEND declarations "void ${entry}_${suffix}();\n")
      string(APPEND cases "      cella_chosen_${entry} = ${entry}_${suffix};\n")
    endforeach()
    string(APPEND cases "      initialize(${group}_begin_${suffix}, ${group}_end_${suffix});\n      break;\n")
  endforeach()
  foreach(entry ${portable_ENTRIES})
    string(APPEND pointers "[[gnu::visibility(\"hidden\")]] function cella_chosen_${entry};\n")
    string(APPEND jumps "    CELLA_ENTRY(\"${entry}\")\n")
  endforeach()
  configure_file("${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable.cpp.in" "${directory}/${group}.cpp" @ONLY)
  cella_add_part(${target} ${target}_${group}_choice "-march=x86-64" "${directory}/${group}.cpp")
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${group}_choice>)
endfunction()

# The GNU linker and objcopy, or what understands the same.
function(cella_find_binary_tools)
  if(NOT CELLA_LINKER)
    foreach(linker "${CMAKE_LINKER}" ld.bfd ld)
      find_program(found "${linker}" NO_CACHE)
      execute_process(COMMAND "${found}" --help OUTPUT_VARIABLE help ERROR_QUIET)
      if(help MATCHES "--force-group-allocation")
        set(CELLA_LINKER "${found}" CACHE FILEPATH "Linker that joins the objects of a portable variant")
        break()
      endif()
      unset(found)
    endforeach()
  endif()
  if(NOT CELLA_LINKER OR NOT CMAKE_OBJCOPY)
    message(FATAL_ERROR "cella_portable_sources needs objcopy and a linker with "
                        "--force-group-allocation (GNU binutils 2.29 or newer)")
  endif()
endfunction()

# An object library that is compiled as the target is, with `options` last.
function(cella_add_part target name options)
  add_library(${name} OBJECT ${ARGN})
  # Link libraries' options come behind a target's own: so these do, too. In one string, so that
  # they are not dropped as repetitions of earlier ones.
  add_library(${name}_options INTERFACE)
  target_compile_options(${name}_options INTERFACE "SHELL:${options} -mtune=generic -fno-lto")
  foreach(property INCLUDE_DIRECTORIES COMPILE_DEFINITIONS COMPILE_OPTIONS COMPILE_FEATURES)
    set_property(TARGET ${name} PROPERTY ${property} "$<TARGET_PROPERTY:${target},${property}>")
  endforeach()
  target_link_libraries(${name} PRIVATE "$<TARGET_PROPERTY:${target},LINK_LIBRARIES>" ${name}_options)
  foreach(property CXX_STANDARD CXX_STANDARD_REQUIRED CXX_EXTENSIONS POSITION_INDEPENDENT_CODE)
    get_target_property(value ${target} ${property})
    if(NOT value MATCHES "NOTFOUND")
      set_target_properties(${name} PROPERTIES ${property} ${value})
    endif()
  endforeach()
  get_target_property(type ${target} TYPE)
  if(type MATCHES "SHARED|MODULE")
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  set_target_properties(${name} PROPERTIES INTERPROCEDURAL_OPTIMIZATION OFF)
endfunction()

# One variant of the caller's portable_SOURCES: compiled, joined, its symbols localized.
function(cella_add_variant target group suffix options)
  set(script "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/portable.ld")
  set(part ${target}_${group}_${suffix})
  cella_add_part(${target} ${part} "${options}" ${portable_SOURCES})
  target_compile_definitions(${part} PRIVATE CELLA_INSTRUCTIONS_ARE_CHOSEN)
  # Symbols that are unique in a process cannot be local; clang makes none.
  target_compile_options(${part} PRIVATE "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fno-gnu-unique>")
  set(keep --keep-global-symbol=cella_begin --keep-global-symbol=cella_end)
  set(rename --redefine-sym=cella_begin=${group}_begin_${suffix}
             --redefine-sym=cella_end=${group}_end_${suffix})
  foreach(entry ${portable_ENTRIES})
    list(APPEND keep --keep-global-symbol=${entry})
    list(APPEND rename --redefine-sym=${entry}=${entry}_${suffix})
  endforeach()
  set(object "${directory}/${group}.${suffix}.o")
  add_custom_command(
    OUTPUT "${object}"
    COMMAND "${CELLA_LINKER}" -r --force-group-allocation -T "${script}"
            -o "${object}" "$<TARGET_OBJECTS:${part}>"
    COMMAND "${CMAKE_OBJCOPY}" ${keep} "${object}"
    COMMAND "${CMAKE_OBJCOPY}" ${rename} "${object}"
    DEPENDS "$<TARGET_OBJECTS:${part}>" "${script}"
    COMMENT "Joining the ${suffix} variant of ${target}"
    COMMAND_EXPAND_LISTS VERBATIM)
  # Makefiles know how to make an object in its own target only.
  add_dependencies(${target} ${part})
  set_source_files_properties("${object}" PROPERTIES GENERATED TRUE EXTERNAL_OBJECT TRUE)
  target_sources(${target} PRIVATE "${object}")
endfunction()
