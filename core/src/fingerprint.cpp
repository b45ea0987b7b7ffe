#include "idem/fingerprint.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "hex.hpp"

namespace idem {
namespace {

constexpr std::size_t kDepthMax = 256;

// Looked up once: OpenSSL 3 takes longer for that than for the digest of a short text.
const EVP_MD* sha256() {
  static const EVP_MD* const kSha256 = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return kSha256;
}

// No input makes OpenSSL's digest fail; without a digest there is no safe way to go on.
void must(int ok) {
  if (ok != 1) std::abort();
}

// Builds the canonical text bottom up: a finished value is one string, members are sorted when
// their object ends.
class Canonicalizer {
 public:
  bool null() { return value("null"); }
  bool boolean(bool b) { return value(b ? "true" : "false"); }
  bool number_integer(std::int64_t n) { return value(std::to_string(n)); }
  bool number_unsigned(std::uint64_t n) { return value(std::to_string(n)); }
  // The number as written: a double would make different large numbers equal.
  bool number_float(double /*rounded*/, const std::string& written) { return value(written); }
  bool string(std::string& text) { return value(quoted(text)); }
  bool binary(std::vector<std::uint8_t>& /*never in JSON text*/) { return false; }
  bool key(std::string& name) {
    open_.back().name = quoted(name);
    return true;
  }
  bool start_object(std::size_t /*unknown*/) { return start(true); }
  bool start_array(std::size_t /*unknown*/) { return start(false); }
  bool end_object() {
    std::vector<std::pair<std::string, std::string>> members = std::move(open_.back().members);
    std::sort(members.begin(), members.end());
    std::string text = "{";
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (i > 0 && members[i].first == members[i - 1].first) {
        error_ = "member name " + members[i].first + " stands twice in one object";
        return false;
      }
      text += (i > 0 ? "," : "") + members[i].first + ":" + members[i].second;
    }
    open_.pop_back();
    return value(text + "}");
  }
  bool end_array() {
    std::string text = "[" + std::move(open_.back().elements) + "]";
    open_.pop_back();
    return value(std::move(text));
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*what*/) {
    error_ = "not valid JSON at byte " + std::to_string(position);
    return false;
  }

  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] std::string take() { return std::move(done_); }

 private:
  struct Open {
    bool object = false;
    std::string name;
    std::vector<std::pair<std::string, std::string>> members;
    std::string elements;
  };

  static std::string quoted(const std::string& text) { return nlohmann::json(text).dump(); }

  bool start(bool object) {
    if (open_.size() >= kDepthMax) {
      error_ = "JSON nested deeper than " + std::to_string(kDepthMax);
      return false;
    }
    open_.push_back({object, {}, {}, {}});
    return true;
  }

  bool value(std::string text) {
    if (open_.empty()) {
      done_ = std::move(text);
    } else if (open_.back().object) {
      open_.back().members.emplace_back(std::move(open_.back().name), std::move(text));
    } else {
      std::string& elements = open_.back().elements;
      if (!elements.empty()) elements += ',';
      elements += text;
    }
    return true;
  }

  std::vector<Open> open_;
  std::string done_;
  std::string error_;
};

}  // namespace

Fingerprint Fingerprint::of_bytes(std::string_view request) {
  Fingerprint print;
  must(EVP_Digest(request.data(), request.size(), print.bytes.data(), nullptr, sha256(), nullptr));
  return print;
}

struct FingerprintStream::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
  void begin() { must(EVP_DigestInit_ex(context.get(), sha256(), nullptr)); }
};

FingerprintStream::FingerprintStream() : state_(std::make_unique<State>()) { state_->begin(); }
FingerprintStream::FingerprintStream(FingerprintStream&&) noexcept = default;
FingerprintStream& FingerprintStream::operator=(FingerprintStream&&) noexcept = default;
FingerprintStream::~FingerprintStream() = default;

void FingerprintStream::add(std::string_view piece) {
  must(EVP_DigestUpdate(state_->context.get(), piece.data(), piece.size()));
}

Fingerprint FingerprintStream::end() {
  Fingerprint print;
  must(EVP_DigestFinal_ex(state_->context.get(), print.bytes.data(), nullptr));
  state_->begin();
  return print;
}

result<Fingerprint> Fingerprint::of_json(std::string_view request) {
  auto text = canonical_json(request);
  if (!text) return text.error();
  return of_bytes(*text);
}

result<Fingerprint> Fingerprint::from_hex(std::string_view hex) {
  const auto bytes = detail::from_hex<32>(hex);
  if (!bytes) {
    return idem::fail(errc::invalid_argument, "a request hash is 64 hexadecimal digits");
  }
  return Fingerprint{*bytes};
}

std::string Fingerprint::hex() const { return detail::to_hex(bytes); }

result<std::string> canonical_json(std::string_view text) {
  Canonicalizer canonicalizer;
  try {
    if (nlohmann::json::sax_parse(text, &canonicalizer)) return canonicalizer.take();
  } catch (const nlohmann::json::exception&) {
    return idem::fail(errc::invalid_argument, "not valid JSON: a string is not UTF-8");
  }
  return idem::fail(errc::invalid_argument, canonicalizer.error());
}

}  // namespace idem
