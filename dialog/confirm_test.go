package dialog

import (
	"errors"
	"testing"

	"github.com/fermata-go/fermata"
)

func TestConfirm_WithoutAPolicyReturnsErrPolicy(t *testing.T) {
	answer, err := Confirm(t.Context(), nil, "send_mail", nil, Question{Text: "Send it?"})
	if !errors.Is(err, fermata.ErrPolicy) || answer.Yes {
		t.Errorf("%+v, %v", answer, err)
	}
}
