package main

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestQuick_EveryScenarioIsCorrectOnBothSides runs each operation once. It does not measure time.
func TestQuick_EveryScenarioIsCorrectOnBothSides(t *testing.T) {
	c, err := parse([]string{"-quick", "-json"})
	if err != nil {
		t.Fatal(err)
	}
	needLangGraph(t)
	var out bytes.Buffer
	if err := run(t.Context(), c, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if got, want := len(r.Results), len(scenarios()); got != want {
		t.Errorf("%d results, want %d", got, want)
	}
	if got, want := len(r.Hold.Rows), 2*len(holdScenarios()); got != want {
		t.Errorf("%d rows of waiting runs, want %d", got, want)
	}
	if got, want := len(r.Desk.Rows), 2*len(deskScenarios()); got != want {
		t.Errorf("%d rows of desk decisions, want %d", got, want)
	}
	if rows, grounds := len(r.Web.Rows), 2; rows != 2*len(webScenarios()) || len(r.Web.Paced) != grounds || len(r.Web.Streams) != grounds || len(r.Web.Overloads) != grounds {
		t.Errorf("the server has %d rows, %d stream counts and %d overloads", rows, len(r.Web.Streams), len(r.Web.Overloads))
	}
	if len(r.Web.Noisy) != 2 {
		t.Errorf("%d noisy tenants, want 2", len(r.Web.Noisy))
	}
	for _, n := range r.Web.Noisy {
		if sum := n.Noise.sum(); n.Ops == 0 || n.Refused != 0 || n.Alone.P99 == 0 || n.WithNoise.P99 == 0 || sum.Good == 0 || sum.Failed != 0 {
			t.Errorf("%s: %+v", noisyName(n.Database), n)
		}
	}
	if len(r.Talk) != 2 {
		t.Errorf("%d databases with conversations, want 2", len(r.Talk))
	}
	if len(r.Recovery) != 1 || r.Recovery[0].TakenOver == 0 || r.Recovery[0].Restarted == 0 || r.Recovery[0].Reconnected == 0 {
		t.Errorf("recovery: %+v", r.Recovery)
	}
	if len(r.Slack) != 2 || r.Slack[0].Clicks == 0 || r.Slack[0].Calls == 0 || r.Slack[1].Resumed.P99 == 0 || len(r.SlackOutage) != 1 || r.SlackOutage[0].Updates != slackQuick.outage {
		t.Errorf("slack: %+v, %+v", r.Slack, r.SlackOutage)
	}
	for _, v := range r.Goals { // only stored bytes are judged: they are exact
		if !v.Judged || !v.Met {
			t.Errorf("%s: %s, measured %s", v.Goal, v.word(), v.Measured)
		}
	}
	var text strings.Builder
	if err := r.markdown(&text); err != nil {
		t.Fatal(err)
	}
	for _, s := range scenarios() {
		if !strings.Contains(text.String(), "`"+s.name+"`") {
			t.Errorf("the report does not mention %s", s.name)
		}
	}
	for _, n := range r.Web.Noisy {
		if !strings.Contains(text.String(), "`"+noisyName(n.Database)+"`") {
			t.Errorf("the report does not mention %s", noisyName(n.Database))
		}
	}
	for _, s := range slices.Concat(holdScenarios(), deskScenarios(), webScenarios()) {
		if strings.Count(text.String(), "`"+s.name()+"`") != 2 {
			t.Errorf("the report does not list how %s started and decided", s.name())
		}
	}
}

func TestEngine_WrongResultIsAnError(t *testing.T) {
	for name, check := range map[string]func() error{
		"a step too few": func() error { return expect(doc{Steps: 10})(doc{Steps: 9}) },
		"lost text":      func() error { return expect(doc{Text: "a"})(doc{Text: "b"}) },
		"a place lost":   func() error { return checkFan(2, []string{"n0=yes"}) },
		"a place twice":  func() error { return checkFan(2, []string{"n0=yes", "n0=yes"}) },
		"a wrong answer": func() error { return checkFan(2, []string{"n0=yes", "n1=no"}) },
	} {
		t.Run(name, func(t *testing.T) {
			if check() == nil {
				t.Error("it passed")
			}
		})
	}
}

func TestParse_InvalidArgumentsAreErrors(t *testing.T) {
	for _, args := range [][]string{{"-rounds", "0"}, {"-scenario", "("}, {"quick"}, {"-parked", "999"}, {"-parked", "10000000"}, {"-decided", "999"}, {"-decided", "10000000"}, {"-conversations", "500"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q passed", args)
		}
	}
}

func TestJudge_ReportsUnmetGoals(t *testing.T) {
	side := func(cpu float64, stored int) measured {
		return measured{Best: sample{CPU: cpu, Allocs: 1}, Stored: stored}
	}
	eino := side(100, 0)
	verdicts := judge([]result{
		{Name: "line/10", Ours: side(10, 0), Eino: &eino},
		{Name: "wait/1KiB", Ours: side(11, 0), Eino: &eino},
		{Name: "fan/each/100", Ours: side(10, 10)},
		{Name: "fan/each/1000", Ours: side(131, 130)},
		{Name: "nest/5", Ours: side(1, 80_692)},
	}, false)
	words := map[string]string{}
	for _, v := range verdicts {
		words[v.Goal] = v.word()
	}
	for goal, want := range map[string]string{
		"line/10: at most 1/10 of Eino's CPU":                                                        "met",
		"wait/1KiB: at most 1/10 of Eino's CPU":                                                      "**NOT met**",
		"nest/5: at most 1.2 × state + 2 KiB stored (80,691 bytes)":                                  "**NOT met**",
		"fan/each/100 → fan/each/1000: CPU no worse than linear (×10)":                               "**NOT met**",
		"fan/each/100 → fan/each/1000: stored bytes no worse than linear (×10)":                      "met",
		"fan/nodes/100 → fan/nodes/1000: stored bytes no worse than linear (×10)":                    "not judged",
		"nest/5 → nest/10: stored bytes no worse than linear (×2)":                                   "not judged",
		"wait-each-step/64KiB → wait-each-step/1MiB: CPU no worse than linear (×16)":                 "not judged",
		"fan-each-step/nodes/100 → fan-each-step/nodes/1000: allocations no worse than linear (×10)": "not judged",
	} {
		if words[goal] != want {
			t.Errorf("%s: %q, want %q", goal, words[goal], want)
		}
	}
}
