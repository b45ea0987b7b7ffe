# Writes OUT, a C++ source with the files FORM, STYLE, SORT and SCRIPT (may be missing) as byte arrays.
function(bytes_of file into)
  set(list "")
  if(EXISTS "${file}")
    file(READ "${file}" hex HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," list "${hex}")
  endif()
  set(${into} "${list}0" PARENT_SCOPE)
endfunction()

set(text "#include \"report/page_files.hpp\"\n\nnamespace idem::bench {\nnamespace {\n")
set(accessors "")
foreach(part form style sort script)
  string(TOUPPER ${part} file)
  bytes_of("${${file}}" bytes)
  string(APPEND text "constexpr unsigned char k_${part}[] = {${bytes}};\n")
  string(APPEND accessors
    "std::string_view page_${part}() noexcept {\n"
    "  return {reinterpret_cast<const char*>(k_${part}), sizeof k_${part} - 1};\n}\n")
endforeach()
file(WRITE "${OUT}" "${text}}  // namespace\n${accessors}}  // namespace idem::bench\n")
