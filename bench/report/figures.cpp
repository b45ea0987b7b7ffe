#include "report/figures.hpp"

#include <fmt/core.h>

#include "load/units.hpp"

namespace idem::bench {
namespace {

template <class Format>
std::string figure(const Json& from, std::string_view path, Format format) {
  const Json& value = at_path(from, path);
  return value.is_number() ? format(value) : "-";
}

}  // namespace

const Json& at_path(const Json& from, std::string_view path) {
  static const Json kNothing = nullptr;
  const Json* at = &from;
  while (!path.empty()) {
    const std::size_t dot = path.find('.');
    const auto found = at->is_object() ? at->find(std::string(path.substr(0, dot))) : at->end();
    if (found == at->end()) return kNothing;
    at = &*found;
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return *at;
}

std::string text_figure(const Json& from, std::string_view path) {
  const Json& value = at_path(from, path);
  if (value.is_null()) return "-";
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string rate_figure(const Json& from, std::string_view path) {
  return figure(from, path, [](const Json& v) { return si(v.get<double>()); });
}

std::string time_figure(const Json& from, std::string_view path) {
  return figure(from, path, [](const Json& v) { return duration_text(v.get<Nanos>()); });
}

std::string count_figure(const Json& from, std::string_view path) {
  return figure(from, path, [](const Json& v) { return v.dump(); });
}

std::string share_figure(const Json& from, std::string_view path) {
  return figure(from, path, [](const Json& v) { return percent(v.get<double>()); });
}

std::string ratio_figure(const Json& from, std::string_view path) {
  return figure(from, path, [](const Json& v) { return fmt::format("{:.2f}x", v.get<double>()); });
}

std::string interval_figure(const Json& from, std::string_view path) {
  const Json& value = at_path(from, path);
  if (!value.is_array() || value.size() != 2) return "-";
  return fmt::format("[{}, {}]", si(value[0].get<double>()), si(value[1].get<double>()));
}

}  // namespace idem::bench
