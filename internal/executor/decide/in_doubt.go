package decide

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor/ids"
	"github.com/fermata-go/fermata/internal/executor/requests"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// voteKey returns the key of a vote: answers with the same key count as the same vote. It is "" if
// only equal answers do. For an effect in doubt, answers agree if they agree on whether the effect
// happened and with which receipt.
func (w submission) voteKey() string {
	if w.interrupt.Kind != fermata.EffectInDoubt.Name() {
		return ""
	}
	var resolution fermata.EffectResolution
	if json.Unmarshal(w.value, &resolution) != nil {
		return ""
	}
	if !resolution.Happened {
		return "it did not happen"
	}
	receipt, err := strictjson.Canonical(resolution.Receipt)
	if resolution.Receipt == nil || err != nil {
		return "it happened"
	}
	return "it happened: " + ids.Hash("receipt", receipt)
}

// checkAgainstLedger rejects the answer that an effect did not happen if the ledger has its receipt
// by now: its owner was slow, and had not failed.
func (dc *Decider) checkAgainstLedger(ctx context.Context, w *submission) error {
	var resolution fermata.EffectResolution
	if err := json.Unmarshal(w.value, &resolution); err != nil || resolution.Happened {
		return err
	}
	happened, err := dc.requests.LedgerHasReceipt(ctx, w.interrupt)
	if happened {
		return &fermata.AnswerError{ID: w.interrupt.ID, Kind: w.interrupt.Kind, Err: requests.ErrEffectSucceeded}
	}
	return err
}
