package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/internal/exampletest"
)

func TestMain(m *testing.M) { exampletest.Main(m, "email", run) }

func TestEmail(t *testing.T) {
	exampletest.Test(t, exampletest.Scenario{
		Answers: []exampletest.Answer{{To: "Send it?", Line: "y"}},
		Refusal: []string{"n I call him instead"},
		Reason:  "I have not written to Jan. send_email was refused by you: I call him instead",
		Effects: func(t testing.TB, dir string) int { return len(outbox(t, dir)) },
		InDoubt: true,
	})
}

// outbox returns the mails that were sent.
func outbox(t testing.TB, dir string) (mails []Email) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "outbox.jsonl"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var s sent
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatal(err)
		}
		mails = append(mails, s.Mail)
	}
	return mails
}

func TestReview_EditedEmailIsSentExactly(t *testing.T) {
	dir := t.TempDir()
	output, code := exampletest.Start(t, dir).Dialogue("from=me", `body=Dear Jan,\n\nwe are sorry.`, "to=ann@example.com", "subject=Sorry", "y")
	if code != 0 || !strings.Contains(output, "The fields are to, subject and body.") || !strings.Contains(output, "Jan has his answer, as you changed it.") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	want := Email{To: "ann@example.com", Subject: "Sorry", Body: "Dear Jan,\n\nwe are sorry."}
	if mails := outbox(t, dir); len(mails) != 1 || mails[0] != want {
		t.Errorf("sent %+v, want %+v", mails, want)
	}
}
