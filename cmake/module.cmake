# SPDX-License-Identifier: Apache-2.0
# module(NAME FLOOR n [SMALL] [DEPS modules...] [LIBS libraries...]) declares the library src/NAME.
#
# SMALL: its code runs a few times a second at most, so that its size counts, in the bundle and in the
# time to compile it.
# A module may depend only on modules of a lower floor (ARCHITECTURE.md, "Floors"); the configure
# step fails otherwise, and tools/check_floors.py checks the real includes against these lines.
# Every src/NAME/**/*_test.cpp goes into one test executable, NAME_test.
define_property(TARGET PROPERTY CUTEGEN_FLOOR BRIEF_DOCS "floor" FULL_DOCS "floor of a module")

function(module NAME)
  cmake_parse_arguments(ARG "SMALL" "FLOOR" "DEPS;LIBS;TEST_LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${NAME})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  foreach(dep ${ARG_DEPS})
    if(NOT TARGET cg_${dep})
      message(FATAL_ERROR "module ${NAME}: unknown dependency '${dep}' (declare lower floors first)")
    endif()
    get_target_property(dep_floor cg_${dep} CUTEGEN_FLOOR)
    if(NOT dep_floor LESS ARG_FLOOR)
      message(FATAL_ERROR "module ${NAME} (floor ${ARG_FLOOR}) must not depend on ${dep} "
                          "(floor ${dep_floor}): only lower floors")
    endif()
  endforeach()
  if(NOT sources)
    message(FATAL_ERROR "module ${NAME}: no sources in ${dir}")
  endif()
  set(target cg_${NAME})
  add_library(${target} STATIC ${sources})
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  set_target_properties(${target} PROPERTIES CUTEGEN_FLOOR ${ARG_FLOOR})
  list(TRANSFORM ARG_DEPS PREPEND cg_)
  target_link_libraries(${target} PUBLIC ${ARG_DEPS})
  target_link_libraries(${target} PUBLIC ${ARG_LIBS})
  if(ARG_SMALL)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-Os>)
  endif()
  if(tests AND BUILD_TESTING)
    add_executable(${NAME}_test ${tests})
    target_link_libraries(${NAME}_test PRIVATE ${target} GTest::gmock GTest::gtest GTest::gtest_main
                                               ${ARG_TEST_LIBS})
    # A test runs once; what is compiled most often is its own code.
    target_compile_options(${NAME}_test PRIVATE $<$<CONFIG:Release>:-O1>
      # g++ 12 is wrong about members that a designated initialiser leaves out.
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
    target_compile_definitions(${NAME}_test PRIVATE
      CUTEGEN_SOURCE_DIR="${CMAKE_SOURCE_DIR}" CUTEGEN_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
    set_target_properties(${NAME}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
    add_test(NAME ${NAME} COMMAND ${NAME}_test)
    set_tests_properties(${NAME} PROPERTIES LABELS unit)
  endif()
endfunction()

# program(NAME DIR dir DEPS modules...) declares an executable of apps/DIR (floor 7).
function(program NAME)
  cmake_parse_arguments(ARG "" "DIR" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/${ARG_DIR}/*.cpp)
  if(NOT sources)
    message(FATAL_ERROR "program ${NAME}: no sources in apps/${ARG_DIR}")
  endif()
  add_executable(${NAME} ${sources})
  target_include_directories(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/apps)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${NAME} PRIVATE cg_${dep})
  endforeach()
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBS})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# embed_text(MODULE FUNCTION files...) compiles text files into cg_MODULE as
#   const std::map<std::string, std::string>& FUNCTION();   // by path relative to the source root
# declared by the module itself. Used for GPU files, schemas and recipe templates.
function(embed_text MODULE FUNCTION)
  set(out ${CMAKE_BINARY_DIR}/embedded/${MODULE}_${FUNCTION}.cpp)
  set(text "// generated\n#include <map>\n#include <string>\nnamespace cutegen {\n")
  string(APPEND text "const std::map<std::string, std::string>& ${FUNCTION}() {\n")
  string(APPEND text "  static const std::map<std::string, std::string> files{\n")
  foreach(file ${ARGN})
    file(READ ${file} content)
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR} ${file})
    string(APPEND text "    {\"${relative}\", R\"cgembed(${content})cgembed\"},\n")
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  string(APPEND text "  };\n  return files;\n}\n}  // namespace cutegen\n")
  set(old "")
  if(EXISTS ${out})
    file(READ ${out} old)
  endif()
  if(NOT old STREQUAL text)  # keep the time stamp of an unchanged file
    file(WRITE ${out} "${text}")
  endif()
  target_sources(cg_${MODULE} PRIVATE ${out})
endfunction()
