package executor_test

import (
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store/memory"
)

// A rule for one tool that looks at all actions of a requester counts those with other tools, too.
func TestAttack_WhatARuleCountsIsNotOnlyWhatItIsFor(t *testing.T) {
	var paid atomic.Int64
	e := executorOf(t, memory.NewRuns(nil), payer(t, &paid, "one"), func(c *executor.Config) {
		c.Desk.Rules = loadRules(t, `
default: allow
rules:
- id: busy
  when: req.tool == "delete" && history.count("requester", "24h") >= 3
  then: deny
`)
		c.Desk.Directory = desk.Members{}
	})
	for _, key := range []string{"a", "b", "c", "d"} {
		if _, done := began(t, e, key, "inproc:pay", `{"cents":1}`).(fermata.Completed); !done {
			t.Fatal("it was not paid")
		}
	}
	d, err := e.Suppose(t.Context(), executor.Supposed{Account: "acme", Tool: "delete"})
	if err != nil || d.Verdict != "deny" {
		t.Errorf("after 4 actions the rule counts fewer than 3: %s, %v", d.Verdict, err)
	}
}
