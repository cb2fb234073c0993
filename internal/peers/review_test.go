//go:build unix

package peers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/claudetest"
)

// reviewAgent asks people with the form of the content review.
const reviewAgent = `  - name: content-review
    tools: [mcp__work__publish]
    mcpServers: TOOLS
    questions:
      - kind: content-review
        description: Ask a person to review a draft.
        input:
          type: object
          required: [reason, draft, warnings, suggestedActions]
          properties:
            reason: {type: string}
            draft: {type: object, properties: {id: {type: string}, content: {type: string}}}
            warnings: {type: array, items: {type: string}}
            suggestedActions: {type: array, items: {type: object}}
        answer:
          type: object
          required: [action]
          additionalProperties: false
          properties: {action: {enum: [approve, revise, reject]}, feedback: {type: string}, editedContent: {type: string}}
`

// reviewScript is a model that drafts, asks until a person approves, and publishes.
func reviewScript(c claudetest.Conversation) []claudetest.Block {
	content, draft := "Five things about tea", 1
	for _, result := range c.Results {
		if _, text, ok := strings.Cut(result.Text, `"feedback":"`); ok {
			text, _, _ = strings.Cut(text, `"`)
			content, draft = content+", "+text, draft+1
		}
	}
	switch last := c.Last().Text; {
	case strings.Contains(last, `"approve"`):
		return []claudetest.Block{claudetest.Call("mcp__work__publish", map[string]any{"n": draft})}
	case strings.Contains(last, "publish"):
		return []claudetest.Block{claudetest.Text("Published: " + content)}
	}
	return []claudetest.Block{claudetest.Call("mcp__fermata__content-review", map[string]any{
		"reason": "Content ready for review", "draft": map[string]string{"id": fmt.Sprint("draft-", draft), "content": content}, "warnings": []string{},
		"suggestedActions": []any{
			map[string]any{"id": "approve", "label": "Approve & Publish", "action": "approve", "isPrimary": true},
			map[string]any{"id": "revise", "label": "Request Changes", "action": "revise"},
		},
	})}
}

// The content review of seed 000 runs on each provider through one server. People answer in the
// inbox, on the command line and through the API, and each answer leads to the next draft.
func TestSeed000_ContentReviewOnEachProviderFromEachSurface(t *testing.T) {
	t.Parallel()
	graph, cli := newLangGraph(t), newClaude(t, reviewScript)
	s := newServer(t, append(graph.settings("content_review"), cli.settings(reviewAgent)...)...)
	ann := s.signIn("ann-in-browser")

	surfaces := []struct {
		name, by string
		revise   func(t *testing.T, request api.Request, wish string)
	}{
		{"web", "ann-in-browser", func(_ *testing.T, request api.Request, wish string) {
			ann.submit(request.ID, "respond", map[string]string{"/action": "revise", "/feedback": wish})
		}},
		{"cli", "bob", func(t *testing.T, request api.Request, wish string) {
			s.on(t).must("bob", "answer", request.ID, fmt.Sprintf(`{"action":"revise","feedback":%q}`, wish))
		}},
		{"api", "eve", func(t *testing.T, request api.Request, wish string) {
			s.on(t).decideAs("eve", request, fmt.Sprintf(`{"action":"revise","feedback":%q}`, wish))
		}},
	}
	for name, provider := range map[string]struct{ graph, input string }{
		"inproc":    {"inproc:content-review", `{"topic":"tea"}`},
		"langgraph": {"langgraph:content_review", `{"topic":"tea"}`},
		"claude":    {"claude:content-review", `{"prompt":"write about tea"}`},
	} {
		t.Run(name, func(t *testing.T) {
			key := "review-" + name
			s := s.on(t)
			s.must("bot", "run", provider.graph, provider.input, "--key", key)
			for n, surface := range surfaces {
				t.Run(surface.name, func(t *testing.T) {
					s := s.on(t)
					request := s.reviewed(key, n+1)
					surface.revise(t, request, "wish-"+surface.name)
					next := s.reviewed(key, n+2)
					if !strings.Contains(string(next.Data), "wish-"+surface.name) {
						t.Errorf("the next draft does not have the feedback: %s", next.Data)
					}
					decided, err := s.as("ops").Request(t.Context(), request.ID)
					if err != nil || decided.Decision == nil || decided.Decision.By != surface.by {
						t.Errorf("the decision is %+v, %v", decided.Decision, err)
					}
				})
			}
			last := s.reviewed(key, len(surfaces)+1)
			s.decideAs("eve", last, `{"action":"approve"}`)
			done, ok := s.ended(key).Outcome.(fermata.Completed)
			if !ok {
				t.Fatalf("it is not completed: %+v", done)
			}
			for _, surface := range surfaces {
				if !strings.Contains(string(done.Output), "wish-"+surface.name) {
					t.Errorf("it published %s", done.Output)
				}
			}
		})
	}
	if graph.work.count("publish") != 1 || cli.work.count("publish-4") != 1 {
		t.Errorf("published %d and %d times", graph.work.count("publish"), cli.work.count("publish-4"))
	}
}

// decideAs decides a request through the API.
func (s *server) decideAs(who string, request api.Request, answer string) {
	s.Helper()
	if _, err := s.as(who).Decide(s.Context(), request.ID, api.Decide{Answer: json.RawMessage(answer), Shown: request.Shown}); err != nil {
		s.Error(err)
	}
}

// reviewed waits for the n-th request of a run.
func (s *server) reviewed(key string, n int) (request api.Request) {
	s.Helper()
	s.until(fmt.Sprintf("request %d of %s", n, key), func() (bool, error) {
		view, err := s.as("ops").Run(s.Context(), key)
		open := slices.IndexFunc(view.Requests, func(r api.Request) bool { return r.State == "pending" })
		if err != nil || len(view.Requests) != n || open < 0 {
			return false, fmt.Errorf("%s with %d requests: %+v, %w", view.Status, len(view.Requests), view.Problem, err)
		}
		request = view.Requests[open]
		return true, nil
	})
	return request
}
