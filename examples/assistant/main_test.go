package main

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/examples/assistant/office"
	"github.com/fermata-go/fermata/examples/assistant/target"
)

// chat plays lines in a new process, as far as the store can tell, and returns the output.
func chat(t *testing.T, dir string, language dialog.Language, lines ...string) string {
	t.Helper()
	var out strings.Builder
	c := Chat{Conversation: "chat", Language: language, In: strings.NewReader(strings.Join(lines, "\n")), Out: &out}
	if err := run(t.Context(), dir, "", c); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func wantMails(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := target.Open(dir, "mails").Entries()
	if err != nil || len(entries) != len(want) {
		t.Fatalf("%d mails, %v, want %d", len(entries), err, len(want))
	}
	for i, part := range want {
		if !strings.Contains(string(entries[i].What), part) {
			t.Errorf("mail %d is %s, want %s", i, entries[i].What, part)
		}
	}
}

func TestAssistant_AsksWhichAnnaAlsoInAnotherProcess(t *testing.T) {
	dir := t.TempDir()
	out := chat(t, dir, dialog.English, "write to Anna about lunch")
	if !strings.Contains(out, "Which Anna do you mean?") {
		t.Fatal(out)
	}
	out = chat(t, dir, dialog.English, "why?", "the one from sales")
	if !strings.Contains(out, "several people with this name") || !strings.Contains(out, "on its way to Anna Schmidt") {
		t.Errorf("%s", out)
	}
	wantMails(t, dir, "anna.schmidt@example.com")
}

func TestAssistant_TwoOpenQuestionsAreAnsweredInAnyOrder(t *testing.T) {
	dir := t.TempDir()
	out := chat(t, dir, dialog.English, "write to Anna", "legal", "lunch on Friday")
	if !strings.Contains(out, "“lunch on Friday” is on its way to Anna Meier") {
		t.Errorf("%s", out)
	}
	wantMails(t, dir, "lunch on Friday")
}

func TestAssistant_ExternalMailNeedsAConfirmationByThePolicy(t *testing.T) {
	dir := t.TempDir()
	out := chat(t, dir, dialog.German, "schreib an Tom über Rechnung", "warum?", "vielleicht", "nein")
	if !strings.Contains(out, "The mail leaves the company.") || !strings.Contains(out, "I need a clear yes or no.") || !strings.Contains(out, "Nothing was sent.") {
		t.Errorf("%s", out)
	}
	wantMails(t, dir)
	chat(t, dir, dialog.German, "schreib an Tom über Rechnung", "ja")
	wantMails(t, dir, "tom@becker.example")
}

func TestAssistant_SomeoneElseIsCreated(t *testing.T) {
	dir := t.TempDir()
	out := chat(t, dir, dialog.English, "write to Anna about lunch", "someone else", "Anna Weber, auditor, from the fair", "yes", "anna@weber.example", "yes", "/record")
	if !strings.Contains(out, "on its way to Anna Weber") || !strings.Contains(out, `"method": "created"`) {
		t.Errorf("%s", out)
	}
	wantMails(t, dir, "anna@weber.example")
}

// Whatever else is open, a name that the address book does not have leads to a question.
func TestAssistant_UnknownNameIsAskedAbout(t *testing.T) {
	for name, test := range map[string]struct{ says, to string }{
		"another name": {"Tom", "Tom Becker"},
		"also unknown": {"Robert\nTom", "Tom Becker"},
		"a new person": {"someone else\nBob Weber, supplier\nyes\nbob@other.com", "Bob Weber"},
	} {
		dir := t.TempDir()
		out := chat(t, dir, dialog.English, append(strings.Split("write to bob about prices\n"+test.says, "\n"), "yes")...)
		if !strings.Contains(out, "I do not know bob. Who do you mean?") || !strings.Contains(out, "“prices” is on its way to "+test.to) {
			t.Errorf("%s: %s", name, out)
		}
		wantMails(t, dir, test.to)
	}
	dir := t.TempDir()
	if out := chat(t, dir, dialog.English, "write to bob", "cancel everything"); !strings.Contains(out, "What is the mail about?") || !strings.Contains(out, "Nothing was sent.") {
		t.Error(out)
	}
	wantMails(t, dir)
}

func TestAssistant_DayThatDoesNotExistIsAskedAgain(t *testing.T) {
	out := chat(t, t.TempDir(), dialog.English, "meet Tom on 2027-02-30", "2027-02-31", "2027-02-28")
	if !strings.Contains(out, "“2027-02-30” is not a date. When do you meet?") || !strings.Contains(out, "“2027-02-31” is not a date") || !strings.Contains(out, "In your calendar: Tom Becker, 2027-02-28.") {
		t.Error(out)
	}
}

func TestAssistant_CancelSendsNothing(t *testing.T) {
	dir := t.TempDir()
	out := chat(t, dir, dialog.English, "write to Anna about lunch", "never mind", "meet Tom on 2027-05-31", "hello")
	if !strings.Contains(out, "Nothing was sent.") || !strings.Contains(out, "In your calendar: Tom Becker") || !strings.Contains(out, "I can write mails") {
		t.Errorf("%s", out)
	}
	wantMails(t, dir)
}

// The policy file decides by the user and the amount.
func TestAssistant_TransfersAreConfirmedByUserAndAmount(t *testing.T) {
	for _, test := range []struct {
		user, euros, answer, want string
		transfers                 int
	}{
		{"ben", "50", "", "50 € are on their way to Tom Becker.", 1},
		{"ben", "51", "", "Transfer 51 € to Tom Becker?", 0},
		{"ben", "51", "why?", "Transfers over 50 € need a confirmation.", 0},
		{"ben", "51", "ok", "clear yes or no", 0},
		{"ben", "51", "yes", "51 € are on their way to Tom Becker.", 1},
		{"ben", "9999", "no", "Nothing was transferred.", 0},
		{"carla", "999", "", "999 € are on their way to Tom Becker.", 1},
		{"carla", "1000", "", "Transfer 1000 € to Tom Becker?", 0},
		{"carla", "10000", "", "made at the bank", 0},
	} {
		t.Run(test.user+" "+test.euros+" "+test.answer, func(t *testing.T) {
			dir := t.TempDir()
			desk, err := Open(dir, office.Script(), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer desk.Close()
			said := ""
			for _, text := range []string{"pay " + test.euros + " € to Tom", test.answer} {
				if text == "" {
					continue
				}
				record, err := desk.Handler.Message(t.Context(), account, "c", dialog.Message{Text: text, Actor: test.user})
				if err != nil {
					t.Fatal(err)
				}
				said = record.Lines[len(record.Lines)-1].Text
			}
			if !strings.Contains(said, test.want) {
				t.Errorf("%q", said)
			}
			made, err := target.Open(dir, "transfers").Entries()
			if err != nil || len(made) != test.transfers {
				t.Errorf("%d transfers, %v, want %d", len(made), err, test.transfers)
			}
		})
	}
}

// The reply to a note does not depend on the person, so the question follows it. The facts move
// with the answer.
func TestAssistant_IncidentalNameIsAskedByTheWay(t *testing.T) {
	for answer, want := range map[string]string{"sales": "anna-s", "legal": "anna-m"} {
		dir := t.TempDir()
		desk, err := Open(dir, office.Script(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var record dialog.Record
		for _, text := range []string{"remember that Anna likes tea", answer} {
			if record, err = desk.Handler.Message(t.Context(), account, "c", dialog.Message{Text: text, Actor: "ben"}); err != nil {
				t.Fatal(err)
			}
		}
		if said := record.Lines; len(said) != 5 || said[1].Text != "Noted: Anna likes tea." || !strings.HasPrefix(said[2].Text, "By the way: Which Anna did you mean?") || !strings.HasPrefix(said[4].Text, "The note is with Anna") {
			t.Errorf("%+v", said)
		}
		for _, id := range []string{"anna-m", "anna-s"} {
			facts, err := desk.Handler.Facts(t.Context(), account, "ben", id)
			if err != nil || (len(facts) == 1) != (id == want) {
				t.Errorf("%s: %s has %+v, %v", answer, id, facts, err)
			}
		}
		desk.Close()
	}
}
