package console_test

import (
	"fmt"
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
		"task":                       "the task is given with -task",
		"-model abacus":              "it is script, anthropic[/NAME] or openai[/NAME]",
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

// A server that streams as OpenAI's does takes the place of the script; so would a model on this machine.
func TestModel_AServerOfYourOwnTakesThePlaceOfTheScript(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, delta := range []string{`"delta":{"role":"assistant","content":"Good "}`, `"delta":{"content":"morning."}`, `"delta":{},"finish_reason":"stop"`} {
			fmt.Fprintf(w, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"model\":\"mine\",\"choices\":[{\"index\":0,%s}]}\n\n", delta)
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer server.Close()
	said, code := consoletest.Start(t, t.TempDir(), "-model", "openai/mine", "-url", server.URL+"/v1").End()
	if code != 0 || !strings.Contains(said, "tester: Good morning.\n") {
		t.Errorf("exit code %d:\n%s", code, said)
	}
}
