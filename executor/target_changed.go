package executor

import (
	"context"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// An action whose target has changed since it was approved is asked about again, at a place of its own below the first: "…;drift:1", "…;drift:1;drift:2".

// originalAddress is the address of the question before one about a target that has changed; first, that of the one with which it began.
func originalAddress(address fermata.Address, first bool) fermata.Address {
	for n := len(address) - 1; n >= 0 && hasSegmentAfterApproval(address, targetChangedSegment); n-- {
		drifted := string(address[n].Type) == targetChangedSegment
		address = address[:n]
		if drifted && !first {
			break
		}
	}
	return address
}

// chargedAs is the key under which a question is charged. One that is asked again takes the place of the first: what is done once is charged once.
func (e *Executor) chargeKeyFor(ctx context.Context, c *unitOfWork, address fermata.Address, interrupt string) (string, error) {
	if !hasSegmentAfterApproval(address, targetChangedSegment) {
		return requestChargeKey(c.run, interrupt), nil
	}
	asked, err := e.interruptsAt(ctx, c, originalAddress(address, true))
	if err != nil {
		return "", err
	}
	if len(asked) > 0 {
		interrupt = asked[0]
	}
	return requestChargeKey(c.run, interrupt), nil
}

// lastAskedAt are the questions that the run has asked at a place, the last first.
func (e *Executor) interruptsAt(ctx context.Context, c *unitOfWork, address fermata.Address) ([]string, error) {
	if c.interrupts == nil {
		all, err := e.store.Interrupts(ctx, c.run.Account, c.run.ID)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(all, func(a, b store.Interrupt) int { return b.Created.Compare(a.Created) })
		c.interrupts = all
	}
	var ids []string
	for _, i := range c.interrupts {
		if i.Address == address.String() { //mutate:repeat-same-address
			ids = append(ids, i.ID)
		}
	}
	return ids, nil
}

// demandAgain takes the requirement from the request that this one takes the place of. Whoever edited the arguments there is still their last editor.
func (e *Executor) requirementOfReplaced(ctx context.Context, ask *desk.RequestSpec, c *unitOfWork, address fermata.Address) error {
	last, err := e.replacedRequest(ctx, c, address, ask.Subject)
	if err != nil {
		return err
	}
	if last == nil {
		return &deniedError{"nobody knows who was asked before"}
	}
	//mutate:repeat-keeps-editor
	ask.Requirement, ask.Route, ask.Subject.Editor = last.Requirement, last.Route, last.LastEditor()
	ask.Subject.Policy, ask.Subject.Rules, ask.Subject.Reason = last.Subject.Policy, last.Subject.Rules, last.Subject.Reason
	return nil
}

// replaced is the last request for the same action at the same place, before its target changed; nil if there is none. The same action elsewhere may have
// needed less.
func (e *Executor) replacedRequest(ctx context.Context, c *unitOfWork, address fermata.Address, asked desk.Subject) (*desk.Request, error) {
	before, err := e.interruptsAt(ctx, c, originalAddress(address, false))
	if err != nil {
		return nil, err
	}
	for _, id := range before {
		last, err := e.requestDoc(ctx, c.run.Account, id)
		if err != nil {
			return nil, err
		}
		if last != nil && last.Subject.Action == asked.Action && last.ActionDigest() == asked.ActionDigest {
			return &last.Request, nil
		}
	}
	return nil, nil
}

// sameAction are the requests about one action: this one, and those that it took the place of. Whoever said yes there said yes to nothing else.
func (e *Executor) requestsForAction(ctx context.Context, c *unitOfWork, address fermata.Address, id string, asked desk.Subject) ([]string, error) {
	same := []string{id}
	for ; hasSegmentAfterApproval(address, targetChangedSegment); address = originalAddress(address, false) {
		before, err := e.replacedRequest(ctx, c, address, asked)
		if err != nil || before == nil {
			return same, err
		}
		same, asked = append(same, before.ID), before.Subject
	}
	return same, nil
}

// aboutTheSame are the requests about the action that a request is about, be it asked for, asked for again, or in doubt.
func (e *Executor) relatedRequests(ctx context.Context, c *unitOfWork, doc desk.Request) ([]string, error) {
	question, err := e.store.InboxItem(ctx, c.run.Account, doc.ID)
	if err != nil {
		return nil, err
	}
	if doc.Subject.Kind == fermata.EffectInDoubt.Name() {
		same, err := e.requestsOfEffect(ctx, c, question.Interrupt)
		return append(same, doc.ID), err
	}
	address, err := fermata.ParseAddress(question.Address)
	if err != nil {
		return nil, err
	}
	return e.requestsForAction(ctx, c, address, doc.ID, doc.Subject)
}
