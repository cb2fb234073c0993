package decide

import (
	"context"
	"encoding/json"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/executor/internal/ids"
	"github.com/fermata-go/fermata/executor/internal/requests"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// voteKey says which answers count as the same vote; "" if only equal answers do. For an effect in doubt these are answers that agree on whether it
// happened and with which receipt, whoever gives them and for which reason.
func (w submission) voteKey() string {
	if w.interrupt.Kind != fermata.EffectInDoubt.Name() {
		return ""
	}
	var said fermata.EffectResolution
	if json.Unmarshal(w.value, &said) != nil {
		return ""
	}
	if !said.Happened {
		return "it did not happen"
	}
	receipt, err := strictjson.Canonical(said.Receipt)
	if said.Receipt == nil || err != nil {
		return "it happened"
	}
	return "it happened: " + ids.Hash("receipt", receipt)
}

// checkAgainstLedger refuses the answer that an effect did not happen if the ledger says by now that it did: its owner was slow, and not dead.
func (dc *Decider) checkAgainstLedger(ctx context.Context, w *submission) error {
	var said fermata.EffectResolution
	if err := json.Unmarshal(w.value, &said); err != nil || said.Happened {
		return err
	}
	happened, err := dc.requests.LedgerHasReceipt(ctx, w.interrupt)
	if happened {
		return &fermata.AnswerError{ID: w.interrupt.ID, Kind: w.interrupt.Kind, Err: requests.ErrEffectSucceeded}
	}
	return err
}
