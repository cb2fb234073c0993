"""Checks the recipes of README.md without the libraries that they use: each is valid Python, and uses only names that fermata.py has."""

import ast
import pathlib
import re
import unittest

import fermata

TEXT = pathlib.Path(__file__).with_name("README.md").read_text(encoding="utf-8").split("## Recipes")[1].split("## Tests")[0]
OWNERS = {"fermata": fermata, "client": fermata.Client, "refusal": fermata.NotApproved("key", "code")}


class Recipes(unittest.TestCase):
    def test_names(self):
        used = set()
        for block in re.findall(r"```python\n(.*?)```", TEXT, re.S):
            for node in ast.walk(ast.parse(block)):
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in OWNERS:
                    self.assertTrue(hasattr(OWNERS[node.value.id], node.attr), f"{node.value.id}.{node.attr}")
                    used.add(f"{node.value.id}.{node.attr}")
        self.assertLessEqual({"client.approve_tool", "fermata.NotApproved", "refusal.reason"}, used)
        for name in re.findall(r"`(\w+)`", TEXT):
            self.assertTrue(name == "interrupt" or hasattr(fermata.Client, name), name)

    def test_libraries(self):
        self.assertIn("**not run by our tests**", TEXT)
        for library in ("LangGraph", "Pydantic AI", "CrewAI"):
            self.assertIn(f"**{library}**", TEXT)


if __name__ == "__main__":
    unittest.main()
