package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/audit/reconcile"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/store"
)

// runReceipts is what is known of the receipt of a run of an external agent.
type runReceipts struct {
	entry    *reconcile.ReceiptEntry // nil if there is none
	expected bool                    // the agent should send one after an approval
	byRule   *ruleReceipt            // set if no person was asked
}

// ruleReceipt is the receipt of a run that a rule decided.
type ruleReceipt struct {
	approved string // the digest that a rule approved; "" if it did not
	at       time.Time
	receipt  *reconcile.ReceiptEntry
	expected bool
}

// receiptsOf reads the receipt of a run, if it is one of an external agent.
func (r *reconciliation) receiptsOf(ctx context.Context, history store.History, elsewhere bool) (runReceipts, error) {
	var found runReceipts
	if !elsewhere {
		return found, nil
	}
	known, err := r.docs.DecodeReceipt(history.Documents)
	if err != nil {
		return found, err
	}
	if known != nil {
		found.entry = &reconcile.ReceiptEntry{Outcome: audit.ReceiptOutcome(known.Outcome), Digest: known.Digest, At: known.At}
	}
	asked, err := r.askedOf(ctx, history.Run)
	if err != nil || asked.Kind != fermata.Approval.Name() {
		return found, err
	}
	rule := ruleReceipt{receipt: found.entry, at: history.Run.Updated}
	byPerson, decidedAt := false, history.Run.Updated
	for _, i := range history.Interrupts {
		byPerson = byPerson || i.Source != store.SourcePolicy
		if !i.DecidedAt.IsZero() {
			decidedAt = i.DecidedAt
		}
		if i.Source == store.SourcePolicy && i.Verdict == store.VerdictApprove {
			rule.approved = i.ApprovedDigest
		}
	}
	if found.entry == nil {
		if found.expected, err = r.sendsReceipts(ctx, history.Run, asked.Receipt, decidedAt); err != nil {
			return found, err
		}
	}
	if len(history.Interrupts) == 0 && history.Run.Status == store.StatusCompleted {
		rule.approved = asked.digest()
	}
	if rule.expected = found.expected; !byPerson && !history.Run.Status.Active() {
		found.byRule = &rule
	}
	return found, nil
}

// askedRequest is the part of the input of an external run that matters for its receipt.
type askedRequest struct {
	Kind    string                  `json:"kind"`
	Data    fermata.ApprovalRequest `json:"data"`
	Receipt bool                    `json:"receipt"`
}

func (a askedRequest) digest() string {
	digest, err := a.Data.ApprovedDigest(fermata.Decision{Verb: fermata.VerbApprove, Args: a.Data.Args})
	if err != nil {
		return ""
	}
	return digest
}

// askedOf reads the input of a run. One of another kind is left empty.
func (r *reconciliation) askedOf(_ context.Context, run store.Run) (askedRequest, error) {
	var asked struct {
		Kind    string          `json:"kind"`
		Data    json.RawMessage `json:"data"`
		Receipt bool            `json:"receipt"`
	}
	input, err := r.store.Input(run)
	if err != nil || json.Unmarshal(input, &asked) != nil || asked.Kind != fermata.Approval.Name() {
		return askedRequest{}, err
	}
	request := askedRequest{Kind: asked.Kind, Receipt: asked.Receipt}
	_ = json.Unmarshal(asked.Data, &request.Data) // the run failed if it is invalid
	return request, nil
}

// sendsReceipts reports whether the agent of a run should send a receipt for a decision: its
// request says so, or it has sent receipts before.
func (r *reconciliation) sendsReceipts(ctx context.Context, run store.Run, requested bool, decided time.Time) (bool, error) {
	if requested {
		return true, nil
	}
	meta, err := r.docs.ReadMeta(ctx, run.Account, run.ID)
	if docs.IsNotFound(err) || err == nil && meta.Requester == "" {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	since, known := r.senders[meta.Requester]
	if !known {
		paper, err := r.store.Document(ctx, run.Account, docs.ReceiptSenderKind, meta.Requester)
		if err != nil && !docs.IsNotFound(err) {
			return false, err
		}
		since = paper.Created
		r.senders[meta.Requester] = since
	}
	return !since.IsZero() && since.Before(decided), nil
}

// ruleFindings compares the receipt of a run that a rule decided with the rule.
func (r *reconciliation) ruleFindings(lines runState) []reconcile.Finding {
	rule := lines.byRule
	if rule == nil {
		return nil
	}
	finding := func(severity reconcile.Severity, code reconcile.FindingCode, format string, args ...any) []reconcile.Finding {
		return []reconcile.Finding{{Severity: severity, Code: code, Run: lines.run, Text: fmt.Sprintf(format, args...)}}
	}
	after := cmp.Or(r.config.Audit.ReceiptAfter, 24*time.Hour)
	switch {
	case rule.receipt == nil && rule.approved != "" && rule.expected && r.now.Sub(rule.at) > after:
		return finding(reconcile.SeverityWarn, reconcile.FindingApprovedNotRun, "The action of %s was allowed by a rule at %s, but its agent has sent no receipt.", lines.run, audit.TimestampOf(rule.at))
	case rule.receipt == nil || rule.receipt.Outcome == audit.ReceiptNotDone:
		return nil
	case rule.approved == "":
		return finding(reconcile.SeverityPage, reconcile.FindingRunNotApproved, "The agent executed the action of %s according to its receipt of %s, but no rule and no person allowed it.", lines.run, audit.TimestampOf(rule.receipt.At))
	case rule.approved != rule.receipt.Digest:
		return finding(reconcile.SeverityPage, reconcile.FindingDigestsDiffer, "The action of %s was executed with other arguments than a rule allowed.", lines.run)
	}
	return nil
}
