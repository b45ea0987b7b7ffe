#include "reply_error.hpp"

#include <array>

namespace idem::redis {
namespace {

struct Rule {
  std::string_view word;
  ReplyErrorKind kind;
  errc code;
  std::string_view remedy;
};

constexpr std::array kRules{
    Rule{"NOSCRIPT", ReplyErrorKind::no_script, errc::unavailable, ""},
    Rule{"MOVED", ReplyErrorKind::moved, errc::unavailable,
         "this is a cluster: use redis+cluster://"},
    Rule{"ASK", ReplyErrorKind::ask, errc::unavailable, "this is a cluster: use redis+cluster://"},
    Rule{"TRYAGAIN", ReplyErrorKind::not_now, errc::unavailable, ""},
    Rule{"CLUSTERDOWN", ReplyErrorKind::not_now, errc::unavailable, ""},
    Rule{"LOADING", ReplyErrorKind::not_now, errc::unavailable, ""},
    Rule{"BUSY", ReplyErrorKind::not_now, errc::unavailable, "a script runs for too long there"},
    Rule{"MASTERDOWN", ReplyErrorKind::demoted, errc::unavailable, ""},
    Rule{"READONLY", ReplyErrorKind::demoted, errc::unavailable, ""},
    Rule{"NOREPLICAS", ReplyErrorKind::answer, errc::unavailable,
         "min-replicas-to-write is not met"},
    Rule{"MISCONF", ReplyErrorKind::answer, errc::unavailable,
         "the server cannot write its files: look at its log and disk"},
    Rule{"OOM", ReplyErrorKind::answer, errc::capacity,
         "the server is full (maxmemory) and evicts nothing live"},
    Rule{"NOPERM", ReplyErrorKind::answer, errc::denied, ""},
    Rule{"NOAUTH", ReplyErrorKind::answer, errc::denied, "give user and password in the URL"},
    Rule{"WRONGPASS", ReplyErrorKind::answer, errc::denied, ""},
    Rule{"WRONGTYPE", ReplyErrorKind::answer, errc::corrupt,
         "a key under the prefix is not one of ours: choose another prefix"},
};

}  // namespace

ReplyError classify(std::string_view text) {
  ReplyError out;
  const std::string_view word = text.substr(0, text.find(' '));
  out.error = idem::fail(errc::internal, "redis answered: " + std::string(text));
  for (const Rule& rule : kRules) {
    if (rule.word != word) continue;
    out.kind = rule.kind;
    out.error.code = rule.code;
    if (!rule.remedy.empty()) out.error.message += " (" + std::string(rule.remedy) + ")";
  }
  if (out.kind == ReplyErrorKind::moved || out.kind == ReplyErrorKind::ask) {
    out.endpoint = text.substr(text.rfind(' ') + 1);  // "MOVED 3999 10.0.0.1:6381"
  }
  // Servers before 7 and some proxies refuse HELLO and full connection tables in plain words.
  if (word == "ERR" && text.find("max number of clients") != std::string_view::npos) {
    out.error.code = errc::unavailable;
    out.kind = ReplyErrorKind::not_now;
  }
  // Inside a script 7.0 does not say NOPERM.
  if (word == "ERR" && text.find("The user executing the script can't") != std::string_view::npos) {
    out.error.code = errc::denied;
  }
  if (word == "ERR" && text.find("without any password configured") != std::string_view::npos) {
    out.error.code = errc::denied;
  }
  return out;
}

}  // namespace idem::redis
