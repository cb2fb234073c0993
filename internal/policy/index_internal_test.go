package policy

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestIndex_ToolsOfACondition(t *testing.T) {
	for when, want := range map[string]string{
		`req.tool == "a"`:                                      "a",
		`"a" == req.tool`:                                      "a",
		`req.tool == "a" && args.x > 1`:                        "a",
		`args.x > 1 && (req.risk > 2 && req.tool == "a")`:      "a",
		`req.tool in ["a", "b"]`:                               "a b",
		`req.tool == "a" || req.tool == "b"`:                   "a b",
		`(req.tool == "a" || req.tool == "b") && args.x == 1`:  "a b",
		`req.tool in ["a", "b"] && req.tool in ["b", "c"]`:     "b",
		`req.tool == "a" && req.tool == "b"`:                   "none",
		`req.tool == "a" || args.x > 1`:                        "any",
		`req.tool != "a"`:                                      "any",
		`!(req.tool == "a")`:                                   "any",
		`req.tool == args.tool`:                                "any",
		`req.graph == "a"`:                                     "any",
		`args.tool == "a"`:                                     "any",
		`args.req.tool == "a"`:                                 "any",
		`req.tool in ["a", req.graph]`:                         "any",
		`[1].exists(x, req.tool == "a")`:                       "any",
		`req.tool == "a" ? true : false`:                       "any",
		`has(req.tool) && args.x == 1`:                         "any",
		`req.tool.startsWith("a")`:                             "any",
		`(req.tool == "a") == true`:                            "any",
		`req.tool == "a" && (req.tool == "b" || args.x == 1)`:  "a",
		`(req.tool == "a" && args.x == 1) || req.tool == "b"`:  "a b",
		`req.tool == "a" && args.x > 1 && args.y.matches("^")`: "a",
	} {
		set, err := Load("p", []byte("default: allow\nrules:\n- {id: r, then: deny, when: '"+when+"'}\n"), Options{})
		if err != nil {
			t.Fatal(when, err)
		}
		tools := set.rules[0].info.tools
		got := strings.Join(tools, " ")
		switch {
		case tools == nil:
			got = "any"
		case len(tools) == 0:
			got = "none"
		}
		if got != want {
			t.Errorf("%s: for %s, want %s", when, got, want)
		}
	}
}

// The index omits no rule that could match: decisions are the same with and without it.
func TestIndex_DoesNotChangeDecisions(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	for range 60 {
		var doc strings.Builder
		doc.WriteString("default: allow\ndefaults: {ask: {groups: [{from: [anyone]}], deadline: 1h}}\nrules:\n")
		for i := range 12 {
			var parts []string
			for range 1 + random.IntN(3) {
				parts = append(parts, pick(`req.tool == "a"`, `req.tool == "b"`, `req.tool in ["a", "c"]`, `args.x == 1`, `args.y > 2`, `!(req.tool == "a")`, `(req.tool == "b" || args.x == 2)`))
			}
			fmt.Fprintf(&doc, "- {id: r%d, then: %s, when: '%s'}\n", i, pick("allow", "ask", "deny"), strings.Join(parts, pick(" && ", " || ")))
		}
		indexed, err := Load("p", []byte(doc.String()), Options{})
		if err != nil {
			t.Fatal(err)
		}
		plain := *indexed
		plain.byTool, plain.general = nil, nil
		for i := range plain.rules {
			plain.general = append(plain.general, i)
		}
		for _, tool := range []string{"a", "b", "c", "d"} {
			in := Input{Tool: tool, Args: []byte(pick(`{}`, `{"x":1}`, `{"x":2,"y":3}`, `{"x":"1","y":1}`))}
			got, err := indexed.Decide(in)
			want, err2 := plain.Decide(in)
			if err != nil || err2 != nil {
				t.Fatal(err, err2)
			}
			if got.Verdict != want.Verdict || !slices.Equal(got.Rules, want.Rules) {
				t.Fatalf("%s %s: %s by %v with the index, %s by %v without\n%s", tool, in.Args, got.Verdict, got.Rules, want.Verdict, want.Rules, &doc)
			}
			if got.OtherToolRules+len(got.Trace) != len(want.Trace) {
				t.Fatalf("%d rules are not accounted for", len(want.Trace)-got.OtherToolRules-len(got.Trace))
			}
		}
	}
}
