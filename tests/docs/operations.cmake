# Checks that docs/operations.md is what the operations' structs say: ctest docs.operations.
execute_process(COMMAND "${PROGRAM}" "${WRITTEN}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND "${CMAKE_COMMAND}" -E compare_files "${WRITTEN}" "${PAGE}" RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "docs/operations.md is not what the structs in include/cella/ops say; "
                      "build the target `operations`, which writes it again")
endif()
