// The JSON Schema of a configuration file, made from the table of settings.
#include <map>
#include <nlohmann/json.hpp>

#include "idem/config.hpp"
#include "names.hpp"

namespace idem {
namespace {

using Json = nlohmann::ordered_json;

// What parse_duration takes.
constexpr const char* kDuration = "^([0-9]+(\\.[0-9]+)?(d|h|m|s|ms|us))+$";
// Segments, "*" for a whole one, a last "**".
constexpr const char* kRoutePath = "^(/([^*?#/ ]*|\\*))*/([^*?#/ ]*|\\*|\\*\\*)$";
constexpr const char* kCount = "^[0-9]+(k|M|G|KiB|MiB|GiB|TiB)?$";

Json object() {
  return Json{{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
}

Json route() {
  Json schema = object();
  schema["properties"] = Json{{"method", Json{{"type", "string"}, {"pattern", "^[^a-z]+$"}}},
                              {"path", Json{{"type", "string"}, {"pattern", kRoutePath}}},
                              {"key", Json{{"enum", Json{"required", "optional", "off"}}}},
                              {"biz_type", Json{{"type", "string"}, {"maxLength", 32}}}};
  return schema;
}

Json tiered_store() {
  Json schema = object();
  schema["required"] = Json{"front", "back"};
  for (const char* name : {"front", "back"}) schema["properties"][name] = Json{{"type", "string"}};
  return schema;
}

Json schema_of(const SettingInfo& info) {
  Json schema{{"description", std::string(info.help)}};
  const std::string_view form = info.form;
  if (form == "duration") {
    schema.update(Json{{"type", "string"}, {"pattern", kDuration}});
  } else if (form == "seconds" || form == "number") {
    schema.update(Json{{"type", "integer"}, {"minimum", 1}});
  } else if (form == "count") {
    schema.update(Json{{"type", Json{"integer", "string"}}, {"minimum", 1}, {"pattern", kCount}});
  } else if (form == "bool") {
    schema["type"] = "boolean";
  } else if (form == "list") {
    schema.update(Json{{"type", "array"}, {"items", Json{{"type", "string"}}}});
  } else if (form == "routes") {
    schema.update(Json{{"type", "array"}, {"items", route()}});
  } else if (info.name == "store") {
    schema["oneOf"] = Json{Json{{"type", "string"}}, tiered_store()};
  } else if (form == "text") {
    schema["type"] = "string";
  } else {  // the words it may be
    Json words = Json::array();
    for (std::string_view rest = form; !rest.empty();) {
      const std::string_view word = rest.substr(0, rest.find('|'));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      words.push_back(std::string(word));
    }
    schema["enum"] = std::move(words);
  }
  return schema;
}

}  // namespace

std::string config_schema() {
  Json settings = object();
  Json per_biz_type = object();
  std::map<std::string, std::string> sections{{"http", "The HTTP layer"},
                                              {"serve", "The reverse proxy, idem serve"}};
  for (const SettingInfo& info : setting_infos()) {
    const std::string name(info.name);
    const std::size_t dot = name.find('.');
    if (dot == std::string::npos) {
      settings["properties"][name] = schema_of(info);
    } else {
      Json& section = settings["properties"][name.substr(0, dot)];
      if (section.is_null()) {
        section = object();
        section["description"] = sections[name.substr(0, dot)];
      }
      section["properties"][name.substr(dot + 1)] = schema_of(info);
    }
    if (info.per_biz_type) per_biz_type["properties"][name] = schema_of(info);
  }
  settings["properties"]["biz_types"] = Json{{"type", "object"},
                                             {"description", "What differs for a business type"},
                                             {"additionalProperties", per_biz_type}};
  Json schema = object();
  Json head{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "idem"}};
  head.update(schema);
  head["required"] = Json::array({std::string(config::kRoot)});
  head["properties"][std::string(config::kRoot)] = std::move(settings);
  return head.dump(2) + "\n";
}

}  // namespace idem
