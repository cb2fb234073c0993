// Package history reads what a run has asked so far.
package history

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/ident"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// Run reads what a run has asked so far: its requests and its interrupts, each once. A unit of work
// may concern thousands of interrupts.
type Run struct {
	docs       *docs.Docs
	run        store.Run
	requests   []desk.Request    // nil until they were read
	interrupts []store.Interrupt // the newest first; nil until they were read
}

// New returns the history of a run.
func New(d *docs.Docs, run store.Run) *Run { return &Run{docs: d, run: run} }

// AllRequests returns all requests of the run. They are read once.
func (h *Run) AllRequests(ctx context.Context) ([]desk.Request, error) {
	if h.requests != nil {
		return h.requests, nil
	}
	all := []desk.Request{}
	for paper, err := range h.docs.Documents(ctx, h.run.Account, store.RequestDocument, store.DocumentFilter{Run: h.run.ID, Limit: docs.DocumentsPerPage}) {
		if err != nil {
			return nil, err
		}
		known, err := h.docs.DecodeRequest(paper)
		if err != nil {
			return nil, err
		}
		all = append(all, known.Request)
	}
	h.requests = all //mutate:requests-read-once
	return all, nil
}

// Segments that the engine adds to the address of an approval: for edited arguments, and for a
// target that has changed since.
const (
	EditSegment          = "edit"
	TargetChangedSegment = "drift"
)

// HasSegmentAfterApproval reports whether an address has such a segment after the last approval in
// it. What stands before that was chosen by the author of the graph.
func HasSegmentAfterApproval(address fermata.Address, segment string) bool {
	last := -1
	for n, s := range address {
		if s.Type == fermata.SegmentApprove {
			last = n
		}
	}
	return last >= 0 && slices.ContainsFunc(address[last:], func(s fermata.Segment) bool { return string(s.Type) == segment })
}

// requestChargeKey names a question, however often it was asked: an approval that could not be used
// is not charged again when it is repeated.
func requestChargeKey(run store.Run, interrupt string) string {
	return ident.Derive("c", run.ID, ids.ProviderID(interrupt))
}

// An action whose target has changed since it was approved is asked about again, at a place of its
// own below the first: "…;drift:1", "…;drift:1;drift:2".

// OriginalAddress is the address of the question before one about a target that has changed; first,
// that of the one with which it began.
func OriginalAddress(address fermata.Address, first bool) fermata.Address {
	for n := len(address) - 1; n >= 0 && HasSegmentAfterApproval(address, TargetChangedSegment); n-- {
		drifted := string(address[n].Type) == TargetChangedSegment
		address = address[:n]
		if drifted && !first {
			break
		}
	}
	return address
}

// ChargeKeyFor returns the key for the charge of a request. A request that is asked again has the
// key of the first: what is done once is charged once.
func (h *Run) ChargeKeyFor(ctx context.Context, address fermata.Address, interrupt string) (string, error) {
	if !HasSegmentAfterApproval(address, TargetChangedSegment) {
		return requestChargeKey(h.run, interrupt), nil
	}
	asked, err := h.interruptsAt(ctx, OriginalAddress(address, true))
	if err != nil {
		return "", err
	}
	if len(asked) > 0 {
		interrupt = asked[0]
	}
	return requestChargeKey(h.run, interrupt), nil
}

// interruptsAt returns the ids of the run's interrupts at an address, the newest first.
func (h *Run) interruptsAt(ctx context.Context, address fermata.Address) ([]string, error) {
	if h.interrupts == nil {
		all, err := h.docs.Store.Interrupts(ctx, h.run.Account, h.run.ID)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(all, func(a, b store.Interrupt) int { return b.Created.Compare(a.Created) })
		h.interrupts = all
	}
	var ids []string
	for _, i := range h.interrupts {
		if i.Address == address.String() { //mutate:repeat-same-address
			ids = append(ids, i.ID)
		}
	}
	return ids, nil
}

