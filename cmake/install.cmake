# cmake --install: the command, the libraries that were built, their headers, and find_package(idem).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# What a static library links to must be exported with it, under whatever name.
set(installed "")
foreach(name IN ITEMS warnings core http async config prometheus asio boost_mysql server_process all testing
                      conformance ${IDEM_BACKENDS})
  if(TARGET idem_${name})
    list(APPEND installed idem_${name})
    set_target_properties(idem_${name} PROPERTIES EXPORT_NAME ${name})
  endif()
endforeach()
set_target_properties(idem_all PROPERTIES EXPORT_NAME idem)
set_target_properties(idem_server_process PROPERTIES EXPORT_NAME server_fixture)

install(TARGETS ${installed} EXPORT idem-targets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  OBJECTS DESTINATION ${CMAKE_INSTALL_LIBDIR}/idem
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET idem_cli)
  install(TARGETS idem_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/idem)
set(dependencies
  "Threads" "OpenSSL 3 COMPONENTS Crypto SSL" "Boost 1.88 CONFIG COMPONENTS headers OPTIONAL_COMPONENTS charconv"
  "nlohmann_json 3.11 CONFIG" "uriparser CONFIG COMPONENTS char")
foreach(pair IN ITEMS "sqlite:SQLite3 3.37" "config:yaml-cpp" "prometheus:prometheus-cpp CONFIG" "testing:GTest")
  string(REGEX MATCH "^([a-z]+):(.*)$" matched ${pair})
  if(TARGET idem_${CMAKE_MATCH_1})
    list(APPEND dependencies "${CMAKE_MATCH_2}")
  endif()
endforeach()
list(TRANSFORM dependencies PREPEND "find_dependency(")
list(TRANSFORM dependencies APPEND ")")
list(JOIN dependencies "\n" IDEM_DEPENDENCIES)

configure_package_config_file(cmake/idem-config.cmake.in idem-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(idem-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/idem-config.cmake ${PROJECT_BINARY_DIR}/idem-config-version.cmake
  DESTINATION ${package_dir})
install(EXPORT idem-targets NAMESPACE idem:: DESTINATION ${package_dir})
