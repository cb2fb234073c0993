package desk_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Two groups must agree before a table is dropped. The caller stores each change before the next
// command.
func Example() {
	now := time.Date(2026, 11, 16, 10, 0, 0, 0, time.UTC)
	groups := desk.StaticDirectory{"group:dba": {"ann", "bob"}, "group:finops": {"ann"}}

	change, err := desk.New(desk.RequestSpec{
		ID:      "int_1",
		Subject: desk.Subject{Kind: "approval", Action: "drop-table", ActionDigest: "d1", ShownDigest: "s1", Requester: "rita"},
		Requirement: requirement.Requirement{
			Groups:  []requirement.Group{{From: []string{"group:dba"}}, {From: []string{"group:finops"}}},
			Exclude: []requirement.Duty{requirement.DutyRequester},
		},
	}, desk.Env{Now: now})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(change.Request.Summary(now))
	fmt.Println("next:", change.NextDue.Sub(now), "told:", change.Notices[0].Targets)

	for _, name := range []string{"rita", "ann", "bob"} {
		now = now.Add(time.Hour)
		approve := desk.Approve{From: desk.From{
			Actor: desk.PersonActor(name, requirement.AuthSSO),
			Seen:  desk.Seen{Rev: change.Request.Rev, Digest: change.Request.Digest()},
		}}
		next, err := desk.Apply(change.Request, approve, desk.Env{Now: now, Directory: groups})
		if errors.Is(err, desk.ErrNotMember) || errors.Is(err, desk.ErrExcluded) {
			fmt.Println(err)
			continue
		}
		change = next
		fmt.Println(change.Request.Summary(now))
	}
	fmt.Println(change.Decision.Outcome, change.Decision.Digest)
	// Output:
	// 0 of 2, needs 1 × dba, needs 1 × finops, 24 h left
	// next: 30m0s told: [inbox]
	// approve by rita: excluded by separation of duties: rita is its requester
	// 1 of 2, needs 1 × finops, 22 h left
	// approved by ann, bob
	// approve d1
}

// Who would be notified of a request that is created on a Monday night?
func ExampleSimulate() {
	planned, err := desk.Simulate(desk.DefaultRoute(desk.DefaultPage), time.Date(2026, 11, 16, 23, 0, 0, 0, time.UTC), 10)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(desk.FormatPlan(planned, time.UTC))
	// Output:
	// Mon 2026-11-16 23:00 UTC  +0s       notify  inbox
	// Mon 2026-11-16 23:30 UTC  +30m      remind  inbox
	// Tue 2026-11-17 01:00 UTC  +2h       page    oncall:default
	// Tue 2026-11-17 23:00 UTC  +24h      expire  stale
}
