// Every number of a document, one to a line, for spreadsheets and scripts.
#include <set>

#include "report/page.hpp"

namespace idem::bench {
namespace {

// Members that say what a row is about, not what was found.
const std::set<std::string, std::less<>> kLabels{"store", "contender", "keys", "clients",
                                                 "offered"};

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string label_of(const Json& element) {
  std::string label;
  for (const auto& [name, value] : element.items()) {
    if (kLabels.count(name) == 0 || value.is_structured() || value.is_null()) continue;
    label += (label.empty() ? "" : " ") + name + "=" +
             (value.is_string() ? value.get<std::string>() : value.dump());
  }
  return label;
}

void numbers(const Json& value, const std::string& part, const std::string& label,
             const std::string& measure, std::string& out) {
  if (value.is_number()) {
    out += quoted(part) + "," + quoted(label) + "," + quoted(measure) + "," + value.dump() + "\n";
  } else if (value.is_structured()) {
    std::size_t i = 0;
    for (const auto& [name, inner] : value.items()) {
      const std::string step = value.is_array() ? std::to_string(i++) : name;
      if (value.is_object() && kLabels.count(name) > 0 && !inner.is_structured()) continue;
      numbers(inner, part, label, measure.empty() ? step : measure + "." + step, out);
    }
  }
}

}  // namespace

std::string to_csv(const Json& document) {
  std::string out = "part,labels,measure,value\n";
  for (const auto& [part, value] : document.items()) {
    const bool rows = value.is_array() && !value.empty() && value.front().is_object();
    if (!rows) {
      numbers(value, part, "", "", out);
      continue;
    }
    for (const Json& element : value) numbers(element, part, label_of(element), "", out);
  }
  return out;
}

}  // namespace idem::bench
