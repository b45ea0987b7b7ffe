#include "idem/conformance/subject.hpp"

#include <algorithm>
#include <cctype>

namespace idem::conformance {
namespace {

// "sqlite" and "file:/wal" -> "sqlite_file_wal": what GoogleTest takes for a name.
std::string identifier(const std::string& backend, const std::string& variant) {
  std::string name = variant.empty() ? backend : backend + "_" + variant;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

}  // namespace

std::vector<Subject> exact(std::vector<Subject> all) {
  std::erase_if(all, [](const Subject& subject) { return subject.loses_answers; });
  return all;
}

std::vector<Subject> skewed(std::vector<Subject> all) {
  std::vector<Subject> made;
  for (const Subject& subject : all) {
    made.push_back(subject);
    for (const int hours : {1, -1}) {
      Subject other = subject;
      other.name += hours > 0 ? "_caller_ahead" : "_caller_behind";
      other.caller_ahead = std::chrono::hours(hours);
      made.push_back(std::move(other));
    }
  }
  return made;
}

void PrintTo(const Subject& subject, std::ostream* out) { *out << subject.name; }

std::vector<Subject> backend_subjects(std::span<const Backend> backends) {
  std::vector<Subject> made;
  for (const Backend& backend : backends) {
    std::vector<std::string> variants = backend.variants;
    if (variants.empty()) variants.emplace_back();
    for (const std::string& variant : variants) {
      Subject subject;
      subject.name = identifier(backend.name, variant);
      subject.make = [fixture = backend.fixture, variant, backends](Clock& clock) {
        return fixture(variant, OpenOptions{&clock, backends});
      };
      made.push_back(std::move(subject));
    }
  }
  return made;
}

}  // namespace idem::conformance
