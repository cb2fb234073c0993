package calendarsim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
)

// plan schedules runs with a number of requests until the end, and changes of group members.
func (s *simulation) plan(requests int, end time.Time) {
	while := time.Until(end)
	for n, asks := 0, 0; asks < requests; n++ {
		r := &run{key: fmt.Sprintf("run-%d", n)}
		names := []string{"emea-0", "apac-2", "amer-4", "emea-3", "robot"}
		r.requester = names[s.rng.IntN(len(names))]
		e := s.newTaskList(r)
		for _, t := range r.tasks {
			s.tasks[t.Order.ID] = r
			if d := requirementOf(t.Order); t.question() || !d.deny && !d.perhapsBySpends {
				asks++
			}
		}
		s.runs[r.key] = r
		s.at(time.Now().Add(time.Duration(s.rng.Int64N(int64(while)))), func() { s.start(r, e) })
	}
	s.scheduleScenarios(while)
	for day := time.Now(); day.Before(end); day = day.Add(24 * time.Hour) {
		group := []string{"group:payers", "group:payers", "group:ops", "group:dba"}[s.rng.IntN(4)]
		gone := day.Add(time.Duration(s.rng.IntN(24)) * time.Hour)
		s.at(gone, func() { s.scheduleTransfers(group) })
	}
}

// scheduleTransfers lets people leave a group, preferably after an approval, and return a day or
// two later.
func (s *simulation) scheduleTransfers(group string) {
	names := s.staff.members(group)
	if len(names) < 4 {
		return
	}
	who := names[s.rng.IntN(len(names))]
	for _, a := range slices.Backward(s.order) {
		if a.outcome == "" && !a.run.over && len(a.votes) > 0 && slices.Contains(names, a.votes[0].by) {
			who = a.votes[0].by
			break
		}
	}
	s.staff.leave(group, who)
	s.at(time.Now().Add(time.Duration(12+s.rng.IntN(40))*time.Hour), func() { s.staff.join(group, who) })
}

// newTaskList creates the tasks of a run.
func (s *simulation) newTaskList(r *run) taskList {
	var e taskList
	add := func(lane *[]task) {
		o := order{ID: fmt.Sprintf("%s-%d", r.key, len(r.tasks)), Action: "pay", To: "shop", Note: "please"}
		switch roll := s.rng.IntN(100); {
		case roll < 12:
			o.Cents = 100 + int64(s.rng.IntN(1900))
		case roll < 45:
			o.Cents = 2001 + int64(s.rng.IntN(90000))
		case roll < 62:
			o.Cents = 100001 + int64(s.rng.IntN(900000))
		case roll < 65:
			o.Cents, o.To = 5000, "nowhere"
		case roll < 80:
			o.Action = "drop"
		case roll < 90:
			o.Action = "mail"
		default:
			o = order{ID: o.ID}
		}
		*lane = append(*lane, task{o})
		r.tasks = append(r.tasks, task{o})
	}
	for range 1 + s.rng.IntN(2) {
		add(&e.Left)
	}
	for range s.rng.IntN(3) {
		add(&e.Right)
	}
	return e
}

// start starts a run, sometimes twice.
func (s *simulation) start(r *run, want taskList) {
	input, err := json.Marshal(want)
	if err != nil {
		s.fail("%v", err)
		return
	}
	request := executor.RunRequest{Account: account, StateKey: r.key, Graph: "inproc:errand", Input: input, Actor: r.requester, ReserveStateKey: true}
	for times := 1 + s.rng.IntN(8)/7; times > 0; times-- {
		e := s.anyInstance() // agents wait
		if r.started.IsZero() {
			r.started = time.Now()
		}
		outcome, err := e.Run(context.Background(), request)
		e.calls.Done()
		if isClosedError(err) || errors.Is(err, context.DeadlineExceeded) {
			times++ // stopped in the middle: retry
			time.Sleep(time.Minute)
			continue
		}
		if err != nil {
			s.fail("run %s: %v", r.key, err)
			return
		}
		s.onOutcome(r, outcome)
	}
	if r.scene == nil {
		s.scheduleMisuse(r)
	}
}

// scheduleMisuse schedules forbidden attempts of requesters, and cancellations.
func (s *simulation) scheduleMisuse(r *run) {
	if p := s.people[r.requester]; p != nil && s.rng.IntN(4) == 0 && len(r.asks) > 0 {
		a := r.asks[s.rng.IntN(len(r.asks))]
		s.at(time.Now().Add(patience(s.rng, 10*time.Minute, 1)), func() { s.viewThenDecide(p, a, submission{verb: requirement.VerbApprove}) })
	}
	if s.rng.IntN(40) == 0 {
		s.at(time.Now().Add(patience(s.rng, 4*time.Hour, 1)), func() { s.cancel(r) })
	}
}
