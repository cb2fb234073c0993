package desk

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/refusal"
)

// The errors are read from the source, so that a new one needs a code and a sentence.
func TestErrors_EachHasItsOwnCodeAndSentence(t *testing.T) {
	declared := declaredErrors(t)
	if len(declared) < 30 {
		t.Fatalf("only %d errors found", len(declared))
	}
	texts := map[string]bool{}
	for _, c := range codes {
		texts[c.err.Error()] = true
	}
	for name, text := range declared {
		if !texts[text] {
			t.Errorf("%s has no code", name)
		}
	}
	var known []string
	for _, c := range codes {
		if Code(c.err) != c.code || Code(&RefusedError{Err: c.err}) != c.code || slices.Contains(known, c.code) {
			t.Errorf("%v has the code %q", c.err, Code(c.err))
		}
		known = append(known, c.code)
	}
	slices.Sort(known)
	if got := refusal.Codes(); !slices.Equal(got, known) {
		t.Errorf("the sentences have the codes\n%q, the errors\n%q", got, known)
	}
	if Code(os.ErrNotExist) != "" || Code(nil) != "" || Sentence(os.ErrNotExist) != "" {
		t.Error("an error of another package has a code")
	}
}

// declaredErrors returns the names and texts of the exported errors of this package.
func declaredErrors(t *testing.T) map[string]string {
	t.Helper()
	declared := map[string]string{}
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range files {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			group, ok := d.(*ast.GenDecl)
			if !ok || group.Tok != token.VAR {
				continue
			}
			for _, spec := range group.Specs {
				v := spec.(*ast.ValueSpec)
				if !strings.HasPrefix(v.Names[0].Name, "Err") {
					continue
				}
				text := ""
				if call, ok := v.Values[0].(*ast.CallExpr); ok && len(call.Args) == 1 {
					if literal, ok := call.Args[0].(*ast.BasicLit); ok {
						text = strings.Trim(literal.Value, `"`)
					}
				}
				declared[v.Names[0].Name] = text
			}
		}
	}
	return declared
}

func TestSentence_NamesTheDetailForTheActor(t *testing.T) {
	at := time.Date(2026, 11, 19, 12, 44, 0, 0, time.UTC)
	for _, c := range []struct {
		err  error
		want string
	}{
		{&RefusedError{Command: CommandSnooze, Actor: "dana", Err: ErrInvalidTime, Detail: "the snooze must end before the deadline, 2026-11-19 12:44 UTC"}, "This time is not possible: the snooze must end before the deadline, 2026-11-19 12:44 UTC."},
		{&RefusedError{Err: ErrNotMember}, "You are not in a group that decides this."},
		{&RefusedError{Err: ErrDirectoryUnavailable, Detail: "dial tcp 10.0.0.1: refused"}, "The directory of groups cannot be reached. Try again later."},
		{&RefusedError{Err: ErrPolicyUnavailable, Detail: "policy.yaml:3"}, "The policy cannot be evaluated. Try again later."},
		{&RefusedError{Err: &WeakAuthError{"sso"}, Detail: "for this edit"}, "Your sign-in is not strong enough for this: sign in with at least sso."},
		{&ClosedError{State: StateDecided, Outcome: OutcomeApproved, By: []string{"ann"}, At: at}, "The request was already decided: approved by ann at 2026-11-19 12:44 UTC."},
		{&ClosedError{State: StateExpired, Outcome: OutcomeExpired, At: at}, "The deadline has passed."},
		{&ChangedError{Changes: []Event{{By: "bob", Text: "edited it"}}}, "The request has changed since you looked at it: bob edited it."},
	} {
		if got := Sentence(c.err); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	if got := refusal.Sentence("of_a_newer_server", ""); got != "This is not possible now (of_a_newer_server)." {
		t.Errorf("unknown code: %q", got)
	}
}
