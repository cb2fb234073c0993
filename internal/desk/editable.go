package desk

import (
	"encoding/json"
	"fmt"
)

// CheckEditable compares what was shown with an edited version of it. It returns an error that
// wraps [ErrInvalidEdit] if they differ in a field that [Requirement.Editable] does not cover.
func (q Requirement) CheckEditable(shown, edited json.RawMessage) error {
	differences, err := Diff(shown, edited)
	if err != nil {
		return err
	}
	for _, d := range differences {
		if !covered(d.Pointer, q.Editable) {
			return fmt.Errorf("%w: %q is not editable", ErrInvalidEdit, d.Pointer)
		}
	}
	return nil
}
