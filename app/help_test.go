package app

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/config"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// model is the command line, with its texts.
func model(t *testing.T) *kong.Kong {
	t.Helper()
	parser, err := kong.New(new(commands), kong.Name("fermata"), groups, kong.Exit(func(int) {}), kong.Writers(new(bytes.Buffer), new(bytes.Buffer)))
	if err != nil {
		t.Fatal(err)
	}
	addDetails(parser.Model.Node)
	return parser
}

// shellWords splits a line as a shell would, as far as the examples need it, up to a redirection.
func shellWords(line string) (words []string) {
	var quote rune
	word, any := "", false
	for _, r := range line + " " {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote, any = r, true
		case r == quote:
			quote = 0
		case quote == 0 && r == '>':
			return words
		case quote == 0 && r == ' ':
			if any {
				words = append(words, word)
			}
			word, any = "", false
		default:
			word, any = word+string(r), true
		}
	}
	return words
}

// The examples in the help can be typed.
func TestHelp_ExamplesParse(t *testing.T) {
	parser := model(t)
	for _, leaf := range parser.Model.Leaves(true) {
		found := false
		for line := range strings.Lines(leaf.Detail) {
			_, example, ok := strings.Cut(strings.TrimRight(line, "\n"), "fermata ")
			if !ok || !strings.HasPrefix(line, "  ") {
				continue
			}
			example = strings.TrimSuffix(example, ")") // of <(fermata …)
			words := shellWords(example)
			if !strings.HasPrefix(example, leaf.Path()) {
				t.Errorf("an example of %s is: %s", leaf.Path(), line)
			}
			if _, err := parser.Parse(words); err != nil {
				t.Errorf("%s: %q: %v", leaf.Path(), words, err)
			}
			found = true
		}
		if !found {
			t.Errorf("fermata %s has no example", leaf.Path())
		}
	}
	for path := range details {
		if !slices.ContainsFunc(everything(parser.Model.Node), func(n *kong.Node) bool { return n.Path() == path }) {
			t.Errorf("there is a text for %q, which is not a command", path)
		}
	}
}

func everything(at *kong.Node) (list []*kong.Node) {
	for _, child := range at.Children {
		list = append(append(list, child), everything(child)...)
	}
	return list
}

func TestExit_EveryProblemCodeHasAnExitCode(t *testing.T) {
	want := map[string]int{
		"bad_request": cli.ExitUsage, "bad_answer": cli.ExitUsage, "unauthenticated": cli.ExitRejected, "forbidden": cli.ExitRejected, "not_found": cli.ExitNotFound, "unknown_graph": cli.ExitNotFound,
		"state_key_in_use": cli.ExitConflict, "already_decided": cli.ExitConflict, "expired": cli.ExitConflict, "digest_mismatch": cli.ExitConflict, "resume_id_reused": cli.ExitConflict,
		"rate_limited": cli.ExitUnavailable, "too_many_open": cli.ExitUnavailable, "unavailable": cli.ExitUnavailable, "internal": cli.ExitError,
	}
	for _, c := range server.Codes {
		if _, ok := cli.StatusExits[c.Status]; !ok {
			t.Errorf("%s, %d, has no exit code", c.Code, c.Status)
		}
		got := cli.Explain(fmt.Errorf("wrapped: %w", &api.Problem{Code: c.Code, Status: c.Status})).Exit
		if exit, known := want[c.Code]; known && got != exit || got == cli.ExitOK {
			t.Errorf("%s ends with %d", c.Code, got)
		}
	}
}

// An invalid id is a usage error, for example an empty variable in a script.
func TestExit_UnknownNameIsNotFound(t *testing.T) {
	t.Setenv("FERMATA_TOKEN", "fermata_key")
	for _, name := range []string{"", ".", ".."} {
		if exit, _, errOut := call(t, "cancel", name, "--url", "http://127.0.0.1:1"); exit != cli.ExitUsage || !strings.Contains(errOut, "fermata help cancel") {
			t.Errorf("fermata cancel %q exits with %d: %s", name, exit, errOut)
		}
	}
}

// Every limit of the server can be configured.
func TestConfig_LimitsMatchTheServer(t *testing.T) {
	given := config.Default().Limits
	given.Concurrency = 1      // the default depends on the cores
	given.RequestsPerAgent = 1 // by default there is none
	passed := reflect.ValueOf(serve.Limits(given))
	for i := range passed.NumField() {
		if name := passed.Type().Field(i).Name; passed.Field(i).IsZero() {
			t.Errorf("the limit %s is not a setting, or is not passed on", name)
		}
	}
}

// The documented table is that of the program.
func TestExit_DocsHaveTheTable(t *testing.T) {
	page, err := os.ReadFile("../docs/server.md")
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	for _, e := range cli.ExitCodes {
		fmt.Fprintf(&table, "| %d | %s |\n", e.Code, e.Meaning)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/server.md lacks these rows:\n%s", table.String())
	}
}

// A pending result is neither success nor failure.
func TestExit_Pending(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		fmt.Fprint(w, `{"status":"pending","runId":"run_1","stateKey":"k"}`)
	}))
	defer s.Close()
	code, out, errOut := call(t, "run", "inproc:x", "{}", "--url", s.URL, "--token", "x", "--json")
	if code != cli.ExitPending || out != "" || !strings.Contains(errOut, `"code":"pending"`) {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}

func TestExit_UnknownErrorIsAFailure(t *testing.T) {
	if f := cli.Explain(errors.New("what?")); f.Exit != cli.ExitError || f.Detail != "what?" {
		t.Errorf("%+v", f)
	}
}

// The role names are those of the server.
func TestConfig_RolesMatchTheServer(t *testing.T) {
	for _, role := range append([]authn.Role{"emperor"}, authn.Roles...) {
		_, err := config.Load(config.Source{Environ: []string{"FERMATA_AUTH_OIDC_ROLES={a: " + string(role) + "}"}})
		if wrong := strings.Contains(err.Error(), "not one of"); wrong != (role == "emperor") {
			t.Errorf("%s: %v", role, err)
		}
	}
}

// A program with own graphs is called by its own name.
func TestHelp_NamesTheBinary(t *testing.T) {
	for name, want := range map[string]string{"": "fermata", "clerks": "clerks"} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), []string{"--help"}, &out, &errOut, binaryName(name))
		if code != cli.ExitOK || !strings.Contains(out.String(), "Usage: "+want+" ") || !strings.Contains(out.String(), "Start with: "+want+" demo") {
			t.Errorf("as %q: %d %s %s", name, code, out.String(), errOut.String())
		}
	}
}
