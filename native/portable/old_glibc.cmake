# Wheels run on machines with glibc 2.27 or later, the oldest that scikit-learn's wheels support, whatever glibc this
# machine has. A function with several versions in glibc is linked at its newest, so _core is linked to stub libraries
# first: they have the names of glibc's libraries, and each function at the newest version that glibc 2.27 has. The stubs
# are not installed. tools/wheels.py checks the tag that results; `objdump -T` of the module lists the versions.
set(HINGE_GLIBC 2.27)

include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <features.h>
  static_assert(__GLIBC_PREREQ(2, 29));
  int main() {}" HINGE_NEW_LIBM)
check_cxx_source_compiles("#include <features.h>
  static_assert(__GLIBC_PREREQ(2, 34));
  int main() {}" HINGE_NEW_LIBPTHREAD) # a part of libc

# Builds a shared library of this name that defines functions, "name@version" each, and links it to the target.
function(hinge_link_stub target library)
  set(folder ${CMAKE_BINARY_DIR}/old_glibc/${library})
  set(code "")
  foreach(entry ${ARGN})
    string(REGEX MATCH "^(.+)@(.+)$" entry ${entry})
    string(APPEND code "asm(\".globl ${CMAKE_MATCH_1}\\n.type ${CMAKE_MATCH_1}, %function\\n${CMAKE_MATCH_1}:\");\n")
    string(APPEND "node_${CMAKE_MATCH_2}" " ${CMAKE_MATCH_1};")
    list(APPEND versions ${CMAKE_MATCH_2})
  endforeach()
  list(REMOVE_DUPLICATES versions)
  set(map "")
  foreach(version ${versions})
    string(APPEND map "${version} {${node_${version}} };\n")
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/versions.map CONTENT "${map}" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/stub.cpp CONTENT "${code}" @ONLY)
  string(MAKE_C_IDENTIFIER hinge_stub_${library} stub)
  add_library(${stub} SHARED ${folder}/stub.cpp)
  set_target_properties(${stub} PROPERTIES NO_SONAME ON LIBRARY_OUTPUT_DIRECTORY ${folder} LINK_DEPENDS ${folder}/versions.map)
  target_link_options(${stub} PRIVATE -nostdlib LINKER:-soname,${library} LINKER:--version-script,${folder}/versions.map)
  add_dependencies(${target} ${stub})
  # As an option, so that no run path to the stub is written. The linker must not drop it because the C++ library, which
  # uses it, comes later.
  target_link_options(${target} PRIVATE "SHELL:-Wl,--no-as-needed $<TARGET_FILE:${stub}> -Wl,--as-needed")
endfunction()

function(hinge_link_old_glibc target)
  if(NOT HINGE_NEW_LIBM)
    return()
  endif()
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libm.so.6 OUTPUT_VARIABLE libm
    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_NM} -D --with-symbol-versions ${libm} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[TWi] [A-Za-z0-9_]+@+GLIBC_[0-9.]+" symbols "${symbols}")
  set(functions)
  foreach(symbol ${symbols})
    string(REGEX MATCH "^. (.+[^@])@+GLIBC_(.+)$" symbol ${symbol})
    set(name ${CMAKE_MATCH_1})
    set(version ${CMAKE_MATCH_2})
    if(version VERSION_LESS_EQUAL HINGE_GLIBC)
      list(APPEND functions ${name})
      if(NOT DEFINED best_${name} OR version VERSION_GREATER best_${name})
        set(best_${name} ${version})
      endif()
    endif()
  endforeach()
  list(REMOVE_DUPLICATES functions)
  set(entries)
  foreach(name ${functions})
    list(APPEND entries ${name}@GLIBC_${best_${name}})
  endforeach()
  hinge_link_stub(${target} libm.so.6 ${entries})
  if(HINGE_NEW_LIBPTHREAD)
    # The versions these had in libpthread: those of the first glibc of the architecture.
    set(first GLIBC_2.2.5)
    if(CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
      set(first GLIBC_2.17)
    endif()
    set(functions __pthread_key_create pthread_create pthread_detach pthread_join pthread_mutex_trylock pthread_once
      pthread_key_create pthread_key_delete pthread_getspecific pthread_setspecific) # the last four in free-threaded Pythons
    list(TRANSFORM functions APPEND @${first})
    hinge_link_stub(${target} libpthread.so.0 ${functions})
  endif()
  target_sources(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/native/portable/newer_glibc.cpp)
endfunction()
