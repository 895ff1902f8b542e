# SPDX-License-Identifier: Apache-2.0
# module(NAME FLOOR n [SMALL] [DEPS modules...] [LIBS libraries...]) declares the library of src/NAME.
#
# NAME may be a sub-module such as eval/sets; its sources are the files of its own folder. SMALL
# optimizes for size: the code runs at most a few times a second, so the size of the bundle and the
# time to compile matter more than speed. A module may depend only on modules of a lower floor
# (ARCHITECTURE.md, "Floors"); otherwise the configure step fails. check_includes() compares the
# real includes with these lines.
#
# module_group(NAME [DEPS modules...]) declares cg_NAME, which combines all sub-modules of src/NAME,
# and their tests. A module without sub-modules is its own group. Every src/NAME/**/*_test.cpp goes
# into one test executable, NAME_test.
#
# CHECKED: an index out of bounds of a container ends the program. SINGLE: each file is compiled on
# its own.
define_property(TARGET PROPERTY CUTEGEN_FLOOR BRIEF_DOCS "floor" FULL_DOCS "floor of a module")

# The headers that nearly every file includes. Parsing them takes a third of a file's compile time.
# clang-tidy reads files without these precompiled headers, so it notices if a file does not include
# what it uses.
set(CUTEGEN_COMMON_HEADERS <algorithm> <filesystem> <functional> <map> <mutex> <optional> <set> <string> <thread>
    <vector> <fmt/format.h> ${CMAKE_SOURCE_DIR}/src/base/fields.h ${CMAKE_SOURCE_DIR}/src/base/file.h)

# unity(TARGET) compiles up to eight of its files as one, because most of the time goes into parsing
# headers. So names in anonymous namespaces must be unique in a module, and in its tests. The preset
# `dev` compiles each file on its own.
set(CUTEGEN_UNITY_FILES 8)
function(unity TARGET)
  if(CUTEGEN_UNITY)
    set_target_properties(${TARGET} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${CUTEGEN_UNITY_FILES})
  endif()
endfunction()

