package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/consoletest"
)

func TestFlags_AMistakeIsExplained(t *testing.T) {
	for args, want := range map[string]string{
		"-no-such-flag":              "flag provided but not defined",
		"task":                       "set the task with -task",
		"-model abacus":              "use script, anthropic[/NAME] or openai[/NAME]",
		"-model script/one":          "no name and no URL",
		"-url http://localhost:1/v1": "-url needs -model",
		"-url http://localhost:1/v1 -model script": "no name and no URL",
	} {
		p := consoletest.Start(t, t.TempDir(), strings.Fields(args)...)
		if _, code := p.End(); code != console.ExitUsage || !strings.Contains(p.Errors(), want) {
			t.Errorf("%s: exit code %d, %s", args, code, p.Errors())
		}
	}
	p := consoletest.Start(t, t.TempDir(), "-h")
	if _, code := p.End(); code != 0 || !strings.Contains(p.Errors(), "-data directory") {
		t.Errorf("-h: exit code %d, %s", code, p.Errors())
	}
}

func TestModel_ARealOneNeedsAKeyOrAServer(t *testing.T) {
	for _, model := range []string{"anthropic", "openai/gpt"} {
		p := consoletest.Start(t, t.TempDir(), "-model", model)
		if _, code := p.End(); code != console.ExitFailed || !strings.Contains(p.Errors(), "no API key") {
			t.Errorf("%s without a key: exit code %d, %s", model, code, p.Errors())
		}
	}
}

// service answers like OpenAI, with a stream, as a local model would. before is called before each
// answer.
func service(t *testing.T, before func(r *http.Request)) (flags []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		before(r)
		w.Header().Set("Content-Type", "text/event-stream")
		for _, delta := range []string{`"delta":{"role":"assistant","content":"Good "}`, `"delta":{"content":"morning."}`, `"delta":{},"finish_reason":"stop"`} {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"mine\",\"choices\":[{\"index\":0,%s}]}\n\n", delta)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	return []string{"-model", "openai/mine", "-url", server.URL + "/v1"}
}

func TestModel_AServerOfYourOwnTakesThePlaceOfTheScript(t *testing.T) {
	flags := service(t, func(*http.Request) {})
	said, code := consoletest.Start(t, t.TempDir(), flags...).End()
	if code != 0 || !strings.Contains(said, "tester: Good morning.\n") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}

func TestLeave_InTheMiddleOfTheWorkTheRunCanGoOn(t *testing.T) {
	called, calls := make(chan struct{}), 0
	flags := service(t, func(r *http.Request) {
		if calls++; calls == 1 {
			// otherwise the server does not notice that the caller is gone
			_, _ = io.Copy(io.Discard, r.Body)
			close(called)
			<-r.Context().Done()
		}
	})
	dir := t.TempDir()
	p := consoletest.Start(t, dir, flags...)
	<-called
	p.Interrupt()
	if said, code := p.End(); code != console.ExitInterrupted || !strings.Contains(said, "Run console-1 is saved. Continue with: go run ./examples/console -model openai/mine -url ") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
	if said, code := consoletest.Start(t, dir, flags...).End(); code != 0 || !strings.Contains(said, "tester: Good morning.\n") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
