package main

import "testing"

func TestPolicy_TheLastRuleDecides(t *testing.T) {
	for _, s := range policyScenarios() {
		one, err := s.ours()
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := one.do(t.Context()); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
	}
}

func TestJudge_PolicyGoals(t *testing.T) {
	rs := results{}
	for name, cpu := range map[string]float64{
		"policy/by-tool/10": 10, "policy/by-tool/1000": 20,
		"policy/any-tool/10": 10, "policy/any-tool/100": 130, "policy/any-tool/1000": 1691,
	} {
		rs[name] = result{Name: name, Ours: measured{Best: sample{CPU: cpu}}}
	}
	wantVerdicts(t, rs.policies(), map[string]string{
		"policy/by-tool/10 → policy/by-tool/1000: CPU at most ×2":                    "met",
		"policy/any-tool/10 → policy/any-tool/100: CPU no worse than linear (×10)":   "met",
		"policy/any-tool/100 → policy/any-tool/1000: CPU no worse than linear (×10)": "**NOT met**",
	})
	rs["policy/by-tool/1000"] = result{Ours: measured{Best: sample{CPU: 21}}}
	delete(rs, "policy/any-tool/10")
	wantVerdicts(t, rs.policies(), map[string]string{
		"policy/by-tool/10 → policy/by-tool/1000: CPU at most ×2":                  "**NOT met**",
		"policy/any-tool/10 → policy/any-tool/100: CPU no worse than linear (×10)": "not judged",
	})
}
