#include "idem/config.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

#include "loader.hpp"
#include "yaml_tree.hpp"

namespace idem {

using config::Loader;
using config::Node;

std::string_view to_string(Origin origin) noexcept {
  switch (origin) {
    case Origin::built_in:
      return "default";
    case Origin::file:
      return "file";
    case Origin::environment:
      return "environment";
    case Origin::flag:
      return "flag";
  }
  return "";
}

result<Config> load_config_text(std::string_view text, const std::string& name,
                                const ConfigSources& sources) {
  auto root = config::parse_yaml(text, name);
  if (!root) return root.error();
  Loader loader;
  loader.read_file(*root, name);
  loader.read_environment(sources);
  loader.read_flags(sources);
  return loader.finish(sources);
}

result<Config> load_config(const ConfigSources& sources) {
  if (sources.file.empty()) {
    Loader loader;
    loader.read_environment(sources);
    loader.read_flags(sources);
    return loader.finish(sources);
  }
  errno = 0;
  std::ifstream file(sources.file, std::ios::binary);
  // One byte more than a configuration may have is enough to refuse it, also one without an end.
  std::string text(config::kYamlBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  const int cause = errno;  // of the opening, or of the reading: a directory can be opened
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (!file.is_open() || file.bad()) {
    return fail(errc::cannot_open, sources.file + ": error: " + std::strerror(cause));
  }
  return load_config_text(text, sources.file, sources);
}

std::span<const SettingInfo> setting_infos() {
  static const std::vector<SettingInfo> infos = [] {
    std::vector<SettingInfo> all;
    for (const auto& one : config::general_settings()) all.push_back(one.info);
    for (const auto& one : config::policy_settings()) all.push_back(one.info);
    return all;
  }();
  return infos;
}

std::string environment_name(std::string_view setting) {
  std::string name = "IDEM_";
  for (const char c : setting) {
    const bool small = c >= 'a' && c <= 'z';
    name += c == '.' ? '_' : small ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

}  // namespace idem
