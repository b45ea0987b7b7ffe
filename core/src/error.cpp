#include "idem/error.hpp"

#include <boost/system/error_category.hpp>

namespace idem {

std::string_view to_string(errc code) noexcept {
  switch (code) {
    case errc::invalid_argument:
      return "invalid_argument";
    case errc::too_large:
      return "too_large";
    case errc::unknown:
      return "unknown";
    case errc::unavailable:
      return "unavailable";
    case errc::busy:
      return "busy";
    case errc::capacity:
      return "capacity";
    case errc::read_only:
      return "read_only";
    case errc::cannot_open:
      return "cannot_open";
    case errc::denied:
      return "denied";
    case errc::corrupt:
      return "corrupt";
    case errc::wrong_process:
      return "wrong_process";
    case errc::shutting_down:
      return "shutting_down";
    case errc::cancelled:
      return "cancelled";
    case errc::stale_fence:
      return "stale_fence";
    case errc::unsupported:
      return "unsupported";
    case errc::internal:
      return "internal";
  }
  return "no_error";
}

namespace {

class Category final : public boost::system::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "idem"; }
  [[nodiscard]] std::string message(int code) const override {
    return std::string(to_string(static_cast<errc>(code)));
  }
};

}  // namespace

const boost::system::error_category& category() noexcept {
  static const Category kCategory;
  return kCategory;
}

boost::system::error_code make_error_code(errc code) noexcept {
  return {static_cast<int>(code), category()};
}

Exception::Exception(const Error& error)
    : std::runtime_error(std::string(to_string(error.code)) + ": " + error.message),
      code_(error.code) {}

void throw_exception_from_error(const Error& error, const boost::source_location&) {
  throw Exception(error);
}

}  // namespace idem
