package requests

import (
	"fmt"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// RunMessage is the index of a message to a run: the clarification or withdrawal of a request, and
// its deliveries.
type RunMessage struct {
	DeliveryIndex
	Request string `json:"request"`
	Number  int    `json:"number,omitempty"`
	// Withdrawn is set instead of the number if the request was withdrawn because the run was
	// ended.
	Withdrawn string `json:"why,omitempty"`
	// Remote says that the provider only sends it to a remote system: see [provider.Capabilities].
	Remote bool `json:"calls,omitempty"`
}

// addClarifications files the questions to a run that a change of a request brings, if the run's
// provider can answer them. The requester is notified as well, and may answer instead.
func (s *Service) addClarifications(c *txn.Tx, change desk.Change) error {
	p, err := s.providers.Of(c.Run)
	if _, hears := p.(provider.Explainer); err != nil || !hears {
		return nil
	}
	for _, event := range change.Events {
		if event.Type != desk.EventClarificationAsked {
			continue
		}
		back := RunMessage{Request: change.Request.ID, Number: len(change.Request.Clarifications), Remote: p.Capabilities().Remote}
		// a new request of the interrupt counts from one again
		id := fmt.Sprintf("%s/%d", change.Request.IncidentKey(), back.Number)
		if err := c.AddIndexed(store.DocumentChange{Kind: docs.RunMessageKind, ID: id, Run: c.Run.ID, DueAt: c.Now}, back); err != nil {
			return err
		}
	}
	return nil
}
