// Gathers settings from all sources, each with its place, and the faults found on the way.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "settings.hpp"
#include "yaml_tree.hpp"

namespace idem::config {

class Loader {
 public:
  // The sources, in rising order of precedence.
  void read_file(const Node& root, const std::string& name);
  void read_environment(const ConfigSources& sources);
  void read_flags(const ConfigSources& sources);

  // Judges the store that won, and what concerns several settings at once; then the configuration
  // or every fault, a line each.
  [[nodiscard]] result<Config> finish(const ConfigSources& sources);

 private:
  void read_map(const Node& map, const std::string& prefix);
  void read_entry(const std::string& name, const Node& value);
  void read_biz_types(const Node& map);
  void read_routes(const Node& list);
  [[nodiscard]] bool read_route(const Node& map, Route& route);
  void read_store(const Node& map);
  [[nodiscard]] bool expect(const Node& value, Node::Kind kind, const std::string& name);

  void apply(const std::string& name, const Value& value, Origin origin, const std::string& where);
  void apply_to_biz_type(const std::string& name, const Value& value, Origin origin,
                         const std::string& where);
  // False, with a fault, if the other spelling of this setting stands beside it.
  [[nodiscard]] bool record(const std::string& slot, const std::string& name, Origin origin,
                            const std::string& where);
  void unknown(const std::string& name, std::string_view prefix, const std::string& where);
  void fault(const std::string& where, const std::string& what);
  [[nodiscard]] std::string place(const Node& node) const;

  void check_relations(const Policy& policy, const std::string& prefix);
  [[nodiscard]] const Setting* found(const std::string& prefix, const std::string& slot) const;
  void list_settings();

  std::string file_;
  Config config_;
  PolicyPatch base_;
  std::map<std::string, Setting> set_;  // by prefix and slot
  std::vector<std::string> faults_;
};

}  // namespace idem::config
