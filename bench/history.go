package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/fermata-go/fermata/internal/analytics"
	"github.com/fermata-go/fermata/internal/store"
)

// The scenarios history/… request a report over many decisions, and over a tenth of them, from an
// executor in its own process. The decisions are documents as the executor writes them, stored with
// its own methods; their runs do not exist, because the report does not need them.

// historyResult is the result on one kind of database.
type historyResult struct {
	Name      string `json:"name"`
	Database  string `json:"database"`
	Decisions int    `json:"decisions"`
	// Took is the duration of the report over all of them, and TookTenth over a tenth: the minimum
	// of the rounds. CPU is that of the process.
	Took      time.Duration `json:"tookNs"`
	TookTenth time.Duration `json:"tookTenthNs"`
	CPU       time.Duration `json:"cpuNs"`
	CPUTenth  time.Duration `json:"cpuTenthNs"`
	// Idle is the resident memory of the process before, Peak its maximum during the report, in
	// bytes.
	Idle   int64         `json:"idle"`
	Peak   int64         `json:"peak"`
	Filled time.Duration `json:"filledNs"`
	Bytes  int64         `json:"bytes"`
}

func historyName(database string) string { return "history/" + database }

// historyRounds is how often each report is requested.
const historyRounds = 3

// minDecided is the minimum number of decisions for a meaningful report.
const minDecided = 1000

func measureHistory(ctx context.Context, name string, decisions int, progress io.Writer) (r historyResult, err error) {
	r = historyResult{Name: historyName(name), Decisions: decisions}
	db, err := newDatabase(ctx, name)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	if r.Database, err = db.version(ctx); err != nil {
		return r, err
	}
	for _, part := range []struct {
		decisions int
		took, cpu *time.Duration
	}{{decisions / 10, &r.TookTenth, &r.CPUTenth}, {decisions, &r.Took, &r.CPU}} {
		fmt.Fprintf(progress, "%s: writing %d decisions\n", r.Name, part.decisions)
		place, err := db.create()
		if err != nil {
			return r, err
		}
		started := time.Now()
		if err := writeHistory(ctx, db, place, part.decisions); err != nil {
			return r, err
		}
		r.Filled = time.Since(started)
		if r.Bytes, err = db.size(ctx, place); err != nil {
			return r, err
		}
		if err := r.ask(ctx, childOrder{Database: name, Place: place, Text: parkedText}, part.decisions, part.took, part.cpu, progress); err != nil {
			return r, err
		}
	}
	return r, nil
}

// ask starts the process and requests reports.
func (r *historyResult) ask(ctx context.Context, first childOrder, decisions int, took, cpu *time.Duration, progress io.Writer) (err error) {
	c, err := newChild(ctx, first)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	idle, err := c.ask(childOrder{Collect: true})
	if err != nil {
		return err
	}
	r.Idle = idle.Resident
	for round := range historyRounds {
		fmt.Fprintf(progress, "%s: report %d of %d over %d decisions\n", r.Name, round+1, historyRounds, decisions)
		reply, err := c.ask(childOrder{Report: true})
		if err != nil {
			return err
		}
		if reply.Requests != decisions || reply.Votes != decisions {
			return fmt.Errorf("the report covers %d requests and %d votes, want %d of each", reply.Requests, reply.Votes, decisions)
		}
		if round == 0 || reply.Latencies[0] < *took {
			*took = reply.Latencies[0]
		}
		if round == 0 || reply.CPU < *cpu {
			*cpu = reply.CPU
		}
		r.Peak = max(r.Peak, reply.Peak)
	}
	return nil
}

// historyPage is how many decisions are written in one transaction.
const historyPage = 500

// writeHistory writes decisions of a year: fifty people, twenty tools, one rejection in twenty.
func writeHistory(ctx context.Context, db database, place string, decisions int) (err error) {
	st, err := db.open(ctx, place)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	random, begin := rand.New(rand.NewPCG(5, 6)), time.Now().Add(-365*24*time.Hour)
	body := []byte(randomText(kib / 2))
	for n := 0; n < decisions; {
		var page store.Writes
		for ; n < decisions && len(page.Documents) < 2*historyPage; n++ {
			at := begin.Add(time.Duration(n) * 364 * 24 * time.Hour / time.Duration(decisions))
			request, vote := decidedFacts(random, fmt.Sprintf("int_%08d", n), at)
			for _, p := range []struct {
				kind  store.DocumentKind
				id    string
				body  []byte
				facts any
			}{{store.RequestDocument, vote.Request, body, request}, {"vote", vote.Request + "/v", nil, vote}} {
				facts, err := json.Marshal(p.facts)
				if err != nil {
					return err
				}
				page.Documents = append(page.Documents, store.DocumentChange{Kind: p.kind, ID: p.id, Body: p.body, Index: facts})
			}
		}
		if err := st.CommitWrites(ctx, benchAccount, page); err != nil {
			return err
		}
	}
	return nil
}

func decidedFacts(random *rand.Rand, id string, at time.Time) (analytics.RequestIndex, analytics.VoteIndex) {
	person, tool := fmt.Sprint("person-", random.IntN(50)), fmt.Sprint("tool-", random.IntN(20))
	verb := "approve"
	if random.IntN(20) == 0 {
		verb = "reject"
	}
	viewed := at.Add(time.Duration(1+random.IntN(3600)) * time.Second)
	decided := viewed.Add(time.Duration(1+random.IntN(600)) * time.Second)
	r := analytics.RequestIndex{
		Kind: "approval", Graph: "inproc:ops", Action: tool, Rule: "rule-" + tool, Route: "default", Requester: "rita", Risk: random.IntN(4), WordCount: 20 + random.IntN(200),
		State: "answered", Outcome: verb, By: person, Created: at.UnixMilli(), Delivered: at.UnixMilli() + 50, Viewed: viewed.UnixMilli(), Decided: decided.UnixMilli(),
		Deadline: at.Add(24 * time.Hour).UnixMilli(), Revision: 2, Votes: 1,
	}
	return r, analytics.VoteIndex{
		Request: id, Actor: person, Verb: verb, Kind: r.Kind, Action: tool, Rule: r.Rule, Via: "http/oidc", Auth: "mfa", WordCount: r.WordCount,
		At: r.Decided, Created: r.Created, Viewed: r.Viewed, Settles: 1,
	}
}
