# Fails if a benchmark in FOLDER asks for threads anywhere but in threaded.cpp, or if that file does
# not measure by wall clock.
file(GLOB sources ${FOLDER}/*.cpp ${FOLDER}/*.hpp)
foreach(source IN LISTS sources)
  file(READ ${source} text)
  if(source MATCHES "/threaded\\.cpp$")
    if(NOT text MATCHES "UseRealTime\\(\\)")
      message(FATAL_ERROR "${source}: no UseRealTime()")
    endif()
  elseif(text MATCHES "(->|\\.)(Threads|ThreadRange|DenseThreadRange|ThreadPerCpu)\\(")
    message(FATAL_ERROR "${source}: threads only through register_threaded()")
  endif()
endforeach()
