// The table of settings: name, form, how a value is taken in and how it is shown. Whatever reads or
// lists settings goes over this table.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "idem/config.hpp"

namespace idem::config {

// A value as it was written, before it has a type.
struct Value {
  std::string text;
  bool quoted = false;             // in the file, in quotes: it is text, not a number or a bool
  std::vector<std::string> items;  // of a list
};

// A setting of the state machine: of the service, or of one biz_type.
struct PolicySetting {
  SettingInfo info;
  std::string_view slot;  // two spellings of one setting share it: "redis_ttl" and "lease"
  result<void> (*set)(PolicyPatch&, const Value&);
  std::string (*show)(const Policy&);
};

struct GeneralSetting {
  SettingInfo info;
  result<void> (*set)(Config&, const Value&);
  std::string (*show)(const Config&);
};

[[nodiscard]] std::span<const PolicySetting> policy_settings();
[[nodiscard]] std::span<const GeneralSetting> general_settings();

}  // namespace idem::config
