package executor

import (
	"context"
	"slices"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// An action whose target has changed since it was approved is asked about again, at a place of its own below the first: "…;drift:1", "…;drift:1;drift:2".

// undrifted is the address of the question before one about a target that has changed; first, that of the one with which it began.
func undrifted(address fermata.Address, first bool) fermata.Address {
	for n := len(address) - 1; n >= 0 && within(address, driftSegment); n-- {
		drifted := string(address[n].Type) == driftSegment
		address = address[:n]
		if drifted && !first {
			break
		}
	}
	return address
}

// chargedAs is the key under which a question is charged. One that is asked again takes the place of the first: what is done once is charged once.
func (e *Executor) chargedAs(ctx context.Context, c *filing, address fermata.Address, interrupt string) (string, error) {
	if !within(address, driftSegment) {
		return askedKey(c.run, interrupt), nil
	}
	asked, err := e.lastAskedAt(ctx, c, undrifted(address, true))
	if err != nil {
		return "", err
	}
	if len(asked) > 0 {
		interrupt = asked[0]
	}
	return askedKey(c.run, interrupt), nil
}

// lastAskedAt are the questions that the run has asked at a place, the last first.
func (e *Executor) lastAskedAt(ctx context.Context, c *filing, address fermata.Address) ([]string, error) {
	if c.questions == nil {
		all, err := e.store.Interrupts(ctx, c.run.Account, c.run.ID)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(all, func(a, b store.Interrupt) int { return b.Created.Compare(a.Created) })
		c.questions = all
	}
	var ids []string
	for _, i := range c.questions {
		if i.Address == address.String() { //mutate:repeat-same-address
			ids = append(ids, i.ID)
		}
	}
	return ids, nil
}

// demandAgain takes the requirement from the request that this one takes the place of. Whoever edited the arguments there is still their last editor.
func (e *Executor) demandAgain(ctx context.Context, ask *desk.Ask, c *filing, address fermata.Address) error {
	last, err := e.replaced(ctx, c, address, ask.Asked)
	if err != nil {
		return err
	}
	if last == nil {
		return &deniedError{"nobody knows who was asked before"}
	}
	//mutate:repeat-keeps-editor
	ask.Need, ask.Route, ask.Asked.Editor = last.Need, last.Route, last.LastEditor()
	ask.Asked.Policy, ask.Asked.Rules, ask.Asked.Reason = last.Asked.Policy, last.Asked.Rules, last.Asked.Reason
	return nil
}

// replaced is the last request for the same action at the same place, before its target changed; nil if there is none. The same action elsewhere may have
// needed less.
func (e *Executor) replaced(ctx context.Context, c *filing, address fermata.Address, asked desk.Asked) (*desk.Request, error) {
	before, err := e.lastAskedAt(ctx, c, undrifted(address, false))
	if err != nil {
		return nil, err
	}
	for _, id := range before {
		last, err := e.requestOf(ctx, c.run.Account, id)
		if err != nil {
			return nil, err
		}
		if last != nil && last.Asked.Action == asked.Action && last.Subject() == asked.Digest {
			return &last.Request, nil
		}
	}
	return nil, nil
}

// sameAction are the requests about one action: this one, and those that it took the place of. Whoever said yes there said yes to nothing else.
func (e *Executor) sameAction(ctx context.Context, c *filing, address fermata.Address, id string, asked desk.Asked) ([]string, error) {
	same := []string{id}
	for ; within(address, driftSegment); address = undrifted(address, false) {
		before, err := e.replaced(ctx, c, address, asked)
		if err != nil || before == nil {
			return same, err
		}
		same, asked = append(same, before.ID), before.Asked
	}
	return same, nil
}

// aboutTheSame are the requests about the action that a request is about, be it asked for, asked for again, or in doubt.
func (e *Executor) aboutTheSame(ctx context.Context, c *filing, doc desk.Request) ([]string, error) {
	question, err := e.store.Question(ctx, c.run.Account, doc.ID)
	if err != nil {
		return nil, err
	}
	if doc.Asked.Kind == fermata.InDoubt.Name() {
		same, err := e.doubted(ctx, c, question.Interrupt)
		return append(same, doc.ID), err
	}
	address, err := fermata.ParseAddress(question.Address)
	if err != nil {
		return nil, err
	}
	return e.sameAction(ctx, c, address, doc.ID, doc.Asked)
}
