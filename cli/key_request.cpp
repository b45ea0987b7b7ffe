#include "key_request.hpp"

#include <charconv>
#include <limits>

namespace idem::cli {

void add_request(CLI::App* app, RequestOptions& into) {
  CLI::Option* text =
      add_text(app, "--request", into.text, "the request itself", "\"\"")->check(not_empty());
  CLI::Option* file = app->add_option("--request-file", into.file, "file with it, - for stdin")
                          ->type_name("FILE")
                          ->check(not_empty());
  CLI::Option* hash = app->add_option("--hash", into.hash, "its SHA-256 in hexadecimal")
                          ->type_name("HEX64")
                          ->check(not_empty());
  CLI::Option* canonical = app->add_flag("--canonical", into.canonical,
                                         "the request is JSON: member order does not matter");
  text->excludes(file)->excludes(hash);
  hash->excludes(file)->excludes(canonical);
}

Fingerprint fingerprint_of(const RequestOptions& options) {
  if (!options.hash.empty()) return must(Fingerprint::from_hex(options.hash), "--hash");
  const std::string request = options.file.empty() ? options.text : read_file(options.file);
  if (options.canonical) return must(Fingerprint::of_json(request), "--canonical");
  return Fingerprint::of_bytes(request);
}

void add_policy(CLI::App* app, PolicyOptions& into) {
  add_duration(app, "--lease", into.lease, "how long the attempt may be silent", "30s");
  add_count(app, "--max-attempts", into.max_attempts, "attempts a key may take", "no cap");
  app->add_option("--on-lapsed", into.on_lapsed, "an attempt fell silent: takeover or hold")
      ->type_name("WORD")
      ->default_str("takeover")
      ->check(CLI::IsMember({"takeover", "hold"}));
  app->add_flag("--no-retry", into.no_retry, "a failed key stays failed");
}

PolicyPatch patch_of(const PolicyOptions& options) {
  PolicyPatch patch;
  patch.lease = options.lease;
  if (options.max_attempts) {
    if (*options.max_attempts > std::numeric_limits<std::uint32_t>::max())
      throw Failure::usage("--max-attempts is too large");
    patch.max_attempts = static_cast<std::uint32_t>(*options.max_attempts);
  }
  if (!options.on_lapsed.empty())
    patch.on_lapsed = options.on_lapsed == "hold" ? OnLapsed::hold : OnLapsed::takeover;
  if (options.no_retry) patch.retry_failed = false;
  return patch;
}

void add_bytes(CLI::App* app, const std::string& name, BytesOptions& into,
               const std::string& help) {
  // What is empty was an unset variable or a command that failed; meant, it is a file: /dev/null.
  CLI::Option* text = add_text(app, "--" + name, into.text, help, "\"\"")->check(not_empty());
  app->add_option("--" + name + "-file", into.file, "file with it, - for stdin")
      ->type_name("FILE")
      ->check(not_empty())
      ->excludes(text);
}

void add_token(CLI::App* app, TokenOptions& into) {
  app->add_option("--owner", into.owner, "owner token that claim printed")
      ->type_name("HEX32")
      ->check(not_empty())
      ->envname("IDEM_OWNER")
      ->default_str("$IDEM_OWNER");
  app->add_option("--fence", into.fence, "fence that claim printed")
      ->type_name("N")
      ->check(not_empty())
      ->envname("IDEM_FENCE")
      ->default_str("$IDEM_FENCE");
}

Token token_of(const TokenOptions& options) {
  if (options.owner.empty() || options.fence.empty())
    throw Failure::usage("whose claim is it? give --owner and --fence")
        .advise("eval \"$(idem key claim KEY --export)\"   (sets IDEM_OWNER and IDEM_FENCE)");
  Token token{must(Owner::from_hex(options.owner), "--owner"), 0};
  const char* end = options.fence.data() + options.fence.size();
  const auto parsed = std::from_chars(options.fence.data(), end, token.fence);
  if (parsed.ec != std::errc{} || parsed.ptr != end)
    throw Failure::usage("--fence is not a number: '" + options.fence + "'");
  return token;
}

}  // namespace idem::cli
