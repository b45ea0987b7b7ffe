# idem_public_headers(TARGET): what lies below include/ beside the caller is the target's to offer, built or installed.
function(idem_public_headers target)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS include/*.hpp)
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${headers})
endfunction()
