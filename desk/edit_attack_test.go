package desk_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fermata-go/fermata/desk"
)

// The rules give other arguments an hour, and the request has been open for two. Whoever edited it so decided after the deadline that the edit itself
// had set.
func TestAttack_I10_AnEditIsNotApprovedAfterTheDeadlineThatItBrings(t *testing.T) {
	ask := action()
	ask.Need.Exclude = nil
	w := open(t, ask)
	w.policy = func(json.RawMessage) (desk.Ruling, error) {
		need := w.request.Need
		need.Deadline = desk.Duration(time.Hour)
		return desk.Ruling{Need: &need}, nil
	}
	w.at(2 * time.Hour)
	w.refused("denied", desk.ApproveEdited{From: w.by("ann"), Args: json.RawMessage(`{"table":"users","limit":50}`)})
	w.do(desk.Approve{From: w.by("ann")}) // what was asked has more time
	w.ended(desk.Approved, "ann")
}
