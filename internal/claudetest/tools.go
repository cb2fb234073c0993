package claudetest

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Tool does the work of a call, and returns its result.
type Tool = func(ctx context.Context, arguments json.RawMessage) (string, error)

// Tools is an MCP server with tools that do work.
type Tools struct {
	URL   string
	tools map[string]Tool

	mu     sync.Mutex
	conns  map[net.Conn]bool
	change *sync.Cond
}

// NewTools starts a server with tools by name.
func NewTools(t testing.TB, tools map[string]Tool) *Tools {
	t.Helper()
	s := &Tools{tools: tools, conns: make(map[net.Conn]bool)}
	s.change = sync.NewCond(&s.mu)
	server := httptest.NewUnstartedServer(s)
	inner := server.Config.ConnState
	server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
		if inner != nil {
			inner(conn, state)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conns[conn] = true; state == http.StateClosed || state == http.StateHijacked {
			delete(s.conns, conn)
		}
		s.change.Broadcast()
	}
	server.Start()
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// WaitUntilUnused returns when no process is connected any more. After the end of a process, all
// calls that it has sent are then done.
func (s *Tools) WaitUntilUnused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.conns) > 0 {
		s.change.Wait()
	}
}

// Settings is the server as an MCP server with the name "work".
func (s *Tools) Settings() map[string]json.RawMessage {
	return map[string]json.RawMessage{"work": json.RawMessage(`{"type":"http","url":"` + s.URL + `"}`)}
}

func (s *Tools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var call struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Name            string          `json:"name"`
			ProtocolVersion string          `json:"protocolVersion"`
			Arguments       json.RawMessage `json:"arguments"`
		} `json:"params"`
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&call) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if call.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	answer := map[string]any{"jsonrpc": "2.0", "id": call.ID}
	switch call.Method {
	case "initialize":
		answer["result"] = map[string]any{"protocolVersion": call.Params.ProtocolVersion, "capabilities": map[string]any{"tools": map[string]any{}}, "serverInfo": map[string]any{"name": "work", "version": "1"}}
	case "tools/list":
		var tools []any
		for name := range s.tools {
			tools = append(tools, map[string]any{"name": name, "description": name, "inputSchema": map[string]any{"type": "object"}})
		}
		answer["result"] = map[string]any{"tools": tools}
	case "tools/call":
		text, err := s.tools[call.Params.Name](r.Context(), call.Params.Arguments)
		if err != nil {
			text = err.Error()
		}
		answer["result"] = map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}, "isError": err != nil}
	default:
		answer["error"] = map[string]any{"code": -32601, "message": "method not found"}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the CLI may have been ended
}
