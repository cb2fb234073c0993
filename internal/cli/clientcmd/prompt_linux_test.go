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
		screen := make(chan string, 1)
		go func() { screen <- readUntil(person, c.said) }() // what is written last may be lost when the terminal is closed
		if err := command.Run(t.Context(), &cli.Program{Out: program, Err: program}); err != nil {
			t.Fatal(err)
		}
		text := <-screen
		if err := program.Close(); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text, c.prompt) || sent.Confirm != c.confirm {
			t.Errorf("the screen has %q, and %q was sent", text, sent.Confirm)
		}
	}
}

// A risky action is approved in a terminal only after a yes.
func TestApprove_AsksAgainBeforeARiskyAction(t *testing.T) {
	sent := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any = api.Request{
			ID: "int_1", Kind: fermata.Approval.Name(), State: "pending", Shown: "d1", AnswerSchema: fermata.Approval.HumanAnswerSchema(),
			Presentation: &api.Presentation{Title: "Drop table users"}, Activity: &api.Activity{State: "open", Risk: 3},
		}
		if r.Method == http.MethodPost {
			sent++
			answer = map[string]any{"status": "completed", "runId": "run_1", "content": "gone"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	for typed, want := range map[string]int{"yes": 1, "y": 0, "": 0} {
		sent = 0
		person, program := openTerminal(t)
		if _, err := person.WriteString(typed + "\n"); err != nil {
			t.Fatal(err)
		}
		screen := make(chan string, 1)
		go func() { screen <- readUntil(person, "Type yes to approve: ") }()
		command := ApproveCommand{}
		command.Remote, command.ID = cli.Remote{URL: server.URL, Token: "key"}, "int_1"
		err := command.Run(t.Context(), &cli.Program{Out: program, Err: program})
		if text := <-screen; !strings.Contains(text, "Drop table users\r\nThe risk is high. Type yes to approve: ") || sent != want || (err == nil) != (want == 1) {
			t.Errorf("%q: the screen has %q, %d decisions were sent, %v", typed, text, sent, err)
		}
		if err := program.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// readUntil reads what is on the screen until it has a text.
func readUntil(screen io.Reader, text string) string {
	var all []byte
	buffer := make([]byte, 1024)
	for !strings.Contains(string(all), text) {
		n, err := screen.Read(buffer)
		all = append(all, buffer[:n]...)
		if err != nil {
			return string(all)
		}
	}
	return string(all)
}
