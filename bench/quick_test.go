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
	measured := map[string]bool{}
	for _, m := range r.Metrics {
		measured[m.Scenario] = true
		if m.hasGoal() && !m.met() { // only sizes have goals: they are exact
			t.Errorf("%s, %s: %s, want %s", m.Scenario, m.Name, m, m.goal())
		}
		if strings.HasSuffix(m.Scenario, "/noisy") && (m.Name == "failed" || m.Name == "rejected for the quiet tenant") && m.Value != 0 {
			t.Errorf("%s: %s %s", m.Scenario, m, m.Name)
		}
	}
	want := []string{recoveryName}
	for _, s := range scenarios() {
		want = append(want, s.name)
	}
	for _, s := range slices.Concat(holdScenarios(), webScenarios()) {
		want = append(want, s.name()+" start", s.name()+" decide")
	}
	for _, on := range []string{onSQLite, onPostgres} {
		for _, part := range []string{"paced", "streams", "overload", "noisy"} {
			want = append(want, "http/"+on+"/"+part)
		}
		want = append(want, "dialog/"+on, "inbox/"+on+" list", "inbox/"+on+" first load")
	}
	for _, name := range want {
		if !measured[name] {
			t.Errorf("%s was not measured", name)
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
	for _, args := range [][]string{{"-rounds", "0"}, {"-scenario", "("}, {"quick"}, {"-parked", "999"}, {"-parked", "10000000"}, {"-conversations", "500"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%q passed", args)
		}
	}
}
