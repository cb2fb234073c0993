package requests

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor/auditrec"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/errs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/limits"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// RecordReceipt stores what an agent elsewhere did after the decision on its approval. The same
// receipt counts once; a second one that differs is ErrReceiptExists. By and At are set here.
func (s *Service) RecordReceipt(ctx context.Context, account, stateKey string, receipt docs.Receipt, from desk.From) (docs.Receipt, error) {
	run, err := s.docs.FindRun(ctx, account, stateKey)
	if err != nil {
		return receipt, err
	}
	meta, err := s.docs.MetaOf(ctx, account, run.ID)
	if err != nil {
		return receipt, err
	}
	if meta.Requester != "" && from.Actor.ID != meta.Requester { // another agent's
		return receipt, fmt.Errorf("%w: %q", errs.ErrRunNotFound, stateKey)
	}
	if err := s.checkReceipt(run, &receipt); err != nil {
		return receipt, err
	}
	err = retry.WhileStale(ctx, func() error {
		known, err := s.readReceipt(ctx, run)
		if err != nil {
			return err
		}
		if known != nil {
			if known.Digest != receipt.Digest || known.Outcome != receipt.Outcome || string(known.Result) != string(receipt.Result) {
				return fmt.Errorf("%w: %q", errs.ErrReceiptExists, stateKey)
			}
			receipt = *known
			return nil
		}
		return s.writeReceipt(ctx, run, &receipt, from)
	})
	return receipt, err
}

// checkReceipt validates a receipt of a run, and makes its result canonical.
func (s *Service) checkReceipt(run store.Run, receipt *docs.Receipt) error {
	if p, err := s.providers.Of(run); err != nil || p.Capabilities().Effects || !p.Capabilities().Remote {
		return fmt.Errorf("%w: only the run of an external agent has a receipt", errs.ErrInvalid)
	}
	input, err := s.store.Input(run)
	if err != nil {
		return err
	}
	var asked struct {
		Kind string `json:"kind"`
	}
	if json.Unmarshal(input, &asked) != nil || asked.Kind != fermata.Approval.Name() {
		return fmt.Errorf("%w: only a request of kind approval has a receipt", errs.ErrInvalid)
	}
	if sum, err := hex.DecodeString(receipt.Digest); err != nil || len(sum) != 32 || hex.EncodeToString(sum) != receipt.Digest {
		return fmt.Errorf("%w: the digest must have 64 hexadecimal digits in lower case", errs.ErrInvalid)
	}
	switch audit.ReceiptOutcome(receipt.Outcome) {
	case audit.ReceiptDone, audit.ReceiptFailed, audit.ReceiptNotDone:
	default:
		return fmt.Errorf("%w: the outcome must be done, failed or not_done", errs.ErrInvalid)
	}
	if receipt.Result == nil {
		return nil
	}
	if err := errs.ValidateJSON("the result", receipt.Result, limits.MaxAnswerBytes); err != nil {
		return err
	}
	receipt.Result, err = strictjson.Canonical(receipt.Result)
	return err
}

// readReceipt returns the receipt of a run, or nil.
func (s *Service) readReceipt(ctx context.Context, run store.Run) (*docs.Receipt, error) {
	paper, err := s.store.Document(ctx, run.Account, docs.ReceiptKind, run.ID)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return s.docs.DecodeReceipt([]store.Document{paper})
}

// Receipt returns the receipt of a run, or nil if it has none.
func (s *Service) Receipt(ctx context.Context, run store.Run) (*docs.Receipt, error) {
	if p, err := s.providers.Of(run); err != nil || !p.Capabilities().Remote {
		return nil, nil
	}
	return s.readReceipt(ctx, run)
}

// writeReceipt stores a receipt with its audit line, and that the agent sends receipts.
func (s *Service) writeReceipt(ctx context.Context, run store.Run, receipt *docs.Receipt, from desk.From) error {
	now, err := s.store.Now(ctx)
	if err != nil {
		return err
	}
	meta, err := s.docs.MetaOf(ctx, run.Account, run.ID)
	if err != nil {
		return err
	}
	receipt.By, receipt.At = from.Actor.ID, now.UTC()
	body, err := json.Marshal(receipt)
	if err != nil {
		return err
	}
	c := txn.New(run, meta, now)
	c.Documents = append(c.Documents, store.DocumentChange{Kind: docs.ReceiptKind, ID: run.ID, Run: run.ID, Body: body})
	if err := s.addReceiptSender(ctx, c, meta.Requester); err != nil {
		return err
	}
	place, err := s.receiptPlace(ctx, c)
	if err != nil {
		return err
	}
	line := audit.AgentReceipt{Outcome: audit.ReceiptOutcome(receipt.Outcome), Ran: c.Digest(receipt.Digest), Result: c.Digest(string(receipt.Result))}
	if err := c.AddAudit(auditrec.ActorOrSystem(from), place, line); err != nil {
		return err
	}
	return s.store.CommitWrites(ctx, run.Account, c.Writes)
}

// receiptPlace returns the place of the request, or that of the run if there is no request.
func (s *Service) receiptPlace(ctx context.Context, c *txn.Tx) (audit.Location, error) {
	asked, err := s.store.Interrupts(ctx, c.Run.Account, c.Run.ID)
	if err != nil || len(asked) == 0 {
		return c.AuditPlace(), err
	}
	return c.RequestPlace(asked[len(asked)-1].ID), nil
}

// addReceiptSender stores that the agent of a run sends receipts, if that is new.
func (s *Service) addReceiptSender(ctx context.Context, c *txn.Tx, agent string) error {
	if agent == "" {
		return nil
	}
	_, err := s.store.Document(ctx, c.Run.Account, docs.ReceiptSenderKind, agent)
	if errors.Is(err, store.ErrNotFound) {
		return c.AddIndexed(store.DocumentChange{Kind: docs.ReceiptSenderKind, ID: agent}, struct {
			Since time.Time `json:"since"`
		}{c.Now.UTC()})
	}
	return err
}