// ReplacedRequest returns the last request for the same action at the same address, before its
// target changed; nil if there is none. The same action at another address may have had a weaker
// requirement.
func (h *Run) ReplacedRequest(ctx context.Context, address fermata.Address, asked desk.Subject) (*desk.Request, error) {
	before, err := h.interruptsAt(ctx, OriginalAddress(address, false))
	if err != nil {
		return nil, err
	}
	for _, id := range before {
		last, err := h.docs.Request(ctx, h.run.Account, id)
		if err != nil {
			return nil, err
		}
		if last != nil && last.Subject.Action == asked.Action && last.ActionDigest() == asked.ActionDigest {
			return &last.Request, nil
		}
	}
	return nil, nil
}

// RequestsForAction returns the ids of the requests for one action: this one, and those that it
// replaced. An approval of one of them approves nothing else.
func (h *Run) RequestsForAction(ctx context.Context, address fermata.Address, id string, asked desk.Subject) ([]string, error) {
	same := []string{id}
	for ; HasSegmentAfterApproval(address, TargetChangedSegment); address = OriginalAddress(address, false) {
		before, err := h.ReplacedRequest(ctx, address, asked)
		if err != nil || before == nil {
			return same, err
		}
		same, asked = append(same, before.ID), before.Subject
	}
	return same, nil
}

// relatedRequests returns the ids of the requests about the action of a request: asked for, asked
// for again, or in doubt.
func (h *Run) relatedRequests(ctx context.Context, doc desk.Request) ([]string, error) {
	question, err := h.docs.Store.InboxItem(ctx, h.run.Account, doc.ID)
	if err != nil {
		return nil, err
	}
	if doc.Subject.Kind == fermata.EffectInDoubt.Name() {
		same, err := h.requestsOfEffect(ctx, question.Interrupt)
		return append(same, doc.ID), err
	}
	address, err := fermata.ParseAddress(question.Address)
	if err != nil {
		return nil, err
	}
	return h.RequestsForAction(ctx, address, doc.ID, doc.Subject)
}

// requestsOfEffect returns the requests for the action of an effect in doubt. If the same was
// approved at two addresses it is unknown which of them it is, and there are none.
func (h *Run) requestsOfEffect(ctx context.Context, question store.Interrupt) ([]string, error) {
	data, err := h.docs.Store.Data(question)
	if err != nil {
		return nil, err
	}
	var doubt fermata.InDoubtRequest
	if err := json.Unmarshal(data, &doubt); err != nil {
		return nil, err
	}
	docs, err := h.AllRequests(ctx)
	if err != nil {
		return nil, err
	}
	var approved []string
	var last desk.Request
	for _, doc := range docs {
		if doc.Decision == nil || doc.Decision.Outcome != desk.OutcomeApproved || doc.Decision.Digest != doubt.Digest {
			continue
		}
		if approved = append(approved, doc.ID); last.ID == "" || doc.Created.After(last.Created) {
			last = doc
		}
	}
	if last.ID == "" {
		return nil, nil
	}
	same, err := h.relatedRequests(ctx, last)
	if slices.ContainsFunc(approved, func(id string) bool { return !slices.Contains(same, id) }) {
		return nil, err
	}
	return same, err
}

// PriorApprovers returns the actors who approved, or edited and thereby approved, something else in
// the same run.
func (h *Run) PriorApprovers(ctx context.Context, request desk.Request, also []string) ([]string, error) {
	all, err := h.AllRequests(ctx)
	if err != nil {
		return nil, err
	}
	same, err := h.relatedRequests(ctx, request)
	prior := slices.Clone(also)
	for _, doc := range all {
		if slices.Contains(same, doc.ID) {
			continue
		}
		for _, vote := range doc.Votes {
			if vote.Verb == requirement.VerbApprove || vote.Verb == requirement.VerbRespond && doc.Subject.Kind == docs.HoldKind { // an edited hold
				prior = append(prior, vote.By)
			}
		}
		if doc.Edit != nil {
			prior = append(prior, doc.Edit.By)
		}
	}
	return prior, err
}
