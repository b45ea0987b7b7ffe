// Sources and checks; the file's maps are read in file_reader.cpp.
#include "loader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "idem/store_url.hpp"
#include "names.hpp"

namespace idem::config {
namespace {

template <class Table>
auto find_setting(const Table& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& one) { return one.info.name == name; });
  return found == table.end() ? nullptr : &*found;
}

// "a,b , c" as a list, for sources that have no lists.
std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> items;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), item.size() + 1));
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (!item.empty()) items.emplace_back(item);
  }
  return items;
}

Value flat_value(std::string text) {
  Value value;
  value.items = split_list(text);
  value.text = std::move(text);
  return value;
}

std::optional<std::string> process_variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

void Loader::fault(const std::string& where, const std::string& what) {
  faults_.push_back(where + ": error: " + what);
}

std::string Loader::place(const Node& node) const {
  return file_ + ":" + std::to_string(node.place.line) + ":" + std::to_string(node.place.column);
}

bool Loader::record(const std::string& slot, const std::string& name, Origin origin,
                    const std::string& where) {
  Setting& setting = set_[slot];
  if (setting.origin == origin && !setting.name.empty() && setting.name != name &&
      origin != Origin::built_in) {
    fault(where, "'" + name + "' and '" + setting.name + "' are one setting; write one of them");
    return false;
  }
  setting = {name, "", origin, where};
  return true;
}

void Loader::unknown(const std::string& name, std::string_view prefix, const std::string& where) {
  std::string text = "unknown key '" + name + "'";
  if (const auto meant = nearest(name, names_under(prefix))) {
    text += " (did you mean '" + *meant + "'?)";
  }
  fault(where, text);
}

void Loader::apply(const std::string& name, const Value& value, Origin origin,
                   const std::string& where) {
  if (name.starts_with(kBizTypes)) return apply_to_biz_type(name, value, origin, where);
  result<void> done;
  if (const auto* policy = find_setting(policy_settings(), name)) {
    if (!record(std::string(policy->slot), name, origin, where)) return;
    done = policy->set(base_, value);
  } else if (const auto* general = find_setting(general_settings(), name)) {
    if (!record(name, name, origin, where)) return;
    done = general->set(config_, value);
  } else {
    return unknown(name, "", where);
  }
  if (!done) fault(where, name + ": " + done.error().message);
}

void Loader::apply_to_biz_type(const std::string& name, const Value& value, Origin origin,
                               const std::string& where) {
  const std::size_t dot = name.rfind('.');
  const std::string prefix = name.substr(0, dot + 1);  // "biz_types.pay."
  const std::string leaf = name.substr(dot + 1);
  const auto* policy = find_setting(policy_settings(), leaf);
  if (policy == nullptr || prefix.size() <= kBizTypes.size()) {
    return unknown(leaf, kBizTypes, where);
  }
  const std::string biz_type =
      prefix.substr(kBizTypes.size(), prefix.size() - kBizTypes.size() - 1);
  if (auto checked = check_key({{}, biz_type, "-"}); !checked) {
    return fault(where, checked.error().message);
  }
  if (!record(prefix + std::string(policy->slot), name, origin, where)) return;
  if (auto done = policy->set(config_.service.biz_types[biz_type], value); !done) {
    fault(where, leaf + ": " + done.error().message);
  }
}

void Loader::read_environment(const ConfigSources& sources) {
  const auto look_up = sources.environment ? sources.environment : process_variable;
  // Known from the start: what is no setting, but for `idem key`.
  std::set<std::string, std::less<>> known{"IDEM_OWNER", "IDEM_FENCE"};
  for (const SettingInfo& info : setting_infos()) {
    const std::string variable = environment_name(info.name);
    known.insert(variable);
    // As everywhere, an empty variable is one that is not set.
    if (auto text = look_up(variable); text && !text->empty()) {
      apply(std::string(info.name), flat_value(std::move(*text)), Origin::environment, variable);
    }
  }
  if (sources.environment) return;
  // Other programs may have variables with our prefix; only what looks like a slip is a fault.
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string variable(text.substr(0, text.find('=')));
    if (!variable.starts_with("IDEM_") || known.contains(variable)) continue;
    if (const auto meant = nearest_slip(variable, known)) {
      fault(variable, "unknown variable (did you mean '" + *meant + "'?)");
    }
  }
}

