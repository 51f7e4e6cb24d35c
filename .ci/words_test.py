"""Tests of `.ci/words`."""

import tomllib
import unittest
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

HERE = Path(__file__).resolve().parent
LOADER = SourceFileLoader("words", str(HERE / "words"))
words = module_from_spec(spec_from_loader("words", LOADER))
LOADER.exec_module(words)
RULES = words.Rules(tomllib.loads((HERE / "words.toml").read_text()))


def phrases(name, text):
    return [(hit[1], hit[2]) for hit in RULES.hits(name, text)]


class Words(unittest.TestCase):
    def test_comments_are_checked_and_code_is_not(self):
        text = 'let leafs = "leafs";\n// All leafs.\n/// The `leafs` of a [hub](leafs.md).\n//! Whoever asks.\n'
        self.assertEqual(phrases("a.rs", text), [(2, "leafs"), (4, "Whoever")])

    def test_code_blocks_are_not_prose(self):
        self.assertEqual(phrases("a.md", "```\nleafs\n```\nleafs\n"), [(4, "leafs")])
        self.assertEqual(phrases("a.rs", "/// ```\n/// leafs\n/// ```\n/// leafs\n"), [(4, "leafs")])

    def test_a_code_block_ends_with_its_comment(self):
        self.assertEqual(phrases("a.rs", "/// ```\nfn a() {}\n/// leafs\n"), [(3, "leafs")])

    def test_topics_are_of_mqtt(self):
        self.assertEqual(phrases("docs/mqtt.md", "A topic."), [])
        self.assertEqual(phrases("docs/core.md", "A topic."), [(1, "topic")])

    def test_free_relatives_begin_a_sentence(self):
        self.assertEqual(phrases("a.md", "What is stored is synced."), [(1, "What is")])
        self.assertEqual(phrases("a.md", "It says what is stored."), [])
        self.assertEqual(phrases("a.md", "What is a shard?"), [])

    def test_people_may_be_who(self):
        self.assertEqual(phrases("a.md", "Users who publish"), [])
        self.assertEqual(phrases("a.md", "a client who publishes"), [(1, "who")])

    def test_pages_that_name_the_phrases_are_left_out(self):
        self.assertEqual(phrases("docs/language.md", "whoever"), [])


if __name__ == "__main__":
    unittest.main()
