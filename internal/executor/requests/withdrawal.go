package requests

import (
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// addWithdrawal files a message to a run that is ended: that one of its questions was withdrawn. It
// is filed with the end of the run, and only if the provider wants to know.
func (s *Service) addWithdrawal(c *txn.Tx, interrupt, why string) error {
	p, err := s.providers.Of(c.Run)
	if _, hears := p.(provider.Withdrawer); err != nil || !hears {
		return nil
	}
	paper := store.DocumentChange{Kind: docs.RunMessageKind, ID: interrupt + "/withdrawn", Run: c.Run.ID, DueAt: c.Now}
	return c.AddIndexed(paper, RunMessage{Request: interrupt, Withdrawn: why, Remote: p.Capabilities().Remote})
}
