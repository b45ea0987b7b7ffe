#include "names.hpp"

#include <cstdlib>
#include <map>

#include "idem/config.hpp"
#include "idem/store_url.hpp"

namespace idem::config {
namespace {

// Every map's names, by prefix.
std::map<std::string, Names, std::less<>> all_names() {
  std::map<std::string, Names, std::less<>> names;
  names[""].insert("biz_types");
  for (const SettingInfo& info : setting_infos()) {
    const std::string name(info.name);
    const std::size_t dot = name.find('.');
    if (info.per_biz_type) names[std::string(kBizTypes)].insert(name);
    if (dot == std::string::npos) {
      names[""].insert(name);
    } else {
      names[""].insert(name.substr(0, dot));
      names[name.substr(0, dot + 1)].insert(name.substr(dot + 1));
    }
  }
  return names;
}

}  // namespace

const Names& names_under(std::string_view prefix) {
  static const auto names = all_names();
  static const Names none;
  const auto found = names.find(prefix);
  return found == names.end() ? none : found->second;
}

bool is_section(std::string_view name) {
  return name != "biz_types" && !names_under(std::string(name) + ".").empty();
}

std::optional<std::string> nearest_slip(const std::string& word, const Names& among) {
  auto meant = nearest(word, among);
  if (!meant) return std::nullopt;
  // Near: the same length but for two, and the same first letters as far as half of it.
  const auto difference =
      static_cast<std::ptrdiff_t>(word.size()) - static_cast<std::ptrdiff_t>(meant->size());
  if (std::abs(difference) > 2) return std::nullopt;
  if (meant->compare(0, word.size() / 2, word, 0, word.size() / 2) != 0) return std::nullopt;
  return meant;
}

}  // namespace idem::config
