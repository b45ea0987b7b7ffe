#include "line.hpp"

#include <vector>

#include "load/json.hpp"

namespace idem::cli {

namespace {

[[noreturn]] void wrong_type(std::string_view name, std::string_view wanted) {
  throw Failure::usage("'" + std::string(name) + "' must be " + std::string(wanted));
}

// Called by the parser for each event; refuses a name that its object already has, and what is
// nested deeper than anything that compares it may recurse.
class UniqueNames {
 public:
  static constexpr int kDepthMax = 64;
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    if (depth > kDepthMax)
      throw Failure::usage("nested deeper than " + std::to_string(kDepthMax) + " levels");
    if (event == Json::parse_event_t::object_start) names_.emplace_back();
    if (event == Json::parse_event_t::object_end) names_.pop_back();
    if (event == Json::parse_event_t::key && !names_.back().insert(parsed).second)
      throw Failure::usage("member " + parsed.dump(-1, ' ', true) + " stands twice in one object");
    return true;
  }

 private:
  std::vector<std::set<std::string>> names_;
};

// What and where, without the library's own words for its error.
std::string syntax_error(const Json::exception& error) {
  return "not JSON: " + std::string(bench::words_of(error));
}

}  // namespace

void check_size(std::string_view name, std::uint64_t size) {
  if (size <= kSizeMax) return;
  throw Failure::usage("'" + std::string(name) + "' must be at most " + std::to_string(kSizeMax));
}

std::string pattern(std::uint64_t size) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
  std::string bytes(static_cast<std::size_t>(size), '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = kLetters[(i + i / kLetters.size()) % kLetters.size()];
  return bytes;
}

Line Line::parse(std::string_view text) {
  try {
    Json object = Json::parse(text, UniqueNames());
    if (!object.is_object()) throw Failure::usage("a line must be one JSON object");
    return Line(std::move(object));
  } catch (const Json::exception& error) {
    throw Failure::usage(syntax_error(error));
  }
}

const Json* Line::member(std::string_view name) {
  known_.emplace(name);
  const auto at = object_.find(std::string(name));
  return at == object_.end() ? nullptr : &*at;
}

bool Line::has(std::string_view name) { return member(name) != nullptr; }

std::string Line::text(std::string_view name, std::string_view otherwise) {
  const Json* value = member(name);
  if (value == nullptr) return std::string(otherwise);
  if (!value->is_string()) wrong_type(name, "a text");
  return value->get<std::string>();
}

std::optional<std::uint64_t> Line::number(std::string_view name) {
  const Json* value = member(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_unsigned()) wrong_type(name, "a whole number");
  return value->get<std::uint64_t>();
}

bool Line::flag(std::string_view name) {
  const Json* value = member(name);
  if (value == nullptr) return false;
  if (!value->is_boolean()) wrong_type(name, "true or false");
  return value->get<bool>();
}

std::optional<Duration> Line::duration(std::string_view name) {
  if (!has(name)) return std::nullopt;
  const std::string given = text(name);
  if (given == "max") return Duration(std::chrono::hours::max());
  const auto parsed = parse_duration(given);
  if (!parsed) throw Failure::usage("'" + std::string(name) + "': " + parsed.error().message);
  return *parsed;
}

std::optional<std::string> Line::bytes(const std::string& name) {
  at_most_one_of({name, name + "_hex", name + "_size"});
  const bool plain = has(name);
  const bool hex = has(name + "_hex");
  const bool size = has(name + "_size");
  if (plain) return text(name);
  if (hex) return must(from_hex(text(name + "_hex")), name + "_hex");
  if (!size) return std::nullopt;
  check_size(name + "_size", *number(name + "_size"));
  return pattern(*number(name + "_size"));
}

void Line::at_most_one_of(std::initializer_list<std::string_view> names) const {
  std::string first;
  for (const std::string_view name : names) {
    if (!object_.contains(std::string(name))) continue;
    if (!first.empty())
      throw Failure::usage("'" + first + "' and '" + std::string(name) + "': give one of them");
    first = name;
  }
}

void Line::check_all_known() const {
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name)) continue;
    std::string message = "unknown member '" + name + "'";
    if (const auto meant = nearest(name, known_)) message += ", did you mean '" + *meant + "'?";
    throw Failure::usage(message);
  }
}

}  // namespace idem::cli