# precompile(TARGET KIND [OPTIONS...]) uses the common headers, precompiled once with these options.
function(precompile TARGET KIND)
  if(NOT CUTEGEN_PRECOMPILE)
    return()
  endif()
  set(shared cg_headers_${KIND})
  if(NOT TARGET ${shared})
    if(NOT EXISTS ${CMAKE_BINARY_DIR}/empty.cpp)  # a new time stamp would recompile everything
      file(WRITE ${CMAKE_BINARY_DIR}/empty.cpp "// only its precompiled headers are used\n")
    endif()
    add_library(${shared} OBJECT ${CMAKE_BINARY_DIR}/empty.cpp)
    target_include_directories(${shared} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${shared} PRIVATE fmt::fmt nlohmann_json::nlohmann_json)
    target_compile_options(${shared} PRIVATE -fPIC ${ARGN})
    set_target_properties(${shared} PROPERTIES POSITION_INDEPENDENT_CODE OFF)  # all users need the same setting
    target_precompile_headers(${shared} PRIVATE ${CUTEGEN_COMMON_HEADERS})
    if(KIND STREQUAL tests)
      target_precompile_headers(${shared} PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
    endif()
  endif()
  target_compile_options(${TARGET} PRIVATE -fPIC ${ARGN} $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
  set_target_properties(${TARGET} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_precompile_headers(${TARGET} REUSE_FROM ${shared})
endfunction()

function(module NAME)
  cmake_parse_arguments(ARG "SMALL;CHECKED;SINGLE" "FLOOR" "DEPS;LIBS;TEST_LIBS" ${ARGN})
  set(dir ${CMAKE_SOURCE_DIR}/src/${NAME})
  string(REPLACE "/" "_" target cg_${NAME})
  if(NAME MATCHES "/")
    file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  else()
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  endif()
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  foreach(dep ${ARG_DEPS})
    string(REPLACE "/" "_" dep_target cg_${dep})
    if(NOT TARGET ${dep_target})
      message(FATAL_ERROR "module ${NAME}: unknown dependency '${dep}' (declare lower floors first)")
    endif()
    get_target_property(dep_floor ${dep_target} CUTEGEN_FLOOR)
    if(NOT dep_floor LESS ARG_FLOOR)
      message(FATAL_ERROR "module ${NAME} (floor ${ARG_FLOOR}) must not depend on ${dep} "
                          "(floor ${dep_floor}): only lower floors")
    endif()
    list(APPEND dep_targets ${dep_target})
  endforeach()
  if(sources)
    add_library(${target} STATIC ${sources})
    target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} PUBLIC ${dep_targets} ${ARG_LIBS})
    if(NOT ARG_SINGLE)
      unity(${target})
    endif()
    set(options "")
    if(ARG_SMALL)
      list(APPEND options $<$<CONFIG:Release>:-Os>)
    endif()
    if(ARG_CHECKED)
      list(APPEND options -D_GLIBCXX_ASSERTIONS)
    endif()
    target_compile_options(${target} PRIVATE ${options})
    if(ARG_SMALL AND ARG_CHECKED)
      precompile(${target} checked ${options})
    elseif(ARG_SMALL)
      precompile(${target} small ${options})
    endif()
  else()  # only headers
    file(GLOB headers CONFIGURE_DEPENDS ${dir}/*.h)
    if(NOT headers)
      message(FATAL_ERROR "module ${NAME}: no sources in ${dir}")
    endif()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${target} INTERFACE ${dep_targets} ${ARG_LIBS})
  endif()
  set_target_properties(${target} PROPERTIES CUTEGEN_FLOOR ${ARG_FLOOR})
  if(NOT NAME MATCHES "/")
    module_tests(${NAME} ${ARG_TEST_LIBS})
  elseif(NAME MATCHES "^([a-z]+)/")
    set_property(GLOBAL APPEND PROPERTY CUTEGEN_${CMAKE_MATCH_1} ${target})
  endif()
endfunction()

function(module_group NAME)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  get_property(parts GLOBAL PROPERTY CUTEGEN_${NAME})
  set(floor 0)
  foreach(part ${parts})
    get_target_property(part_floor ${part} CUTEGEN_FLOOR)
    if(part_floor GREATER floor)
      set(floor ${part_floor})
    endif()
  endforeach()
  list(TRANSFORM ARG_DEPS REPLACE "/" "_")
  list(TRANSFORM ARG_DEPS PREPEND cg_)
  if(TARGET cg_${NAME})  # src/NAME has files besides its sub-modules
    message(FATAL_ERROR "module_group(${NAME}): name the root differently")
  endif()
  add_library(cg_${NAME} INTERFACE)
  list(REVERSE parts)  # a static library must precede those that it needs
  target_link_libraries(cg_${NAME} INTERFACE ${parts} ${ARG_DEPS})
  set_target_properties(cg_${NAME} PROPERTIES CUTEGEN_FLOOR ${floor})
  module_tests(${NAME})
endfunction()

function(module_tests NAME)
  file(GLOB_RECURSE tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${NAME}/*_test.cpp)
  if(NOT tests OR NOT BUILD_TESTING)
    return()
  endif()
  add_executable(${NAME}_test ${tests})
  target_link_libraries(${NAME}_test PRIVATE cg_${NAME} GTest::gmock GTest::gtest GTest::gtest_main ${ARGN})
  unity(${NAME}_test)
  # Tests run once, and compiling them with optimization would take longer than running them
  # without.
  target_compile_options(${NAME}_test PRIVATE $<$<CONFIG:Release>:-O0>
    # g++ 12 warns wrongly about members that a designated initialiser omits.
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
  precompile(${NAME}_test tests $<$<CONFIG:Release>:-O0>)
  target_compile_definitions(${NAME}_test PRIVATE
    CUTEGEN_SOURCE_DIR="${CMAKE_SOURCE_DIR}" CUTEGEN_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  set_target_properties(${NAME}_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${NAME} COMMAND ${NAME}_test)
  set_tests_properties(${NAME} PROPERTIES LABELS unit COST 30)  # see tests/CMakeLists.txt
endfunction()

# program(NAME DIR dir DEPS modules... LIBS libraries...) declares an executable of apps/DIR, above all
# modules. apps/DIR/CMakeLists.txt, if it exists, has the options that only this program needs.
function(program NAME)
  cmake_parse_arguments(ARG "" "DIR" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/apps/${ARG_DIR}/*.cpp)
  if(NOT sources)
    message(FATAL_ERROR "program ${NAME}: no sources in apps/${ARG_DIR}")
  endif()
  add_executable(${NAME} ${sources})
  target_include_directories(${NAME} PRIVATE ${CMAKE_SOURCE_DIR}/apps)
  target_compile_options(${NAME} PRIVATE $<$<CONFIG:Release>:-Os>)
  unity(${NAME})
  precompile(${NAME} small $<$<CONFIG:Release>:-Os>)
  foreach(dep ${ARG_DEPS})
    target_link_libraries(${NAME} PRIVATE cg_${dep})
  endforeach()
  target_link_libraries(${NAME} PRIVATE ${ARG_LIBS})
  set_target_properties(${NAME} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  if(EXISTS ${CMAKE_SOURCE_DIR}/apps/${ARG_DIR}/CMakeLists.txt)
    add_subdirectory(apps/${ARG_DIR})
  endif()
endfunction()

# check_includes() refuses what tools/check_floors.py refuses, such as an include of a file on a
# higher floor.
function(check_includes)
  find_program(CUTEGEN_CHECK_PYTHON python3)
  if(NOT CUTEGEN_CHECK_PYTHON)
    message(WARNING "python3 is not installed, so the includes are not compared with the floors")
    return()
  endif()
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../tools/check_floors.py)
  execute_process(COMMAND ${CUTEGEN_CHECK_PYTHON} -B ${script} ${CMAKE_SOURCE_DIR}
                  OUTPUT_VARIABLE found ERROR_VARIABLE found RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "${found}")
  endif()
endfunction()

# embed_text(MODULE FUNCTION files...) compiles text files into cg_MODULE as
#   const std::map<std::string, std::string>& FUNCTION();   // by path relative to the source root
# The module declares FUNCTION in its own namespace (gpu, core and llm in cutegen). Used for GPU files,
# schemas and recipe templates.
function(embed_text MODULE FUNCTION)
  set(space cutegen)
  if(MODULE MATCHES "^(agent|engine|eval|exporter|recipes)")
    set(space cutegen::${CMAKE_MATCH_1})
  endif()
  string(REPLACE "/" "_" MODULE ${MODULE})
  set(out ${CMAKE_BINARY_DIR}/embedded/${MODULE}_${FUNCTION}.cpp)
  set(text "// generated\n#include <map>\n#include <string>\nnamespace ${space} {\n")
  string(APPEND text "const std::map<std::string, std::string>& ${FUNCTION}() {\n")
  string(APPEND text "  static const std::map<std::string, std::string> files{\n")
  foreach(file ${ARGN})
    file(READ ${file} content)
    file(RELATIVE_PATH relative ${CMAKE_SOURCE_DIR} ${file})
    string(APPEND text "    {\"${relative}\", R\"cgembed(${content})cgembed\"},\n")
    set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  endforeach()
  string(APPEND text "  };\n  return files;\n}\n}  // namespace ${space}\n")
  set(old "")
  if(EXISTS ${out})
    file(READ ${out} old)
  endif()
  if(NOT old STREQUAL text)  # else keep the file's time stamp, so that nothing is recompiled
    file(WRITE ${out} "${text}")
  endif()
  target_sources(cg_${MODULE} PRIVATE ${out})
endfunction()
