package desk

import (
	"encoding/json"
	"fmt"

	"github.com/fermata-go/fermata/internal/requirement"
)

// CheckEditable compares what was shown with an edited version of it. It returns an error that
// wraps [ErrInvalidEdit] if they differ in a field that is not editable.
func CheckEditable(q requirement.Requirement, shown, edited json.RawMessage) error {
	differences, err := Diff(shown, edited)
	if err != nil {
		return err
	}
	for _, d := range differences {
		if !requirement.Covers(q.Editable, d.Pointer) {
			return fmt.Errorf("%w: %q is not editable", ErrInvalidEdit, d.Pointer)
		}
	}
	return nil
}
