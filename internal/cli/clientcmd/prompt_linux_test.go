package clientcmd

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/cli"
)

// openTerminal returns both ends of a terminal: that of the person, and that of the program, which
// is its standard input until the test ends.
func openTerminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { person.Close() })
	if err := unix.IoctlSetPointerInt(int(person.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(person.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if program, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	before := os.Stdin
	os.Stdin = program
	t.Cleanup(func() { os.Stdin = before; program.Close() })
	return person, program
}

// In a terminal, fermata approve asks for the name of the object, and sends what the person types.
func TestApprove_PromptsForTheNameOfTheObject(t *testing.T) {
	asked, err := json.Marshal(fermata.ApprovalRequest{Action: "drop", Args: json.RawMessage(`{"table":"users"}`)})
	if err != nil {
		t.Fatal(err)
	}
	var sent api.Decide
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = api.Request{
			ID: "int_1", Kind: fermata.Approval.Name(), State: "pending", Data: asked, Shown: "d1", AnswerSchema: fermata.Approval.HumanAnswerSchema(),
			Presentation: &api.Presentation{Title: "Drop table users"},
			Activity:     &api.Activity{State: "open", Confirm: "prod users", ConfirmFields: []string{"/table"}},
		}
		if r.Method == http.MethodPost {
			if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
				t.Error(err)
			}
			answer = map[string]any{"status": "completed", "runId": "run_1", "content": "gone"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for _, c := range []struct{ args, typed, prompt, confirm, said string }{
		{"", "prod users", "To approve, type prod users: ", "prod users", "approved: Drop table users"},
		{`{"table":"logs"}`, " logs ", "To approve, type the new value of /table: ", "logs", "approved with edits: Drop table users"},
	} {
		sent = api.Decide{}
		person, program := openTerminal(t)
		if _, err := person.WriteString(c.typed + "\n"); err != nil {
			t.Fatal(err)
		}
		command := ApproveCommand{Args: cli.JSONArg(c.args)}
		command.Remote, command.ID = cli.Remote{URL: server.URL, Token: "key"}, "int_1"
		if err := command.Run(t.Context(), &cli.Program{Out: program, Err: program}); err != nil {
			t.Fatal(err)
		}
		if err := program.Close(); err != nil {
			t.Fatal(err)
		}
		screen, _ := io.ReadAll(person) // it ends with an error: the terminal was closed
		if !strings.Contains(string(screen), c.prompt) || !strings.Contains(string(screen), c.said) || sent.Confirm != c.confirm {
			t.Errorf("the screen has %q, and %q was sent", screen, sent.Confirm)
		}
	}
}
