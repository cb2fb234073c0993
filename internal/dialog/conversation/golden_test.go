package conversation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/golden"
)

// start is the time at which the transcripts begin; each message comes a minute later.
var start = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// script plays a transcript. Lines of a transcript are
//
//	# comment                         also the name of the next transcript
//	language de / voice / screen      settings
//	hand-over / drop                  policies of the machine
//	known {entity}                    a known entity
//	ran {run}                         what the run that asked has done, when an answer is corrected
//	add {question}                    an agent asks
//	> text                            the user writes or says
//	~0.5 text                         as recognized with this confidence
//	press q1 choice                   a button; press q1 {"a":"b"} submits a form
//	form {"q1":{...},"q2":{...}}      a form with several questions
//	digits 2                          telephone keys
//	judge {judgement}                 what a model thinks of the next message
//	later 2h                          time passes
//	settled                           the run of a new intent has ended
//	expect q1 status key=value...     holds in addition to the golden output
//
// and the output: "<" is said to the user, "=" an effect.
type script struct {
	t       *testing.T
	name    string
	m       Machine
	c       Conversation
	known   Known
	now     time.Time
	judge   *Judgement
	pending bool // a new intent runs
	out     *strings.Builder
}

func TestGolden_Transcripts(t *testing.T) {
	files, err := filepath.Glob("testdata/transcripts/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	count := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		var s *script
		for n, line := range strings.Split(strings.TrimSuffix(string(data), "\n"), "\n") {
			if strings.HasPrefix(line, "<") || strings.HasPrefix(line, "=") {
				continue
			}
			if name, ok := strings.CutPrefix(line, "# "); ok {
				count++
				s = &script{t: t, name: fmt.Sprintf("%s:%d: %s", file, n+1, name), c: Conversation{ID: "c1"}, now: start, out: &out}
			}
			out.WriteString(line + "\n")
			if line != "" && !strings.HasPrefix(line, "#") {
				s.play(line)
			}
		}
		golden.Compare(t, file, out.String())
	}
	if count < 60 {
		t.Errorf("%d transcripts, want at least 60", count)
	}
}

