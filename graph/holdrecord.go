package graph

import (
	"fmt"
	"slices"
	"time"

	"github.com/fermata-go/fermata/internal/activation"
	"github.com/fermata-go/fermata/internal/recovery"
)

// HoldRecord says who released a hold. The runtime writes it: see [Graph.RecordHolds].
type HoldRecord struct {
	// Node is the node that the run was held at; When is "before" or "after".
	Node string `json:"node"`
	When string `json:"when"`
	// By is who released the hold, At when, and Auth how they were authenticated. Rule is the rule
	// that released it, if no person did. See [fermata.Attestation]. Without an attestation At is
	// the time at which the run continued.
	By   string    `json:"by,omitempty"`
	At   time.Time `json:"at"`
	Auth string    `json:"auth,omitempty"`
	Rule string    `json:"rule,omitempty"`
	// Edited reports that the answer changed the state.
	Edited bool `json:"edited,omitempty"`
}

// recordHold writes the record of a released hold into the state. It changes the newest state, so
// that parallel holds cannot conflict. The lock must be held.
func (inst *instance) recordHold(t *task, r *activation.Record, edited bool) error {
	if inst.flow.holdRecords == nil && inst.flow.recordGrant == nil {
		return nil
	}
	next, err := inst.flow.stateType.clone(inst.state)
	if err != nil {
		return inst.unsavable(err)
	}
	record := HoldRecord{Node: inst.flow.nodes[t.node].name, When: holdBefore, By: r.Attestation.By, At: r.Attestation.At.UTC(), Auth: r.Attestation.Auth, Rule: r.Attestation.Rule, Edited: edited}
	if t.status == taskHeldAfter {
		record.When = holdAfter
	}
	if record.At.IsZero() {
		record.At = inst.exec.Time().UTC()
	}
	if err := inst.flow.writeRecord(next, record); err != nil {
		return err
	}
	changed, err := inst.editedFields(inst.state, next)
	if err != nil {
		return err
	}
	clear(inst.mergedFields)
	return inst.applyUpdate(&stateUpdate{by: r.RelPath, base: inst.state, baseClock: inst.clock, result: next, changed: changed, version: inst.nextVersion()})
}

func (f *compiled) writeRecord(state statePtr, record HoldRecord) (err error) {
	defer recovery.Recover(&err)
	if f.holdRecords != nil {
		records := f.holdRecords(state)
		if records == nil {
			return fmt.Errorf("graph: %s: the function of RecordHolds returns nil", f.name)
		}
		*records = append(slices.Clip(*records), record)
	}
	if f.recordGrant != nil {
		f.recordGrant(state, record)
	}
	return nil
}
