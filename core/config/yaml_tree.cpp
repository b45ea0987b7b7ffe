#include "yaml_tree.hpp"

#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

namespace idem::config {
namespace {

constexpr std::size_t kDepthMax = 8;

Place place_of(const YAML::Mark& mark) { return {mark.line + 1, mark.column + 1}; }

// Thrown through the parser, to stop it at once; never leaves this file.
struct Refused {
  Place place;
  std::string what;
};

class TreeBuilder final : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ > 1) throw Refused{place_of(mark), "a second document"};
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    Node node;
    node.place = place_of(mark);
    add(std::move(node));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused{place_of(mark), "aliases are not allowed here"};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    Node node;
    node.kind = Node::Kind::scalar;
    node.place = place_of(mark);
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::sequence);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, Node::Kind::map);
  }
  void OnMapEnd() override { close(); }

  Node take() { return std::move(root_); }

 private:
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) {
      throw Refused{place_of(mark), "anchors are not allowed here"};
    }
  }
  // "?" is no tag, "!" a quoted scalar.
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") {
      throw Refused{place_of(mark), "tags are not allowed here"};
    }
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            Node::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() == kDepthMax) throw Refused{place_of(mark), "nested too deeply"};
    Node node;
    node.kind = kind;
    node.place = place_of(mark);
    open_.push_back(std::move(node));
  }
  void close() {
    Node node = std::move(open_.back());
    open_.pop_back();
    add(std::move(node));
  }
  // Puts a whole node where it belongs: a map's next key or value, a sequence's next item.
  void add(Node node) {
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Node& parent = open_.back();
    const bool is_key =
        parent.kind == Node::Kind::map && parent.keys.size() == parent.values.size();
    if (!is_key) {
      parent.values.push_back(std::move(node));
      return;
    }
    if (node.kind != Node::Kind::scalar) throw Refused{node.place, "a key must be a word"};
    for (const Node& earlier : parent.keys) {
      if (earlier.text != node.text) continue;
      throw Refused{node.place, "key '" + node.text + "' stands twice (first in line " +
                                    std::to_string(earlier.place.line) + ")"};
    }
    parent.keys.push_back(std::move(node));
  }

  Node root_;
  std::vector<Node> open_;
  int documents_ = 0;
};

// `line` from 0.
bool indented_by_tab(std::string_view text, int line) {
  for (; line > 0 && !text.empty(); --line)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  const std::size_t word = text.find_first_not_of(" \t");
  return text.substr(0, word).find('\t') != std::string_view::npos;
}

}  // namespace

std::string fault_at(const std::string& name, Place place, std::string_view what) {
  return name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
         ": error: " + std::string(what);
}

result<Node> parse_yaml(std::string_view text, const std::string& name) {
  const auto refused = [&](Place place, std::string_view what) {
    return idem::fail(errc::invalid_argument, fault_at(name, place, what));
  };
  if (text.size() > kYamlBytesMax) return refused({}, "larger than 1 MiB");
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto line =
        std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(nul), '\n');
    return refused({static_cast<int>(line) + 1, 1}, "a NUL byte");
  }
  std::istringstream stream{std::string(text)};
  TreeBuilder builder;
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
    }
  } catch (const Refused& fault) {
    return refused(fault.place, fault.what);
  } catch (const YAML::Exception& fault) {
    std::string what = fault.msg;
    if (indented_by_tab(text, fault.mark.line)) {
      what = "a tab: YAML is indented by blanks";
    } else if (what == YAML::ErrorMsg::MAP_VALUE) {
      what += " (what ends with a colon stands in quotes: 'memory:')";
    }
    return refused(place_of(fault.mark), what);
  }
  return builder.take();
}

}  // namespace idem::config