func decode[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func (s *script) play(line string) {
	s.t.Helper()
	word, rest, _ := strings.Cut(line, " ")
	msg := Message{Modality: s.c.Modality, Actor: "ada"}
	switch {
	case word == "language":
		s.c.Language = Language(rest)
		return
	case word == "voice":
		s.c.Modality = Voice
		return
	case word == "screen":
		s.c.Modality = Text
		return
	case word == "hand-over":
		s.m.HandOver = true
		return
	case word == "drop":
		s.m.AfterNewIntent = Drop
		return
	case word == "known":
		s.known.Entities = append(s.known.Entities, decode[Entity](s.t, rest))
		return
	case word == "ran":
		s.known.Runs = map[string]PastRun{"run": decode[PastRun](s.t, rest)}
		return
	case word == "judge":
		j := decode[Judgement](s.t, rest)
		s.judge = &j
		return
	case word == "expect":
		s.expect(rest)
		return
	case word == "later":
		d, err := time.ParseDuration(rest)
		if err != nil {
			s.t.Fatal(err)
		}
		s.now = s.now.Add(d)
		s.print(s.m.Expire(&s.c, s.now))
		return
	case word == "settled":
		s.pending = false
		s.print(s.m.Next(&s.c, s.now))
		return
	case word == "add":
		id := "q" + strconv.Itoa(len(s.c.Questions)+1)
		q := decode[Question](s.t, rest)
		target := Target{Run: "run", Interrupt: "int-" + id}
		if q.Relevance == NonBlocking {
			target = Target{}
		}
		r, err := s.m.Add(&s.c, "", target, q, s.known, s.now)
		if err != nil {
			s.t.Fatalf("%s: %v", s.name, err)
		}
		s.print(r)
		return
	case word == "ask":
		s.print(s.m.Next(&s.c, s.now))
		return
	case word == ">":
		msg.Text = rest
	case strings.HasPrefix(word, "~"):
		msg.Text = rest
		msg.Recognition, _ = strconv.ParseFloat(word[1:], 64)
	case word == "digits":
		msg.Digits = rest
	case word == "form":
		msg.Replies = decode[map[string]Reply](s.t, rest)
	case word == "press":
		msg.Question, rest, _ = strings.Cut(rest, " ")
		if strings.HasPrefix(rest, "{") {
			msg.Fields = decode[map[string]string](s.t, rest)
		} else {
			msg.Choice = rest
		}
	default:
		s.t.Fatalf("%s: unknown line %q", s.name, line)
	}
	s.now = s.now.Add(time.Minute)
	msg.At = s.now
	if s.judge != nil {
		if _, ok := s.m.Consult(&s.c, msg); ok {
			msg.Judgement = s.judge
		} else {
			s.out.WriteString("= no model needed\n")
		}
		s.judge = nil
	}
	r, err := s.m.Handle(&s.c, msg, s.known)
	if err != nil {
		s.out.WriteString("= error " + err.Error() + "\n")
		return
	}
	s.print(r)
	for _, e := range r.Effects {
		if _, ok := e.(StartRun); ok {
			s.pending = true
		}
	}
	if !s.pending {
		s.print(s.m.Next(&s.c, s.now))
	}
}

func (s *script) print(r Result) {
	for _, p := range r.Say {
		fmt.Fprintf(s.out, "< [%s] %s\n", p.Template, p.Text)
		if len(p.Choices) > 0 {
			var labels []string
			for _, c := range p.Choices {
				labels = append(labels, fmt.Sprintf("%d %s", c.Number, c.Label))
			}
			fmt.Fprintf(s.out, "<     %s\n", strings.Join(labels, " | "))
		}
		if len(p.Fields) > 0 {
			var labels []string
			for _, f := range p.Fields {
				labels = append(labels, strings.TrimSpace(f.Label+" "+p.Values[f.Name]))
			}
			fmt.Fprintf(s.out, "<     form: %s\n", strings.Join(labels, " | "))
		}
	}
	for _, e := range r.Effects {
		switch e := e.(type) {
		case Deliver:
			fmt.Fprintf(s.out, "= deliver %s %s\n", e.Question, describeAnswer(e.Answer))
		case StartRun:
			fmt.Fprintf(s.out, "= start %q\n", e.Text+e.Again)
		case AskPerson:
			fmt.Fprintf(s.out, "= ask a person about %s\n", e.Question)
		case SaveEntity:
			fmt.Fprintf(s.out, "= entity %s\n", describeEntity(&e.Entity))
		case SaveFacts:
			fmt.Fprintf(s.out, "= facts %v for %s instead of %q\n", e.Facts, shorten(e.Entity), e.Instead)
		case SaveMemory:
			fmt.Fprintf(s.out, "= remember %s %s\n", e.Remembered.Key, describeAnswer(e.Remembered.Answer))
		}
	}
}

// shorten hides the hash of a derived id.
func shorten(id string) string {
	if strings.HasPrefix(id, "ent_") {
		return "ent_…"
	}
	return id
}

func describeAnswer(a Answer) string {
	var parts []string
	add := func(name, value string) {
		if value != "" {
			parts = append(parts, name+"="+value)
		}
	}
	add("option", shorten(a.Option))
	add("text", strings.ReplaceAll(a.Text, " ", "_"))
	add("method", string(a.Method))
	for flag, set := range map[string]bool{"yes": a.Yes, "escaped": a.Escaped, "expired": a.Expired} {
		if set {
			parts = append([]string{flag}, parts...)
		}
	}
	if len(a.Fields) > 0 {
		data, _ := json.Marshal(a.Fields) // a map of strings
		parts = append(parts, "fields="+string(data))
	}
	return strings.Join(parts, " ")
}

// expect compares the status and the answer of a question with words of an expectation, which a
// rewritten golden file does not change.
func (s *script) expect(rest string) {
	s.t.Helper()
	words := strings.Fields(rest)
	a := s.c.Find(words[0])
	if a == nil {
		s.t.Errorf("%s: no question %s", s.name, words[0])
		return
	}
	got := string(a.Status)
	if a.Answer != nil {
		got += " " + describeAnswer(*a.Answer)
	}
	for _, word := range words[1:] {
		no, negated := strings.CutPrefix(word, "!")
		if has := strings.Contains(" "+got+" ", " "+no+" "); has == negated {
			s.t.Errorf("%s: %s is %q, want %q", s.name, words[0], got, word)
		}
	}
}
