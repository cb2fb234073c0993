package anthropic

import (
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/agent/internal/modeltest"
)

func mustAsk(t *testing.T, m *Model, streaming bool, request *agent.Request) *agent.Response {
	t.Helper()
	response, err := modeltest.Get(t.Context(), m, streaming, request)
	if err != nil {
		t.Fatal(err)
	}
	return response
}

func TestError_ServiceRefusesBadConversations(t *testing.T) {
	for name, messages := range map[string][]agent.Message{
		"orphan result": {agent.User("x"), {Role: agent.RoleTool, CallID: "toolu_9", Text: "y"}},
		"result first":  {{Role: agent.RoleTool, CallID: "toolu_9", Text: "y"}},
		"open call":     {agent.User("x"), agent.Assistant("", agent.ToolCall{ID: "toolu_9", Name: "t", Args: "{}"}), agent.User("y")},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t).model().Generate(t.Context(), &agent.Request{Messages: messages})
			wantFailure(t, err, 400, false, "invalid_request_error")
		})
	}
}

func wantFailure(t *testing.T, err error, status int, temporary bool, says string) {
	t.Helper()
	modeltest.WantFailure(t, err, agent.ModelError{Model: "claude-test", Status: status, Temporary: temporary}, says)
}