void Loader::read_flags(const ConfigSources& sources) {
  for (const auto& [name, text, where] : sources.flags) {
    apply(name, flat_value(text), Origin::flag, where.empty() ? "--set " + name : where);
  }
}

const Setting* Loader::found(const std::string& prefix, const std::string& slot) const {
  for (const std::string& name : {prefix + slot, slot}) {
    if (const auto at = set_.find(name); at != set_.end()) return &at->second;
  }
  return nullptr;
}

void Loader::check_relations(const Policy& policy, const std::string& prefix) {
  const Setting* const lease = found(prefix, "lease");
  const auto at_least_lease = [&](const std::string& slot, const std::string& usual_name,
                                  Duration value) {
    if (value >= policy.lease) return;
    const Setting* const setting = found(prefix, slot);
    const Setting* const guilty = setting != nullptr ? setting : lease;
    const std::string name = setting != nullptr ? setting->name : usual_name;
    fault(guilty != nullptr ? guilty->where : file_,
          name + " (" + format_duration(value) + (setting == nullptr ? ", the default" : "") +
              ") is shorter than " + (lease != nullptr ? lease->name : "redis_ttl") + " (" +
              format_duration(policy.lease) + ")");
  };
  at_least_lease("stuck_after", "db_timeout_clean_seconds", policy.stuck_after);
  at_least_lease("result_ttl", "result_ttl", policy.result_ttl);
}

void Loader::list_settings() {
  const auto add = [&](const std::string& slot, std::string name, auto show_by) {
    Setting setting{std::move(name), "", Origin::built_in, ""};
    if (const auto at = set_.find(slot); at != set_.end()) setting = at->second;
    setting.value = show_by(setting.name);
    config_.settings.push_back(std::move(setting));
  };
  const auto show_policy = [](const Policy& policy) {
    return [&policy](const std::string& name) {
      const std::size_t dot = name.rfind('.');
      return find_setting(policy_settings(), std::string_view(name).substr(dot + 1))->show(policy);
    };
  };
  std::set<std::string_view> listed;
  for (const GeneralSetting& general : general_settings()) {
    const std::string name(general.info.name);
    add(name, name, [&](const std::string&) { return general.show(config_); });
  }
  for (const PolicySetting& policy : policy_settings()) {
    if (!listed.insert(policy.slot).second) continue;
    add(std::string(policy.slot), std::string(policy.info.name),
        show_policy(config_.service.policy));
  }
  for (const auto& [biz_type, patch] : config_.service.biz_types) {
    const Policy whole = patch.apply_to(config_.service.policy);
    const std::string prefix = std::string(kBizTypes) + biz_type + ".";
    for (const std::string_view slot : listed) {
      const std::string name = prefix + std::string(slot);
      if (set_.contains(name)) add(name, name, show_policy(whole));
    }
  }
}

result<Config> Loader::finish(const ConfigSources& sources) {
  if (const auto url = StoreUrl::parse(config_.store); url && sources.check_store) {
    if (auto checked = sources.check_store(*url); !checked) {
      fault(found("", "store")->where, "store: " + checked.error().message);
    }
  }
  config_.service.policy = base_.apply_to(Policy());
  if (faults_.empty()) {
    check_relations(config_.service.policy, "");
    for (const auto& [biz_type, patch] : config_.service.biz_types) {
      // A fault of the service's own policy is told once.
      if (!faults_.empty()) break;
      check_relations(patch.apply_to(config_.service.policy),
                      std::string(kBizTypes) + biz_type + ".");
    }
  }
  if (const ServeOptions& serve = config_.serve;
      faults_.empty() && !serve.health_path.empty() && serve.health_path == serve.metrics_path) {
    const Setting* const guilty = found("serve.", "health_path");
    fault((guilty != nullptr ? guilty : found("serve.", "metrics_path"))->where,
          "serve.health_path and serve.metrics_path are the same path (" + serve.health_path + ")");
  }
  if (faults_.empty()) {
    if (auto checked = http::check_policy(config_.http); !checked) {
      faults_.push_back("error: " + checked.error().message);
    }
  }
  if (!faults_.empty()) {
    std::string text;
    for (const std::string& one : faults_) text.append(text.empty() ? "" : "\n").append(one);
    return idem::fail(errc::invalid_argument, std::move(text));
  }
  list_settings();
  return std::move(config_);
}

}  // namespace idem::config
