package problems

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/refusal"
)

// Every error of package desk has a problem code and a sentence, as a refused act and as a refused
// decision. [desk.Code] has a code for each of them, which a test of that package checks.
func TestOf_EveryDeskErrorHasACodeAndASentence(t *testing.T) {
	known := map[string]error{}
	for _, c := range deskCodes {
		known[desk.Code(c.err)] = c.err
	}
	for _, code := range refusal.Codes() {
		err := known[code]
		if err == nil {
			t.Errorf("%s has no problem code", code)
			continue
		}
		for name, failure := range map[string]error{
			"act":      &desk.RefusedError{Command: desk.CommandClaim, Actor: "ann", Err: err},
			"decision": &executor.RefusedError{Interrupt: "i1", Result: executor.Forbidden, Err: &desk.RefusedError{Command: desk.CommandApprove, Actor: "ann", Err: err}},
		} {
			p := Of(failure)
			temporary := strings.HasSuffix(code, "_down")
			if p.Detail != refusal.Sentence(code, "") || (p.Status >= http.StatusInternalServerError) != temporary || temporary != (p.RetryAfter > 0) {
				t.Errorf("%s of %s: %d %s: %q", name, code, p.Status, p.Code, p.Detail)
			}
		}
	}
	if p := Of(fmt.Errorf("%w", errors.New("else"))); p.Code != "unavailable" || p.Cause == nil {
		t.Errorf("another error: %+v", p)
	}
}
