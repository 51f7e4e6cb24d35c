#!/usr/bin/env python3
"""Tests of `.ci/layers` with small packages: it finds uses that break the layers, and nothing else."""

import importlib.machinery
import importlib.util
import tempfile
import unittest
from pathlib import Path

loader = importlib.machinery.SourceFileLoader("layers", str(Path(__file__).parent / "layers"))
layers = importlib.util.module_from_spec(importlib.util.spec_from_loader("layers", loader))
loader.exec_module(layers)


class Layers(unittest.TestCase):
    def problems(self, files, rows, scope="demo"):
        with tempfile.TemporaryDirectory() as folder:
            layers.ROOT = Path(folder)
            for name, text in files.items():
                path = layers.source("demo") / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            return layers.check(scope, rows, layers.modules_in(scope), layers.uses_of("demo"))

    def test_layers_in_order_pass(self):
        files = {"lib.rs": "mod a;\nmod b;", "a.rs": "pub fn f() {}", "b.rs": "use crate::a::f;"}
        self.assertEqual(self.problems(files, ["a", "b"]), [])

    def test_a_cycle_is_found_in_every_order_of_the_rows(self):
        files = {"a.rs": "use crate::b::g;", "b.rs": "use crate::a::f;"}
        for rows in (["a", "b"], ["b", "a"], ["a b"]):
            self.assertTrue(self.problems(files, rows), rows)

    def test_an_import_against_the_table_is_named_with_its_line(self):
        files = {"a.rs": "\nuse crate::{b::{self, c}};", "b.rs": ""}
        found = self.problems(files, ["a", "b"])
        self.assertEqual(found[0], "crates/demo/src/a.rs:2: demo: a uses b, which is not above it")

    def test_every_form_of_a_path_counts(self):
        forms = [
            "fn f() { crate::b::g() }",
            "use super::b::g;",
            "use {std::fmt, crate::b};",
            "use crate::b::*;",
            "pub use crate::b::g as h;",
            "use crate::G;",
        ]
        for form in forms:
            files = {"lib.rs": "pub use b::G;", "a/mod.rs": "", "a/c.rs": "", "b.rs": ""}
            files["a/mod.rs" if "super" in form else "a/c.rs"] = form
            self.assertEqual(len(self.problems(files, ["a", "b"])), 1, form)

    def test_comments_strings_and_tests_do_not_count(self):
        text = '// crate::b::g\nconst S: &str = "crate::b";\n#[cfg(test)]\nmod tests {\n    use crate::b::g;\n}\n'
        files = {"a.rs": text, "a/tests.rs": "use crate::b::g;", "b.rs": ""}
        self.assertEqual(self.problems(files, ["a", "b"]), [])

    def test_a_module_without_a_row_and_a_row_without_a_module_are_found(self):
        self.assertEqual(len(self.problems({"a.rs": "", "b.rs": ""}, ["a", "c"])), 2)

    def test_a_known_arrow_passes_and_is_used_up(self):
        with tempfile.TemporaryDirectory() as folder:
            layers.ROOT = Path(folder)
            layers.source("demo").mkdir(parents=True)
            (layers.source("demo") / "a.rs").write_text("use crate::b::g;")
            (layers.source("demo") / "b.rs").write_text("")
            known = {"demo: a uses b", "demo: b uses a"}
            uses = layers.uses_of("demo")
            self.assertEqual(layers.check("demo", ["a", "b"], {"a", "b"}, uses, known), [])
            self.assertEqual(known, {"demo: b uses a"})

    def test_the_inside_of_a_module_is_a_scope_too(self):
        files = {"m/mod.rs": "", "m/a.rs": "use super::b::g;", "m/b.rs": "use crate::m::a::f;"}
        self.assertEqual(len(self.problems(files, ["a", "b"], "demo::m")), 1)


if __name__ == "__main__":
    unittest.main()
