// The file's maps, sequences and scalars as settings.
#include "idem/store_url.hpp"
#include "loader.hpp"
#include "names.hpp"
#include "values.hpp"

namespace idem::config {
namespace {

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '.' || c == '_' || c == '~';
    if (plain) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out.append({'%', kHex[byte >> 4U], kHex[byte & 15U]});
    }
  }
  return out;
}

}  // namespace

void Loader::read_file(const Node& root, const std::string& name) {
  file_ = name;
  if (root.kind == Node::Kind::nothing) {
    // A file that was cut off must not quietly mean "all defaults".
    return fault(file_ + ":1:1", "the file is empty; write 'idempotency: {}' for all defaults");
  }
  if (!expect(root, Node::Kind::map, "the file")) return;
  bool seen = false;
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    if (root.keys[i].text != kRoot) {
      std::string what = "unknown key '" + root.keys[i].text + "'";
      if (nearest(root.keys[i].text, {std::string(kRoot)})) {
        what += " (did you mean 'idempotency'?)";
      } else if (names_under("").contains(root.keys[i].text)) {
        what += " (it stands under 'idempotency:', indented)";
      }
      fault(place(root.keys[i]), what);
      continue;
    }
    seen = true;
    if (expect(root.values[i], Node::Kind::map, root.keys[i].text)) read_map(root.values[i], "");
  }
  if (!seen && faults_.empty()) fault(place(root), "the key 'idempotency' is missing");
}

bool Loader::expect(const Node& value, Node::Kind kind, const std::string& name) {
  if (value.kind == kind) return true;
  const auto word = [](Node::Kind one) {
    switch (one) {
      case Node::Kind::nothing:
        return "no value";
      case Node::Kind::scalar:
        return "a single value";
      case Node::Kind::sequence:
        return "a list";
      case Node::Kind::map:
        return "a map of keys and values";
    }
    return "";
  };
  fault(place(value), name + ": " + word(kind) + " is expected, not " + word(value.kind));
  return false;
}

void Loader::read_map(const Node& map, const std::string& prefix) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string& key = map.keys[i].text;
    if (!names_under(prefix).contains(key)) {
      unknown(key, prefix, place(map.keys[i]));
    } else if (prefix.empty() && is_section(key)) {
      if (expect(map.values[i], Node::Kind::map, key)) read_map(map.values[i], key + ".");
    } else {
      read_entry(prefix + key, map.values[i]);
    }
  }
}

void Loader::read_entry(const std::string& name, const Node& value) {
  if (name == "biz_types") {
    if (expect(value, Node::Kind::map, name)) read_biz_types(value);
    return;
  }
  if (name == "serve.routes") {
    if (expect(value, Node::Kind::sequence, name)) read_routes(value);
    return;
  }
  if (name == "store" && value.kind == Node::Kind::map) return read_store(value);
  Value given;
  if (name == "http.stored_headers") {
    if (!expect(value, Node::Kind::sequence, name)) return;
    for (const Node& item : value.values) {
      if (expect(item, Node::Kind::scalar, name)) given.items.push_back(item.text);
    }
  } else {
    if (!expect(value, Node::Kind::scalar, name)) return;
    given.text = value.text;
    given.quoted = value.quoted;
  }
  apply(name, given, Origin::file, place(value));
}

void Loader::read_biz_types(const Node& map) {
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string& biz_type = map.keys[i].text;
    if (!expect(map.values[i], Node::Kind::map, std::string(kBizTypes) + biz_type)) continue;
    const Node& settings = map.values[i];
    for (std::size_t j = 0; j < settings.keys.size(); ++j) {
      const std::string& key = settings.keys[j].text;
      if (!names_under(kBizTypes).contains(key)) {
        unknown(key, kBizTypes, place(settings.keys[j]));
        continue;
      }
      const std::string name = std::string(kBizTypes) + biz_type + "." + key;
      if (!expect(settings.values[j], Node::Kind::scalar, name)) continue;
      Value given;
      given.text = settings.values[j].text;
      given.quoted = settings.values[j].quoted;
      apply(name, given, Origin::file, place(settings.values[j]));
    }
  }
}

void Loader::read_store(const Node& map) {
  std::string front, back;
  const std::size_t faults_before = faults_.size();
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string& key = map.keys[i].text;
    if (key != "front" && key != "back") {
      fault(place(map.keys[i]), "unknown key '" + key + "' (a tiered store has front and back)");
      continue;
    }
    if (!expect(map.values[i], Node::Kind::scalar, "store." + key)) continue;
    (key == "front" ? front : back) = map.values[i].text;
    if (const auto url = StoreUrl::parse(map.values[i].text); !url) {
      fault(place(map.values[i]), key + ": " + url.error().message);
    }
  }
  if (faults_.size() != faults_before) return;
  if (front.empty() || back.empty()) {
    return fault(place(map), "store: a tiered store has both front and back");
  }
  Value given;
  given.text = "tiered:?front=" + percent_encoded(front) + "&back=" + percent_encoded(back);
  apply("store", given, Origin::file, place(map));
}

void Loader::read_routes(const Node& list) {
  std::vector<Route> routes;
  for (const Node& item : list.values) {
    Route route;
    if (expect(item, Node::Kind::map, "serve.routes") && read_route(item, route)) {
      routes.push_back(std::move(route));
    }
  }
  if (!record("serve.routes", "serve.routes", Origin::file, place(list))) return;
  config_.serve.routes = std::move(routes);
}

bool Loader::read_route(const Node& map, Route& route) {
  static const Names kNames{"method", "path", "key", "biz_type"};
  const std::size_t faults_before = faults_.size();
  for (std::size_t i = 0; i < map.keys.size(); ++i) {
    const std::string& key = map.keys[i].text;
    const Node& value = map.values[i];
    if (!kNames.contains(key)) {
      const auto meant = nearest(key, kNames);
      fault(place(map.keys[i]), "unknown key '" + key + "'" +
                                    (meant ? " (did you mean '" + *meant + "'?)" : std::string()));
      continue;
    }
    if (!expect(value, Node::Kind::scalar, key)) continue;
    Value given;
    given.text = value.text;
    if (key == "method") {
      const auto method = to_method(given);
      if (!method) fault(place(value), "method: " + method.error().message);
      if (method) route.method = *method;
    } else if (key == "path") {
      const auto path = to_route_path(given);
      if (!path) fault(place(value), "path: " + path.error().message);
      if (path) route.path = *path;
    } else if (key == "biz_type") {
      const auto checked = check_key({{}, value.text, "-"});
      if (!checked) fault(place(value), checked.error().message);
      route.biz_type = value.text;
    } else {
      const auto use = to_word(given, kKeyUses);
      if (!use) fault(place(value), "key: " + use.error().message);
      if (use) route.key = *use;
    }
  }
  return faults_.size() == faults_before;
}

}  // namespace idem::config
