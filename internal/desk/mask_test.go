package desk_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/requirement"
)

func sensitive(kind string, pointers ...string) desk.Request {
	return desk.Request{Subject: desk.Subject{Kind: kind}, Requirement: requirement.Requirement{Sensitive: pointers}}
}

// Sensitive values are masked, with everything below them, and where other texts repeat them.
func TestMask_SensitiveValues(t *testing.T) {
	for name, c := range map[string]struct {
		r      desk.Request
		data   string
		want   string
		masked []string
	}{
		"nothing sensitive":   {sensitive("approval"), `{"args":{"card":"4111"}}`, `{"args":{"card":"4111"}}`, nil},
		"an argument":         {sensitive("approval", "/card"), `{"args":{"card":"4111","n":1.0}}`, `{"args":{"card":"•••","n":1.0}}`, []string{"/card"}},
		"an effect in doubt":  {sensitive("effect-in-doubt", "/card"), `{"args":{"card":"4111"}}`, `{"args":{"card":"•••"}}`, []string{"/card"}},
		"all arguments":       {sensitive("approval", ""), `{"action":"pay","args":{"card":"x"}}`, `{"action":"pay","args":"•••"}`, []string{""}},
		"absent":              {sensitive("approval", "/card", "/n/0/x"), `{"args":{"n":[]}}`, `{"args":{"n":[]}}`, nil},
		"below":               {sensitive("approval", "/customer"), `{"args":{"customer":{"mail":"a@b.example"}}}`, `{"args":{"customer":"•••"}}`, []string{"/customer"}},
		"nested":              {sensitive("approval", "/customer/mail", "/list/1"), `{"args":{"customer":{"mail":"x"},"list":[1,2]}}`, `{"args":{"customer":{"mail":"•••"},"list":[1,"•••"]}}`, []string{"/customer/mail", "/list/1"}},
		"an escaped name":     {sensitive("approval", "/a~1b~0c"), `{"args":{"a/b~c":null}}`, `{"args":{"a/b~c":"•••"}}`, []string{"/a~1b~0c"}},
		"data of a question":  {sensitive("review", "/card"), `{"card":7,"args":{"card":8}}`, `{"args":{"card":8},"card":"•••"}`, []string{"/card"}},
		"repeated in a text":  {sensitive("approval", "/card"), `{"args":{"card":"4111-2222"},"summary":"charge 4111-2222 now"}`, `{"args":{"card":"•••"},"summary":"charge ••• now"}`, []string{"/card"}},
		"a number in a text":  {sensitive("approval", "/pin"), `{"args":{"pin":90210},"summary":"pin 90210"}`, `{"args":{"pin":"•••"},"summary":"pin •••"}`, []string{"/pin"}},
		"short texts":         {sensitive("approval", "/x"), `{"args":{"x":"on"},"summary":"on time"}`, `{"args":{"x":"•••"},"summary":"on time"}`, []string{"/x"}},
		"not JSON":            {sensitive("review", "/x"), `{`, `"•••"`, []string{"/x"}},
		"a pointer to a text": {sensitive("review", "/x/y"), `{"x":"text"}`, `{"x":"text"}`, nil},
	} {
		got, masked := c.r.MaskData(json.RawMessage(c.data))
		if string(got) != c.want || !slices.Equal(masked, c.masked) {
			t.Errorf("%s: %s, %q", name, got, masked)
		}
	}
}

// The arguments in an answer and in an edit are masked; the answer to a question is not its data.
func TestMask_AnswersAndEdits(t *testing.T) {
	r := sensitive("approval", "/card")
	if got := r.MaskAnswer(json.RawMessage(`{"verb":"approve","args":{"card":"4111"}}`)); string(got) != `{"args":{"card":"•••"},"verb":"approve"}` {
		t.Errorf("the answer: %s", got)
	}
	if got := r.MaskArgs(json.RawMessage(`{"card":"4111"}`)); string(got) != `{"card":"•••"}` {
		t.Errorf("the edit: %s", got)
	}
	if got := sensitive("hold", "/card").MaskAnswer(json.RawMessage(`{"card":"4111","n":1}`)); string(got) != `{"card":"•••","n":1}` {
		t.Errorf("the edited state of a hold: %s", got)
	}
	if got := sensitive("review", "/card").MaskAnswer(json.RawMessage(`{"card":1}`)); string(got) != `{"card":1}` {
		t.Errorf("the answer to a question: %s", got)
	}
	r.Edit = &desk.Edit{Args: json.RawMessage(`{"card":"4111"}`)}
	if got := r.SensitivePointers(json.RawMessage(`{"args":{}}`)); !slices.Equal(got, []string{"/card"}) {
		t.Errorf("only in the edit: %q", got)
	}
}

// A mask that is sent back is not a value.
func TestMask_SentBackIsRejected(t *testing.T) {
	r := sensitive("approval", "/card", "/customer")
	for answer, bad := range map[string]bool{
		`{"verb":"approve"}`:                                      false,
		`{"verb":"approve","args":{"card":"4111"}}`:               false,
		`{"verb":"approve","args":{"note":"•••","card":"x"}}`:     false,
		`{"verb":"approve","args":{"card":"•••"}}`:                true,
		`{"verb":"approve","args":{"card":"\u2022\u2022\u2022"}}`: true,
		`{"verb":"approve","args":{"customer":{"mail":"•••"}}}`:   true,
	} {
		if err := r.CheckNotMasked(json.RawMessage(answer)); errors.Is(err, desk.ErrInvalidEdit) != bad {
			t.Errorf("%s: %v", answer, err)
		}
	}
	if err := sensitive("hold", "/card").CheckNotMasked(json.RawMessage(`{"state":{"card":"•••"}}`)); !errors.Is(err, desk.ErrInvalidEdit) {
		t.Errorf("a state: %v", err)
	}
	if err := sensitive("approval").CheckNotMasked(json.RawMessage(`{"args":{"card":"•••"}}`)); err != nil {
		t.Errorf("nothing is sensitive: %v", err)
	}
}
